/** A session: what keeps models alive on the server, through its heartbeat. */

import { parseJson } from "./answer.ts";
import type { TinkerClient } from "./client.ts";
import { encodeJson } from "./encoding/json.ts";
import { isUnsupported, TinkerError } from "./errors.ts";
import { type CallOptions, Future, type ResultOptions } from "./future.ts";
import { TrainingModel } from "./model.ts";
import { normalCheckpointPath, parseCheckpointPath } from "./paths.ts";
import { Sampler } from "./sampler.ts";

export interface SessionOptions {
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  /** 10 s where absent: servers drop a session after minutes of silence. */
  readonly heartbeatMs?: number;
  /** Told once when the server says that the session is gone. */
  readonly onGone?: (error: TinkerError) => void;
}

export interface ModelOptions {
  readonly baseModel: string;
  /** 0 trains all weights. */
  readonly loraRank: number;
  /** For the initial adapter. */
  readonly seed?: number;
  /** Which layers an adapter has; all where absent. SkyRL has its own choice and ignores it. */
  readonly layers?: { readonly attention: boolean; readonly mlp: boolean; readonly unembedding: boolean };
  /** `critic` predicts values instead of tokens; few servers have it. */
  readonly role?: "policy" | "critic";
  readonly metadata?: Readonly<Record<string, string>>;
  /** Position of the model within the session; the session's counter where absent. */
  readonly modelSeqId?: number;
}

const HEARTBEAT_MS = 10_000;
const HEARTBEAT_TIMEOUT_MS = 10_000;
const HEARTBEAT_PATH = "/session_heartbeat";

const heartbeatBody = (session: string) => ({ session_id: session, type: "session_heartbeat" });

export class Session {
  readonly id: string;
  readonly client: TinkerClient;
  readonly #options: SessionOptions;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #guard: NodeJS.Timeout | undefined;
  #nextModel = 0;
  #nextSampler = 0;
  #isGone = false;

  constructor(client: TinkerClient, id: string, options: SessionOptions) {
    this.client = client;
    this.id = id;
    this.#options = options;
    this.#everyMs = options.heartbeatMs ?? HEARTBEAT_MS;
    this.#timer = setInterval(() => void this.#beat(), this.#everyMs);
    this.#guard = setTimeout(() => void this.#tellPacemaker(), this.#everyMs / 2);
    // A heartbeat alone must not keep a finished process running.
    this.#timer.unref();
    this.#guard.unref();
  }

  /** Whether the server has said that the session is gone. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Says that the work is over, so that the server need not wait for the silence. Nothing where it has no such call. */
  async finish(options: CallOptions = {}): Promise<void> {
    this.stopHeartbeat();
    const body = { reason: { type: "success" }, detail: null };
    try {
      await this.client.json("POST", `/sessions/${this.id}/finish`, body, options);
    } catch (error) {
      if (!isUnsupported(error)) throw error;
    }
  }

  /** One heartbeat now. Throws a `gone` error if the server does not know the session (any more). */
  async heartbeat(options: CallOptions = {}): Promise<void> {
    await this.client.json("POST", HEARTBEAT_PATH, heartbeatBody(this.id), options);
  }

  async createModel(options: ModelOptions, call: ResultOptions = {}): Promise<TrainingModel> {
    const { transport } = this.client;
    const modelSeqId = options.modelSeqId ?? this.#nextModel;
    this.#nextModel = Math.max(this.#nextModel, modelSeqId + 1);
    const body = encodeJson({
      session_id: this.id,
      model_seq_id: modelSeqId,
      base_model: options.baseModel,
      lora_config: loraConfig(options),
      ...(options.role === undefined ? {} : { model_role: options.role }),
      user_metadata: options.metadata ?? null,
      type: "create_model",
    });
    const submission = { method: "POST", path: "/create_model", body, signal: call.signal } as const;
    const future = await Future.submit(transport, submission, {
      decode: (answer, fail) => {
        const id = (parseJson(answer) as { model_id?: unknown } | undefined)?.model_id;
        if (typeof id !== "string") throw fail("the result has no model_id");
        return id;
      },
    });
    return this.resumeModel(await future.result(call), 1);
  }

