/**
 * Calls about runs, checkpoints and sessions. Not every server has all of them: what is optional answers with a value
 * that says so, so that a caller need not tell a missing call from a missing thing by its status.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Archive, openArchive } from "./archive.ts";
import type { TinkerClient } from "./client.ts";
import type { SamplerInfo, SessionInfo, TrainingRunInfo } from "./data.ts";
import { isUnsupported, TinkerError } from "./errors.ts";
import type { CallOptions } from "./future.ts";
import { trainingRunInfo } from "./listing.ts";
import { checkpointUrl, runUrl } from "./paths.ts";
import type { WireTrainingRun } from "./wire.ts";

export type Supported<T> =
  | { readonly supported: true; readonly value: T }
  | { readonly supported: false; readonly reason: string };

export interface ExternalWeights {
  readonly urls: Readonly<Record<string, string>>;
  readonly expires: string;
}

export type CopyTarget = { readonly ttlSeconds?: number } & (
  | { readonly projectId: string }
  | { readonly sessionId: string; readonly modelSeqId: number }
);

const PAGE = 100;
const TRACE_POLL_MS = 2000;

export class Rest {
  readonly #client: TinkerClient;

  constructor(client: TinkerClient) {
    this.#client = client;
  }

  async trainingRun(id: string, options: CallOptions = {}): Promise<TrainingRunInfo> {
    return trainingRunInfo(await this.#client.json<WireTrainingRun>("GET", runUrl(id), undefined, options));
  }

  /** When a checkpoint is deleted by itself, counted from now; null keeps it for good. */
  setTtl(path: string, ttlSeconds: number | null, options: CallOptions = {}): Promise<Supported<void>> {
    const url = `${checkpointUrl(path)}/ttl`;
    return probing(() => this.#client.json<void>("PUT", url, { ttl_seconds: ttlSeconds }, options));
  }

  /** Lets others read a checkpoint. */
  publish(path: string, options: CallOptions = {}): Promise<Supported<void>> {
    return probing(() => this.#client.json<void>("POST", `${checkpointUrl(path)}/publish`, undefined, options));
  }

  unpublish(path: string, options: CallOptions = {}): Promise<Supported<void>> {
    // SkyRL takes the last part for a checkpoint's name and finds it malformed.
    const isAbsent = (error: unknown) => error instanceof TinkerError && error.status === 422;
    return probing(
      () => this.#client.json<void>("DELETE", `${checkpointUrl(path)}/publish`, undefined, options),
      isAbsent,
    );
  }

  /** The bytes of a checkpoint, as the server packs them. */
  archive(path: string, options: CallOptions = {}): Promise<Supported<Archive>> {
    return probing(() => openArchive(this.#client.transport, path, options));
  }

  /** A signed URL for each file of external weights, and when they end (ISO 8601). */
  externalWeightsUrls(path: string, options: CallOptions = {}): Promise<Supported<ExternalWeights>> {
    const url = `${checkpointUrl(path)}/external_weights_urls`;
    return probing(() => this.#client.json<ExternalWeights>("GET", url, undefined, options));
  }

  /** Copies a checkpoint into a run that is not trained: of a session, or of a project. Gives the copy's path. */
  copyWeights(path: string, to: CopyTarget, options: CallOptions = {}): Promise<Supported<string>> {
    const target =
      "projectId" in to
        ? { destination_project_id: to.projectId }
        : { session_id: to.sessionId, model_seq_id: to.modelSeqId };
    const body = {
      source_path: path,
      ...target,
      ...(to.ttlSeconds === undefined ? {} : { ttl_seconds: to.ttlSeconds }),
    };
    return probing(async () => {
      const wire = await this.#client.json<{ readonly tinker_path: string }>("POST", "/copy_weights", body, options);
      return wire.tinker_path;
    });
  }

  /** Ids of sessions, newest first where the server orders them. */
  sessions(options: CallOptions = {}): Promise<Supported<readonly string[]>> {
    interface Wire {
      readonly sessions: readonly string[];
    }
    return probing(async () => {
      const all: string[] = [];
      for (;;) {
        const query = `?limit=${PAGE}&offset=${all.length}`;
        const { sessions } = await this.#client.json<Wire>("GET", `/sessions${query}`, undefined, options);
        all.push(...sessions);
        if (sessions.length < PAGE) return all;
      }
    });
  }

  session(id: string, options: CallOptions = {}): Promise<Supported<SessionInfo>> {
    interface Wire {
      readonly training_run_ids: readonly string[];
      readonly sampler_ids: readonly string[];
      readonly user_metadata?: Readonly<Record<string, unknown>> | null;
    }
    return probing(async () => {
      const wire = await this.#client.json<Wire>("GET", `/sessions/${id}`, undefined, options);
      const metadata = wire.user_metadata == null ? {} : { metadata: wire.user_metadata };
      return { runIds: wire.training_run_ids, samplerIds: wire.sampler_ids, ...metadata };
    });
  }

  /**
   * The timeline of a session as the server wrote it (`.pftrace`, or the Trace Event Format from the embedded server), once it is
   * built. May be read once.
   */
  sessionTrace(id: string, options: CallOptions = {}): Promise<Supported<AsyncIterable<Uint8Array>>> {
    interface Wire {
      readonly status: "pending" | "ready" | "failed";
      readonly url?: string | null;
      readonly error?: string | null;
    }
    return probing(async () => {
      const path = `/sessions/${encodeURIComponent(id)}/trace_export`;
      for (;;) {
        const { status, url, error } = await this.#client.json<Wire>("GET", path, undefined, options);
        if (status === "ready" && typeof url === "string") return this.#client.transport.download(url, options.signal);
        if (status !== "pending")
          throw new TinkerError({
            kind: "failed",
            endpoint: `GET ${path}`,
            reason: error ?? "the timeline was not built",
          });
        await sleep(TRACE_POLL_MS, undefined, options.signal ? { signal: options.signal } : {});
      }
    });
  }

  async sampler(id: string, options: CallOptions = {}): Promise<SamplerInfo> {
    interface Wire {
      readonly sampler_id: string;
      readonly base_model: string;
      readonly model_path: string | null;
    }
    const wire = await this.#client.json<Wire>("GET", `/samplers/${id}`, undefined, options);
    const path = wire.model_path == null ? {} : { modelPath: wire.model_path };
    return { id: wire.sampler_id, baseModel: wire.base_model, ...path };
  }
}

async function probing<T>(call: () => Promise<T>, isAbsent = (_: unknown) => false): Promise<Supported<T>> {
  try {
    return { supported: true, value: await call() };
  } catch (error) {
    if (!isUnsupported(error) && !isAbsent(error)) throw error;
    return { supported: false, reason: (error as TinkerError).message };
  }
}
