/**
 * A model being trained. Its calls carry ascending `seq_id`s and must be submitted one after another; their results may
 * be awaited in any order. A caller that journals gives the numbers itself, so that it can send the same call again.
 */
import { checkData, passFault } from "./check.ts";
import type { TinkerClient } from "./client.ts";
import type { Datum, Loss, PassResult } from "./data.ts";
import { encodeJson } from "./encoding.ts";
import { type CallOptions, Future, parseJson, type ResultOptions } from "./future.ts";
import { normalCheckpointPath } from "./paths.ts";
import type { HttpAnswer } from "./transport.ts";
import type { AdamParams } from "./wire.ts";

export interface SeqOptions extends CallOptions {
  /** The model's next number where absent. */
  readonly seqId?: number;
}

export class TrainingModel {
  readonly id: string;
  readonly #client: TinkerClient;
  #nextSeqId: number;

  /** Training numbers start at 1. */
  constructor(client: TinkerClient, id: string, nextSeqId = 1) {
    this.#client = client;
    this.id = id;
    this.#nextSeqId = nextSeqId;
  }

  /** The number that the next call without one of its own will carry. */
  get nextSeqId(): number {
    return this.#nextSeqId;
  }

  /** Reserves `count` numbers and returns them. */
  reserve(count: number): number[] {
    return Array.from({ length: count }, () => this.#nextSeqId++);
  }

  /** Log-probabilities without gradients. */
  forward(data: readonly Datum[], loss: Loss, options: SeqOptions = {}): Promise<Future<PassResult>> {
    return this.#pass("forward", data, loss, options);
  }

  /** Adds the gradient of the loss over `data` to the model's accumulator. */
  forwardBackward(data: readonly Datum[], loss: Loss, options: SeqOptions = {}): Promise<Future<PassResult>> {
    return this.#pass("forward_backward", data, loss, options);
  }

  /** Applies the accumulated gradient. Resolves to the server's metrics. */
  optimStep(params: AdamParams, options: SeqOptions = {}): Promise<Future<Readonly<Record<string, number>>>> {
    const body = { model_id: this.id, seq_id: this.#seq(options), adam_params: params, type: "optim_step" };
    return this.#submit("/optim_step", body, options, (answer) => {
      const { metrics } = parseJson(answer) as { metrics?: Record<string, number> | null };
      return metrics ?? {};
    });
  }

  /** Saves weights and optimizer under a name; resolves to the checkpoint's path. */
  saveWeights(name: string, options: SeqOptions = {}): Promise<Future<string>> {
    return this.#save("save_weights", name, options);
  }

  /** Saves what sampling needs under a name; resolves to the checkpoint's path in three parts. */
  saveWeightsForSampler(name: string, options: SeqOptions = {}): Promise<Future<string>> {
    return this.#save("save_weights_for_sampler", name, options);
  }

  /** Loads a training checkpoint; only as a model's first call. With `optimizer`, its moments and step count too. */
  loadWeights(
    path: string,
    { optimizer, ...options }: SeqOptions & { readonly optimizer: boolean },
  ): Promise<Future<void>> {
    const body = { model_id: this.id, seq_id: this.#seq(options), path, optimizer, type: "load_weights" };
    return this.#submit("/load_weights", body, options, () => undefined);
  }

  /** Frees the model on the server. Repeating it succeeds. */
  async unload(options: ResultOptions = {}): Promise<void> {
    const body = { model_id: this.id, type: "unload_model" };
    await (await this.#submit("/unload_model", body, options, () => undefined)).result(options);
  }

  async #pass(kind: "forward" | "forward_backward", data: readonly Datum[], loss: Loss, options: SeqOptions) {
    checkData(data);
    const { encoding, transport } = this.#client;
    const seqId = this.#seq(options);
    const { path, body } = encoding.encodePass({ modelId: this.id, seqId, data, loss, kind });
    const headers = { "content-type": encoding.contentType };
    const submission = { method: "POST", path, body, headers, signal: options.signal } as const;
    return Future.submit(transport, submission, (answer, fail) => {
      const result = encoding.decodePass(answer.body);
      const fault = passFault(data, result);
      if (fault) throw fail(fault);
      return result;
    });
  }

  #save(kind: "save_weights" | "save_weights_for_sampler", name: string, options: SeqOptions): Promise<Future<string>> {
    const body = { model_id: this.id, seq_id: this.#seq(options), path: name, type: kind };
    return this.#submit(`/${kind}`, body, options, (answer, fail) => {
      const { path } = parseJson(answer) as { path?: string | null };
      if (typeof path !== "string") throw fail("the result has no path");
      return normalCheckpointPath(path);
    });
  }

  #submit<T>(
    path: string,
    body: object,
    { signal }: CallOptions,
    decode: (answer: HttpAnswer, fail: (reason: string) => Error) => T,
  ): Promise<Future<T>> {
    return Future.submit(this.#client.transport, { method: "POST", path, body: encodeJson(body), signal }, decode);
  }

  #seq({ seqId }: SeqOptions): number {
    const taken = seqId ?? this.#nextSeqId;
    this.#nextSeqId = Math.max(this.#nextSeqId, taken + 1);
    return taken;
  }
}
