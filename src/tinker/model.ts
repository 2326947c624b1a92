/**
 * A model being trained. Its calls carry ascending `seq_id`s and must be submitted one after another; their results may
 * be awaited in any order. A caller that journals gives the numbers itself, so that it can send the same call again.
 */

import { type HttpAnswer, parseJson } from "./answer.ts";
import { splitData } from "./chunks.ts";
import type { TinkerClient } from "./client.ts";
import { type CustomLoss, type CustomPass, runCustomLoss } from "./custom.ts";
import type { Datum, Loss, ModelDescription, PassResult } from "./data.ts";
import { encodeJson } from "./encoding/json.ts";
import { type CallOptions, type Fail, Future, type Pending, type ResultOptions } from "./future.ts";
import { submitPass } from "./pass.ts";
import { normalCheckpointPath } from "./paths.ts";
import { Sampler } from "./sampler.ts";
import type { AdamParams } from "./wire.ts";

export interface SeqOptions extends CallOptions {
  /** The model's next number where absent. */
  readonly seqId?: number;
}

export interface PassOptions extends CallOptions {
  /**
   * A number for each request that the data is cut into (`requestsFor`); the model's next ones where absent. A
   * call with numbers of its own is never sent under others.
   */
  readonly seqIds?: readonly number[];
}

export interface SaveOptions extends SeqOptions {
  /** Deleted by itself after this; kept for good where absent. Not every server obeys. */
  readonly ttlSeconds?: number;
  /** Whether a checkpoint of this name may be replaced. */
  readonly overwrite?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The session's counter of samplers, for those that a model makes of its own weights. */
export type SamplerNumbers = () => number;

export class TrainingModel {
  readonly id: string;
  readonly #client: TinkerClient;
  readonly #samplerNumbers: SamplerNumbers;
  #nextSeqId: number;

  /** Training numbers start at 1. */
  constructor(client: TinkerClient, id: string, samplerNumbers: SamplerNumbers, nextSeqId = 1) {
    this.#client = client;
    this.id = id;
    this.#samplerNumbers = samplerNumbers;
    this.#nextSeqId = nextSeqId;
    client.weights.begin(id);
  }

  async info(options: CallOptions = {}): Promise<ModelDescription> {
    interface Wire {
      readonly model_data?: {
        readonly model_name?: string | null;
        readonly base_model?: string | null;
        readonly lora_config?: { readonly rank?: number } | null;
      };
      readonly is_lora?: boolean | null;
      readonly lora_rank?: number | null;
    }
    const body = { model_id: this.id, type: "get_info" };
    const wire = await this.#client.json<Wire>("POST", "/get_info", body, options);
    const name = wire.model_data?.model_name ?? wire.model_data?.base_model;
    const rank = wire.is_lora === false ? 0 : (wire.lora_rank ?? wire.model_data?.lora_config?.rank);
    return {
      modelId: this.id,
      ...(name == null ? {} : { modelName: name }),
      ...(rank == null ? {} : { loraRank: rank }),
    };
  }

  /** The number that the next call without one of its own will carry. */
  get nextSeqId(): number {
    return this.#nextSeqId;
  }

  /** How many requests a pass over this data takes, and so how many numbers. */
  async requestsFor(data: readonly Datum[], options: CallOptions = {}): Promise<number> {
    return splitData(data, (await this.#client.config(options)).limits).length;
  }

  /** Reserves `count` numbers and returns them. */
  reserve(count: number): number[] {
    return Array.from({ length: count }, () => this.#nextSeqId++);
  }

  /** Log-probabilities without gradients. A large batch is sent in several requests and comes back as one result. */
  forward(data: readonly Datum[], loss: Loss, options: PassOptions = {}): Promise<Pending<PassResult>> {
    return this.#pass("forward", data, loss, options);
  }

  /** Adds the gradient of the loss over `data` to the model's accumulator. */
  forwardBackward(data: readonly Datum[], loss: Loss, options: PassOptions = {}): Promise<Pending<PassResult>> {
    return this.#pass("forward_backward", data, loss, options);
  }

  /** Applies the accumulated gradient. Resolves to the server's metrics. */
  optimStep(params: AdamParams, options: SeqOptions = {}): Promise<Future<Readonly<Record<string, number>>>> {
    this.#client.weights.updated(this.id);
    const body = { model_id: this.id, seq_id: this.#seq(options), adam_params: params, type: "optim_step" };
    return this.#submit("/optim_step", body, options, (answer) => {
      const { metrics } = parseJson(answer) as { metrics?: Record<string, number> | null };
      return metrics ?? {};
    });
  }

  /** Saves weights and optimizer under a name; resolves to the checkpoint's path. */
  saveWeights(name: string, options: SaveOptions = {}): Promise<Future<string>> {
    return this.#save("save_weights", name, options);
  }

  /** Saves what sampling needs under a name; resolves to the checkpoint's path in three parts. */
  saveWeightsForSampler(name: string, options: SaveOptions = {}): Promise<Future<string>> {
    const saved = this.#client.weights.saved(this.id);
    return this.#save("save_weights_for_sampler", name, options, (path) => this.#client.weights.named(path, saved));
  }

  /** Saves weights for other programs under a name, to be downloaded file by file (`rest.externalWeightsUrls`). */
  saveWeightsExternal(
    name: string,
    { ttlSeconds, ...options }: SeqOptions & Pick<SaveOptions, "ttlSeconds"> = {},
  ): Promise<Future<{ readonly path: string; readonly sizeBytes?: number }>> {
    const body = {
      model_id: this.id,
      seq_id: this.#seq(options),
      path: name,
      ...(ttlSeconds === undefined ? {} : { ttl_seconds: ttlSeconds }),
      type: "save_weights_external",
    };
    return this.#submit("/save_weights_external", body, options, (answer, fail) => {
      const { path, size_bytes } = parseJson(answer) as { path?: string; size_bytes?: number | null };
      if (typeof path !== "string") throw fail("the result has no path");
      return { path, ...(size_bytes == null ? {} : { sizeBytes: size_bytes }) };
    });
  }

