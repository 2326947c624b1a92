/**
 * The Tinker client: one server, one credential. Sessions, models and samplers hang off it; the REST calls are its own.
 * Servers differ: optional endpoints answer 404 or 405 where they are not supported.
 */
import type { CheckpointInfo, ModelInfo, TrainingRunInfo } from "./data.ts";
import { type Encoding, encodeJson, jsonEncoding } from "./encoding.ts";
import { TinkerError } from "./errors.ts";
import { type CallOptions, parseJson } from "./future.ts";
import { normalCheckpointPath, parseCheckpointPath } from "./paths.ts";
import { Session, type SessionOptions } from "./session.ts";
import { endpointOf, type HttpRequest, Transport, type TransportOptions } from "./transport.ts";
import type { WireCheckpoint, WireTrainingRun } from "./wire.ts";

export interface TinkerClientOptions extends TransportOptions {
  /** How training data crosses the wire; JSON where absent, which every server takes. */
  readonly encoding?: Encoding;
}

/** Sent as `sdk_version`. */
const CLIENT_NAME = "rlcli";
const PAGE = 100;

export class TinkerClient {
  readonly transport: Transport;
  readonly encoding: Encoding;
  readonly #sessions = new Set<Session>();

  constructor(options: TinkerClientOptions) {
    this.transport = new Transport(options);
    this.encoding = options.encoding ?? jsonEncoding;
  }

  /** Resolves if the server answers; one try, no waiting for it to come up. */
  async health(options: CallOptions & { readonly timeoutMs?: number } = {}): Promise<void> {
    const spec: HttpRequest = { method: "GET", path: "/healthz", ...options };
    const { status } = await this.transport.once(spec);
    if (status >= 400)
      throw new TinkerError({ kind: "failed", endpoint: endpointOf(spec), status, reason: "unhealthy" });
  }

  async capabilities(options: CallOptions = {}): Promise<readonly ModelInfo[]> {
    interface Wire {
      readonly supported_models: readonly {
        readonly model_name?: string | null;
        readonly max_context_length?: number | null;
        readonly trainable?: boolean | null;
        readonly sampleable?: boolean | null;
      }[];
    }
    const { supported_models } = await this.json<Wire>("GET", "/get_server_capabilities", undefined, options);
    return supported_models.map((m) => ({
      ...(m.model_name == null ? {} : { modelName: m.model_name }),
      ...(m.max_context_length == null ? {} : { maxContextLength: m.max_context_length }),
      ...(m.trainable == null ? {} : { trainable: m.trainable }),
      ...(m.sampleable == null ? {} : { sampleable: m.sampleable }),
    }));
  }

  /** Opens a session and starts its heartbeat. */
  async createSession(options: SessionOptions & CallOptions = {}): Promise<Session> {
    const body = {
      tags: options.tags ?? [],
      user_metadata: options.metadata ?? null,
      sdk_version: CLIENT_NAME,
      type: "create_session",
    };
    const { session_id } = await this.json<{ session_id: string }>("POST", "/create_session", body, options);
    return this.#adopt(new Session(this, session_id, options));
  }

  /** Goes on with a session that an earlier process opened. Nothing is sent but its heartbeat. */
  resumeSession(sessionId: string, options: SessionOptions = {}): Session {
    return this.#adopt(new Session(this, sessionId, options));
  }

