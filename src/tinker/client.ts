/**
 * The Tinker client: one server, one credential. Sessions, models and samplers hang off it; the REST calls are its own.
 * Servers differ: optional endpoints answer 404 or 405 where they are not supported.
 */

import { parseJson } from "./answer.ts";
import { type Compress, runtimeZstd } from "./compress.ts";
import { DEFAULT_CONFIG, readConfig, type ServerConfig } from "./config.ts";
import type { CheckpointInfo, ModelInfo, TrainingRunInfo } from "./data.ts";
import { encodeJson } from "./encoding/json.ts";
import type { EncodingName } from "./encoding.ts";
import { TinkerError } from "./errors.ts";
import type { CallOptions } from "./future.ts";
import { type GateTimes, SamplingGate } from "./gate.ts";
import { checkpointInfo, trainingRunInfo } from "./listing.ts";
import { Pacemaker } from "./pacemaker.ts";
import { checkpointUrl, runUrl } from "./paths.ts";
import { WeightHistory } from "./quirks/freshness.ts";
import type { ServerKind } from "./quirks.ts";
import { Rest } from "./rest.ts";
import { Session, type SessionOptions } from "./session.ts";
import { endpointOf, type HttpRequest, Transport, type TransportOptions } from "./transport.ts";
import type { WireCheckpoint, WireTrainingRun } from "./wire.ts";

export interface TinkerClientOptions extends TransportOptions {
  /** How training data crosses the wire. Where absent, protobuf if the server takes it, else JSON. */
  readonly encoding?: EncodingName;
  /** Where it is known; `serverKind` finds it out. */
  readonly kind?: ServerKind;
  /** Compresses bodies where the server asks for it; the runtime's zstd where absent, `null` for never. */
  readonly compress?: Compress | null;
  /** How sampling slows down when the server says so. */
  readonly sampling?: Partial<GateTimes>;
}

/** Sent as `sdk_version`. */
const CLIENT_NAME = "rlcli";
const PAGE = 100;

export class TinkerClient {
  readonly transport: Transport;
  readonly gate: SamplingGate;
  readonly compress: Compress | undefined;
  /** Calls about runs, checkpoints and sessions that not every server has. */
  readonly rest: Rest;
  /** What the client's models have done, for servers whose samplers are no snapshots. */
  readonly weights = new WeightHistory();
  readonly pacemaker = new Pacemaker();
  readonly #sessions = new Set<Session>();
  #kind: ServerKind | undefined;
  #passEncoding: EncodingName | undefined;
  #config: Promise<ServerConfig> | undefined;

  constructor(options: TinkerClientOptions) {
    this.transport = new Transport(options);
    this.gate = new SamplingGate(options.sampling);
    this.compress = options.compress === undefined ? runtimeZstd : (options.compress ?? undefined);
    this.rest = new Rest(this);
    this.#passEncoding = options.encoding;
    this.#kind = options.kind;
  }

  /** The encoding of training data; undefined until it is settled by option or by the server's first answer. */
  get passEncoding(): EncodingName | undefined {
    return this.#passEncoding;
  }

  /** Known once it was given or probed for; samples from stale weights are refused from then on. */
  get kind(): ServerKind | undefined {
    return this.#kind;
  }

  settleKind(kind: ServerKind): void {
    this.#kind = kind;
  }

  settlePassEncoding(name: EncodingName): void {
    this.#passEncoding ??= name;
  }

  /** What the server wants; asked for once. Servers that do not say have the defaults. */
  async config(options: CallOptions = {}): Promise<ServerConfig> {
    this.#config ??= this.#askConfig();
    const asked = this.#config;
    try {
      return await abortable(asked, options.signal);
    } catch (error) {
      if (!options.signal?.aborted && this.#config === asked) this.#config = undefined;
      throw error;
    }
  }

  /** Not under the signal of the call that happens to be the first. */
  async #askConfig(): Promise<ServerConfig> {
    try {
      const flags = await this.json<Record<string, unknown>>("POST", "/client/config", { sdk_version: CLIENT_NAME });
      const config = readConfig(flags);
      if (flags.billing_exception_max_pause_duration_sec !== undefined)
        this.transport.limitBillingPause(config.billingPauseMs);
      if (config.exchangesCredential) this.transport.exchangeCredential();
      return config;
    } catch (error) {
      // Any refusal but that of the credential: the flags are advice, and not every server gives it.
      const isRefusal = error instanceof TinkerError && error.status !== undefined && error.status < 500;
      if (isRefusal && error.kind !== "busy" && error.status !== 401 && error.status !== 403) return DEFAULT_CONFIG;
      throw error;
    }
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
      const path = `${runUrl(run)}/checkpoints`;
      return (await this.json<Wire>("GET", path, undefined, options)).checkpoints.map(checkpointInfo);
    }
    return this.#pages(options, async (offset) => {
      const query = `?limit=${PAGE}&offset=${offset}`;
      return (await this.json<Wire>("GET", `/checkpoints${query}`, undefined, options)).checkpoints.map(checkpointInfo);
    });
  }

  /** Deletes a checkpoint by its path; false if it was not there. */
  async deleteCheckpoint(path: string, options: CallOptions = {}): Promise<boolean> {
    const url = checkpointUrl(path);
    try {
      await this.json("DELETE", url, undefined, options);
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
    await this.pacemaker.close();
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

/** A promise that others wait for too, for as long as the signal allows. */
function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