  /**
   * A new model with the weights of a training checkpoint, of the same base and rank. With `optimizer`, its moments and
   * step count too. In one call where the server has it, else as a new model that is loaded.
   */
  async createModelFrom(
    path: string,
    { optimizer, metadata }: { readonly optimizer: boolean; readonly metadata?: Readonly<Record<string, string>> },
    call: ResultOptions = {},
  ): Promise<TrainingModel> {
    const modelSeqId = this.#nextModel++;
    const created = await this.#loadAsNew(path, optimizer, modelSeqId, metadata ?? null, call);
    if (created) return created;
    const { baseModel, loraRank } = await this.client.checkpointModel(path, call);
    const more = metadata === undefined ? {} : { metadata };
    const model = await this.createModel({ baseModel, loraRank, modelSeqId, ...more }, call);
    await (await model.loadWeights(path, { optimizer, signal: call.signal })).result(call);
    return model;
  }

  /** Undefined where the server does not know this form of the call. */
  async #loadAsNew(
    path: string,
    optimizer: boolean,
    modelSeqId: number,
    metadata: Readonly<Record<string, string>> | null,
    call: ResultOptions,
  ): Promise<TrainingModel | undefined> {
    const body = encodeJson({
      session_id: this.id,
      model_seq_id: modelSeqId,
      path,
      optimizer,
      user_metadata: metadata,
      type: "load_weights",
    });
    const submission = { method: "POST", path: "/load_weights", body, signal: call.signal } as const;
    try {
      const future = await Future.submit(this.client.transport, submission, {
        decode: (answer) => (parseJson(answer) as { model_id?: string | null } | undefined)?.model_id,
      });
      return this.resumeModel((await future.result(call)) ?? `${this.id}:train:${modelSeqId}`, 1);
    } catch (error) {
      if (error instanceof TinkerError && error.status === 422) return undefined;
      if (isUnsupported(error)) return undefined;
      throw error;
    }
  }

  /** Goes on with a model that an earlier process made; `nextSeqId` is the first number not used by it. */
  resumeModel(modelId: string, nextSeqId: number): TrainingModel {
    return new TrainingModel(this.client, modelId, () => this.#nextSampler++, nextSeqId);
  }

  /** Samples from a base model or from sampler weights. */
  async createSampler(
    source: { readonly baseModel: string } | { readonly modelPath: string },
    options: CallOptions = {},
  ): Promise<Sampler> {
    const from = "baseModel" in source ? { base_model: source.baseModel } : { model_path: source.modelPath };
    const body = {
      session_id: this.id,
      sampling_session_seq_id: this.#nextSampler++,
      ...from,
      type: "create_sampling_session",
    };
    interface Wire {
      readonly sampling_session_id: string;
    }
    const { sampling_session_id } = await this.client.json<Wire>("POST", "/create_sampling_session", body, options);
    const path = "modelPath" in source ? normalCheckpointPath(source.modelPath) : undefined;
    const saved = path && this.client.weights.ofPath(path, parseCheckpointPath(path)?.run);
    return new Sampler(this.client, sampling_session_id, saved || undefined);
  }

  stopHeartbeat(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#guard);
    this.#timer = undefined;
    this.client.pacemaker.forget(this.id);
  }

  async #tellPacemaker(): Promise<void> {
    try {
      const address = await this.client.transport.addressOf(HEARTBEAT_PATH);
      if (this.#timer === undefined) return;
      const body = JSON.stringify(heartbeatBody(this.id));
      this.client.pacemaker.heard({ session: this.id, ...address, body, everyMs: this.#everyMs });
    } catch {
      // No credential at the moment: the beat itself will say so.
    }
  }

  /** Failures are left to the next beat and to the calls themselves, except the news that the session is gone. */
  async #beat(): Promise<void> {
    void this.#tellPacemaker();
    try {
      await this.heartbeat({ signal: AbortSignal.timeout(HEARTBEAT_TIMEOUT_MS) });
    } catch (error) {
      if (!(error instanceof TinkerError) || error.kind !== "gone" || this.#isGone) return;
      this.#isGone = true;
      this.stopHeartbeat();
      this.#options.onGone?.(error);
    }
  }
}

const loraConfig = ({ loraRank, seed, layers }: ModelOptions) => ({
  rank: loraRank,
  ...(seed === undefined ? {} : { seed }),
  ...(layers &&
    loraRank > 0 && { train_attn: layers.attention, train_mlp: layers.mlp, train_unembed: layers.unembedding }),
});