  /** Checkpoints of one run, or of all runs where the server lists those. */
  async listCheckpoints(run?: string, options: CallOptions = {}): Promise<readonly CheckpointInfo[]> {
    interface Wire {
      readonly checkpoints: readonly WireCheckpoint[];
    }
    if (run !== undefined) {
      const path = `/training_runs/${encodeURIComponent(run).replaceAll("%3A", ":")}/checkpoints`;
      return (await this.json<Wire>("GET", path, undefined, options)).checkpoints.map(checkpointInfo);
    }
    return this.#pages(options, async (offset) => {
      const query = `?limit=${PAGE}&offset=${offset}`;
      return (await this.json<Wire>("GET", `/checkpoints${query}`, undefined, options)).checkpoints.map(checkpointInfo);
    });
  }

  /** Deletes a checkpoint by its path; false if it was not there. */
  async deleteCheckpoint(path: string, options: CallOptions = {}): Promise<boolean> {
    const parts = parseCheckpointPath(path);
    if (!parts) throw new RangeError(`${path} is not a checkpoint path`);
    try {
      await this.json(
        "DELETE",
        `/training_runs/${parts.run}/checkpoints/${parts.kind}/${parts.name}`,
        undefined,
        options,
      );
      return true;
    } catch (error) {
      if (error instanceof TinkerError && error.status === 404) return false;
      throw error;
    }
  }

  async trainingRuns(options: CallOptions = {}): Promise<readonly TrainingRunInfo[]> {
    interface Wire {
      readonly training_runs: readonly WireTrainingRun[];
    }
    return this.#pages(options, async (offset) => {
      const query = `?limit=${PAGE}&offset=${offset}`;
      const page = await this.json<Wire>("GET", `/training_runs${query}`, undefined, options);
      return page.training_runs.map(trainingRunInfo);
    });
  }

  /** Base model and LoRA rank of a training checkpoint. */
  async checkpointModel(path: string, options: CallOptions = {}): Promise<{ baseModel: string; loraRank: number }> {
    interface Wire {
      readonly base_model: string;
      readonly is_lora: boolean;
      readonly lora_rank?: number | null;
    }
    const info = await this.json<Wire>("POST", "/weights_info", { tinker_path: path }, options);
    return { baseModel: info.base_model, loraRank: info.is_lora ? (info.lora_rank ?? 0) : 0 };
  }

  /** Stops the heartbeats and closes the connections. Sessions stay as they are on the server. */
  async close(): Promise<void> {
    for (const session of this.#sessions) session.stopHeartbeat();
    this.#sessions.clear();
    await this.transport.close();
  }

  /** One JSON call with the transport's retries. */
  async json<T>(method: HttpRequest["method"], path: string, body?: object, options: CallOptions = {}): Promise<T> {
    const bytes = body === undefined ? {} : { body: encodeJson(body) };
    const spec: HttpRequest = { method, path, ...bytes, signal: options.signal };
    const answer = await this.transport.send(spec);
    if (answer.status === 204 || answer.body.length === 0) return undefined as T;
    const value = parseJson(answer);
    if (value !== undefined) return value as T;
    const reason = "the answer is not JSON";
    throw new TinkerError({ kind: "failed", endpoint: endpointOf(spec), status: answer.status, reason });
  }

  #adopt(session: Session): Session {
    this.#sessions.add(session);
    return session;
  }

  async #pages<T>({ signal }: CallOptions, page: (offset: number) => Promise<readonly T[]>): Promise<readonly T[]> {
    const all: T[] = [];
    for (;;) {
      signal?.throwIfAborted();
      const items = await page(all.length);
      all.push(...items);
      if (items.length < PAGE) return all;
    }
  }
}

/** SkyRL's times carry no zone and are UTC. */
const utc = (time: string) => (/[zZ]$|[+-]\d\d:?\d\d$/.test(time) ? time : `${time}Z`);

const checkpointInfo = (wire: WireCheckpoint): CheckpointInfo => ({
  checkpointId: wire.checkpoint_id,
  type: wire.checkpoint_type,
  time: utc(wire.time),
  tinkerPath: normalCheckpointPath(wire.tinker_path),
  ...(wire.size_bytes == null ? {} : { sizeBytes: wire.size_bytes }),
});

const trainingRunInfo = (wire: WireTrainingRun): TrainingRunInfo => ({
  runId: wire.training_run_id,
  baseModel: wire.base_model,
  isLora: wire.is_lora,
  ...(wire.lora_rank == null ? {} : { loraRank: wire.lora_rank }),
  ...(wire.last_request_time === undefined ? {} : { lastRequestTime: utc(wire.last_request_time) }),
});
