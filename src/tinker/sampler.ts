/** Samples from one snapshot of weights. Samples carry their own numbers, so that a retry is the same sample. */
import { withStop } from "../abort.ts";
import type { TinkerClient } from "./client.ts";
import type { InputImage, SampleResult, SamplingParams } from "./data.ts";
import { encodeJson, wireInput } from "./encoding/json.ts";
import { ACCEPT_BOTH, decodeSample } from "./encoding.ts";
import { TinkerError } from "./errors.ts";
import { type CallOptions, Future, type ResultOptions, type Taken } from "./future.ts";
import { imageFault, inputLength, type ModelInput } from "./input.ts";
import type { SavedAt } from "./quirks/freshness.ts";
import type { HttpRequest } from "./transport.ts";
import type { WireSamplingParams } from "./wire.ts";

export interface SampleRequest {
  /** Prompt tokens; [P] where there are no images. */
  readonly prompt: Int32Array;
  /** P is then the number of tokens and of the images' positions together. */
  readonly images?: readonly InputImage[];
  readonly params: SamplingParams;
  /** 1 where absent. */
  readonly count?: number;
  readonly promptLogprobs?: boolean;
  /** The k most probable tokens at each position of the prompt; 0 where absent. */
  readonly topkPromptLogprobs?: number;
  /** The same of each sampled position; servers before SDK 0.38 ignore it. */
  readonly topkSampleLogprobs?: number;
}

export interface Completions {
  readonly done: readonly { readonly requestId: string; readonly ok: boolean }[];
  readonly cursor: number;
}

/** A client that shares a sampler numbers its samples from its own multiple of this. */
const CLONE_SEQS = 1e9;

export class Sampler {
  readonly id: string;
  readonly #client: TinkerClient;
  readonly #savedAt: SavedAt | undefined;
  readonly #clone: number;
  #nextSeqId: number;

  /**
   * `savedAt`: of weights from a model that lives through the same client. `clone`: the number of this client among
   * those that share the sampler; 0 is the one that made it.
   */
  constructor(client: TinkerClient, id: string, savedAt?: SavedAt, clone = 0) {
    this.#client = client;
    this.id = id;
    this.#clone = clone;
    this.#nextSeqId = clone * CLONE_SEQS;
    this.#savedAt = savedAt;
  }

