/** Samples from one snapshot of weights. Samples carry their own numbers, so that a retry is the same sample. */
import type { TinkerClient } from "./client.ts";
import type { SampleResult, SamplingParams } from "./data.ts";
import { encodeJson, wireInput } from "./encoding.ts";
import { type CallOptions, Future } from "./future.ts";
import type { WireSamplingParams } from "./wire.ts";

export interface SampleRequest {
  /** [P] prompt tokens. */
  readonly prompt: Int32Array;
  readonly params: SamplingParams;
  /** 1 where absent. */
  readonly count?: number;
  readonly promptLogprobs?: boolean;
}

export class Sampler {
  readonly id: string;
  readonly #client: TinkerClient;
  #nextSeqId = 0;

  constructor(client: TinkerClient, id: string) {
    this.#client = client;
    this.id = id;
  }

  async sample(request: SampleRequest, options: CallOptions & { seqId?: number } = {}): Promise<Future<SampleResult>> {
    const { prompt, params, count = 1, promptLogprobs = false } = request;
    if (prompt.length === 0) throw new RangeError("a sample needs a prompt");
    const seqId = options.seqId ?? this.#nextSeqId;
    this.#nextSeqId = Math.max(this.#nextSeqId, seqId + 1);
    const body = encodeJson({
      sampling_session_id: this.id,
      seq_id: seqId,
      num_samples: count,
      prompt: wireInput(prompt),
      sampling_params: wireParams(params),
      prompt_logprobs: promptLogprobs,
      type: "sample",
    });
    const { transport, encoding } = this.#client;
    const submission = { method: "POST", path: "/asample", body, signal: options.signal } as const;
    return Future.submit(transport, submission, (answer, fail) => {
      const result = encoding.decodeSample(answer.body, prompt.length);
      if (result.sequences.length !== count) throw fail(`${result.sequences.length} samples for ${count}`);
      return result;
    });
  }
}

const wireParams = ({ maxTokens, temperature, topP, topK, seed, stop }: SamplingParams): WireSamplingParams => ({
  max_tokens: maxTokens,
  temperature: temperature ?? 1,
  top_p: topP ?? 1,
  top_k: topK ?? -1,
  ...(seed === undefined ? {} : { seed }),
  stop,
});