  /**
   * A loss of one's own, computed here from the log-probabilities: one forward pass, `loss`, and one backward pass whose
   * gradient is that of the loss, whatever the kind of server. `data` is all of the step: every datum until the next
   * optim_step. Weights of the data are for `loss` to read; they are not sent as such.
   */
  forwardBackwardCustom(data: readonly Datum[], loss: CustomLoss, options: ResultOptions = {}): Promise<CustomPass> {
    return runCustomLoss(this.#client, this, data, loss, options);
  }

  /**
   * A sampler of the weights as they are at this place in the model's order, without a name and not kept. `samplerSeqId` is
   * its number within the session, which a caller that may have to send the same call again gives itself.
   */
  sampler(options: SeqOptions & { readonly samplerSeqId?: number } = {}): Promise<Future<Sampler>> {
    const saved = this.#client.weights.saved(this.id);
    const body = {
      model_id: this.id,
      seq_id: this.#seq(options),
      sampling_session_seq_id: options.samplerSeqId ?? this.#samplerNumbers(),
      type: "save_weights_for_sampler",
    };
    return this.#submit("/save_weights_for_sampler", body, options, (answer, fail) => {
      const id = (parseJson(answer) as { sampling_session_id?: unknown } | undefined)?.sampling_session_id;
      if (typeof id !== "string") throw fail("the result has no sampling_session_id");
      return new Sampler(this.#client, id, saved);
    });
  }

  /** Loads a training checkpoint; only as a model's first call. With `optimizer`, its moments and step count too. */
  loadWeights(
    path: string,
    { optimizer, ...options }: SeqOptions & { readonly optimizer: boolean },
  ): Promise<Future<void>> {
    this.#client.weights.updated(this.id);
    const body = { model_id: this.id, seq_id: this.#seq(options), path, optimizer, type: "load_weights" };
    return this.#submit("/load_weights", body, options, () => undefined);
  }

  /** Frees the model on the server. Repeating it succeeds. */
  async unload(options: ResultOptions = {}): Promise<void> {
    const body = { model_id: this.id, type: "unload_model" };
    await (await this.#submit("/unload_model", body, options, () => undefined)).result(options);
    this.#client.weights.end(this.id);
  }

  #pass(kind: "forward" | "forward_backward", data: readonly Datum[], loss: Loss, { seqIds, signal }: PassOptions) {
    const numbers = seqIds ?? ((count: number) => this.reserve(count));
    if (seqIds) this.#nextSeqId = Math.max(this.#nextSeqId, ...seqIds.map((seqId) => seqId + 1));
    // Behind a later call of the model, a repeat would be another computation.
    const repeat = (last: number) => (this.#nextSeqId === last + 1 ? this.#nextSeqId++ : undefined);
    const again = seqIds ? {} : { repeat };
    return submitPass(this.#client, { modelId: this.id, kind, data, loss, seqIds: numbers, signal, ...again });
  }

  #save(
    kind: "save_weights" | "save_weights_for_sampler",
    name: string,
    options: SaveOptions,
    onSaved?: (path: string) => void,
  ): Promise<Future<string>> {
    const { ttlSeconds, overwrite, metadata } = options;
    const body = {
      model_id: this.id,
      seq_id: this.#seq(options),
      path: name,
      ...(ttlSeconds === undefined ? {} : { ttl_seconds: ttlSeconds }),
      ...(overwrite === undefined ? {} : { overwrite }),
      ...(metadata === undefined ? {} : { user_metadata: metadata }),
      type: kind,
    };
    return this.#submit(`/${kind}`, body, options, (answer, fail) => {
      const { path } = parseJson(answer) as { path?: string | null };
      if (typeof path !== "string") throw fail("the result has no path");
      const whole = normalCheckpointPath(path);
      onSaved?.(whole);
      return whole;
    });
  }

  #submit<T>(
    path: string,
    body: { readonly model_id: string; readonly seq_id?: number },
    { signal }: CallOptions,
    decode: (answer: HttpAnswer, fail: Fail) => T,
  ): Promise<Future<T>> {
    const submission = { method: "POST", path, body: encodeJson(body), signal, seq: body.seq_id } as const;
    return Future.submit(this.#client.transport, submission, { decode });
  }

  #seq({ seqId }: SeqOptions): number {
    const taken = seqId ?? this.#nextSeqId;
    this.#nextSeqId = Math.max(this.#nextSeqId, taken + 1);
    return taken;
  }
}