  /** Resolves when the server has taken the request. */
  async sample(request: SampleRequest, options: CallOptions & { seqId?: number } = {}): Promise<Future<SampleResult>> {
    const { count = 1 } = request;
    const input = inputOf(request);
    const fault = imageFault(input);
    if (fault) throw new RangeError(fault);
    if (inputLength(input) === 0) throw new RangeError("a sample needs a prompt");
    this.#refuseStale();
    const { transport, gate } = this.#client;
    const { retriesSamples } = await this.#client.config(options);
    const seqId = options.seqId ?? this.#nextSeqId;
    this.#nextSeqId = Math.max(this.#nextSeqId, seqId + 1);
    const submissionOf = (seq: number): HttpRequest => ({
      method: "POST",
      path: "/asample",
      body: this.#body(request, seq),
      headers: { "x-tinker-sampling-backpressure": "1" },
      retries: retriesSamples ? "not busy" : "none",
      signal: options.signal,
      seq,
    });
    return Future.submit(transport, submissionOf(seqId), {
      accept: ACCEPT_BOTH,
      send: (submission) => gate.run(submission.body?.length ?? 0, submission.signal, () => transport.send(submission)),
      decode: (answer, fail, taken) => {
        const result = decodeSample(answer, inputLength(input));
        if (result.sequences.length !== count) throw fail(`${result.sequences.length} samples for ${count}`);
        return named(result, taken);
      },
      // SkyRL fails all samples of a batch for the fault of one. A new number: under the old one a server may know the failure.
      alone: () => submissionOf(this.#nextSeqId++),
    });
  }

  /**
   * Samples from many prompts, at most as many at a time as the server allows; results are in the order of requests.
   * The first failure ends it: what is not submitted then is not sent any more.
   */
  async sampleAll(requests: readonly SampleRequest[], options: ResultOptions = {}): Promise<SampleResult[]> {
    const { samplesAtOnce } = await this.#client.config(options);
    const first = this.#nextSeqId;
    this.#nextSeqId += requests.length;
    const results: SampleResult[] = [];
    let next = 0;
    const work = async ({ signal }: AbortController) => {
      while (next < requests.length) {
        const i = next++;
        const future = await this.sample(requests[i] as SampleRequest, { signal, seqId: first + i });
        results[i] = await future.result({ ...options, signal });
      }
    };
    const workers = Math.min(samplesAtOnce, requests.length);
    await withStop(options.signal, async (stop) => {
      try {
        await Promise.all(Array.from({ length: workers }, () => work(stop)));
      } catch (error) {
        stop.abort();
        options.signal?.throwIfAborted();
        throw error;
      }
    });
    return results;
  }

  /** Log-probabilities of a text's tokens [P] in nats, the first NaN; by sampling one token after it. */
  async logprobs(prompt: Int32Array, options: ResultOptions = {}): Promise<Float32Array> {
    const params = { maxTokens: 1, temperature: 0, stop: [] };
    const { promptLogprobs } = await (await this.sample({ prompt, params, promptLogprobs: true }, options)).result(
      options,
    );
    if (promptLogprobs) return promptLogprobs;
    throw new RangeError("the server gave no log-probabilities of the prompt");
  }

  /** Another client of the same sampler, in this process or another, whose samples never take the numbers of this one's. */
  async join(options: CallOptions = {}): Promise<Sampler> {
    const body = { sampling_session_id: this.id, type: "join_sampling_session" };
    interface Wire {
      readonly client_counter: number;
    }
    const wire = await this.#client.json<Wire>("POST", "/join_sampling_session", body, options);
    return new Sampler(this.#client, this.id, this.#savedAt, wire.client_counter);
  }

  /**
   * Which of this client's samples are done, for a caller with so many that a poll for each is too much: those since
   * `cursor` (0 at first), as soon as there are any. The next call with the new cursor acknowledges them. Their results
   * are then there at once.
   */
  async completions(
    cursor: number,
    { timeoutMs, signal }: CallOptions & { readonly timeoutMs?: number } = {},
  ): Promise<Completions> {
    const target = { type: "sampling_session", sampling_session_id: this.id, cloned_sampler_id: this.#clone };
    const body = {
      target,
      prev_cursor: cursor,
      retrieved_request_ids: [],
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs / 1000 }),
    };
    interface Wire {
      readonly completions: readonly { readonly state: string; readonly request_id: string }[];
      readonly cursor: number;
    }
    const wire = await this.#client.json<Wire>("POST", "/retrieve_futures", body, { signal });
    const done = wire.completions.map(({ state, request_id }) => ({ requestId: request_id, ok: state === "finished" }));
    return { done, cursor: wire.cursor };
  }

  #refuseStale(): void {
    const { kind, weights } = this.#client;
    const reason = kind && this.#savedAt && weights.fault(kind, this.#savedAt);
    if (reason) throw new TinkerError({ kind: "rejected", endpoint: "POST /api/v1/asample", reason });
  }

  #body(request: SampleRequest, seqId: number): Uint8Array {
    const { topkPromptLogprobs = 0, topkSampleLogprobs = 0 } = request;
    return encodeJson({
      sampling_session_id: this.id,
      seq_id: seqId,
      num_samples: request.count ?? 1,
      prompt: wireInput(inputOf(request)),
      sampling_params: wireParams(request.params),
      prompt_logprobs: request.promptLogprobs ?? false,
      ...(topkPromptLogprobs === 0 ? {} : { topk_prompt_logprobs: topkPromptLogprobs }),
      ...(topkSampleLogprobs === 0 ? {} : { topk_sample_logprobs: topkSampleLogprobs }),
      type: "sample",
    });
  }
}

const inputOf = ({ prompt, images }: SampleRequest): ModelInput => ({ input: prompt, ...(images ? { images } : {}) });

/** Servers since SDK 0.38 name each sequence when they take the request. */
function named(result: SampleResult, { sample_sequence_ids: ids }: Taken): SampleResult {
  if (!Array.isArray(ids) || ids.length !== result.sequences.length) return result;
  return { ...result, sequences: result.sequences.map((s, i) => ({ ...s, sequenceId: String(ids[i]) })) };
}

const wireParams = ({
  maxTokens,
  temperature,
  topP,
  topK,
  seed,
  seedPosition = 0,
  stop,
}: SamplingParams): WireSamplingParams => ({
  max_tokens: maxTokens,
  temperature: temperature ?? 1,
  top_p: topP ?? 1,
  top_k: topK ?? -1,
  ...(seed === undefined ? {} : { seed }),
  ...(seedPosition === 0 ? {} : { seed_position: seedPosition }),
  stop,
});
