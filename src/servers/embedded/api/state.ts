/**
 * What the API remembers while it runs: sessions, models, samplers. Handlers change it; computation is elsewhere.
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../diagnostic.ts";
import type { Digest } from "../../../digest.ts";
import { type LoraSettings, type ModelRole, runFolder, UNNAMED_FOLDER } from "../../checkpoints.ts";
import { ComputeError, type Computer } from "../computer.ts";
import type { WeightSource } from "../messages.ts";
import { Completions } from "./completions.ts";
import { HttpError, refuse } from "./errors.ts";
import { type FutureResult, Futures } from "./futures.ts";
import { CallNumbers, type CallOrder } from "./order.ts";
import { Timelines } from "./trace.ts";

/** Unnamed sampler weights of one model that are kept, newest first. */
const MOST_UNNAMED = 64;
/** How long ended sessions are still known as such, beyond their last sign of life. */
const FORGET_MS = 3_600_000;

export interface ApiSettings {
  /** As the spec names it: `builtin:tiny` or a folder. */
  readonly model: string;
  /** Where its tokenizer and weights are: what clients are told to load the tokenizer from. */
  readonly modelFolder: string;
  readonly serverFolder: string;
  /** Random, one per start of the server. */
  readonly serverRun: string;
  /** A session without a sign of life for so long is ended. */
  readonly sessionTimeoutMs: number;
  /** How long retrieve_future holds a connection. */
  readonly holdMs: number;
}

export interface Session {
  readonly id: string;
  readonly createdAt: string;
  readonly userMetadata: Readonly<Record<string, unknown>> | null;
  readonly displayName: string | null;
  project: string | null;
  /** What the client said when it finished. */
  finish?: { readonly reason: string; readonly detail: string | null } | undefined;
  status: "live" | "expired" | "finished";
  /** Of the last heartbeat or call, in ms since the epoch. */
  lastSeenMs: number;
  readonly models: ModelEntry[];
  readonly samplers: SamplerEntry[];
  readonly modelCalls: CallNumbers;
  readonly samplerCalls: CallNumbers;
}

export interface ModelEntry {
  /** `{session}:train:{model_seq_id}`. */
  readonly id: string;
  readonly session: Session;
  readonly lora: LoraSettings | null;
  readonly role: ModelRole;
  status: "created" | "unloaded";
  readonly order: CallOrder;
  /** `{kind}/{name}` of saves under way. */
  readonly saving: Set<string>;
  lastRequestAt: string;
}

export interface SamplerEntry {
  readonly id: string;
  readonly session: Session;
  /** The path it was made from, where there was one. */
  readonly modelPath: string | null;
  readonly source: WeightSource;
  readonly calls: CallNumbers;
  /** Of the original client and its clones, by the clone's number. */
  readonly completions: Map<number, Completions>;
  /** Clones that have asked for their number. */
  clones: number;
  /** The model whose unnamed weights it samples. */
  readonly unnamedOf?: string;
  /** Whether those are gone, because newer ones took their place. */
  isDropped?: boolean;
}

/** The body of a submit's answer. */
export interface Submitted {
  readonly request_id: string;
  readonly model_id?: string;
}

export class ApiState {
  readonly settings: ApiSettings;
  readonly computer: Computer;
  readonly futures: Futures;
  readonly timelines = new Timelines();
  readonly sessions = new Map<string, Session>();
  readonly models = new Map<string, ModelEntry>();
  readonly samplers = new Map<string, SamplerEntry>();

  constructor(settings: ApiSettings, computer: Computer) {
    this.settings = settings;
    this.computer = computer;
    this.futures = new Futures(`r${settings.serverRun.slice(0, 8)}`);
  }

  createSession(given: Pick<Session, "userMetadata" | "displayName" | "project">): Session {
    const session: Session = {
      id: `session_${randomBytes(6).toString("hex")}`,
      createdAt: new Date().toISOString(),
      ...given,
      status: "live",
      lastSeenMs: Date.now(),
      models: [],
      samplers: [],
      modelCalls: new CallNumbers(),
      samplerCalls: new CallNumbers(),
    };
    this.sessions.set(session.id, session);
    return session;
  }

  /** A live session, marked as seen now. 404 or 410. */
  session(id: string): Session {
    const session = this.sessions.get(id) ?? refuse(404, `Session ${id} not found`);
    if (session.status !== "live")
      refuse(
        410,
        `Session ${id} has ${session.status === "expired" ? "expired: no heartbeat came in time" : "finished"}.`,
      );
    session.lastSeenMs = Date.now();
    return session;
  }

  /** 404; 410 where its session has ended. */
  model(id: string): ModelEntry {
    const model = this.models.get(id) ?? refuse(404, `Model ${id} not found`);
    this.session(model.session.id);
    model.lastRequestAt = new Date().toISOString();
    return model;
  }

  sampler(id: string): SamplerEntry {
    const sampler = this.samplers.get(id) ?? refuse(404, `Sampling session ${id} not found`);
    this.session(sampler.session.id);
    if (sampler.isDropped)
      refuse(410, `The weights of sampling session ${id} had no name and are dropped: newer ones took their place.`);
    return sampler;
  }

  completionsOf({ completions }: SamplerEntry, clone: number): Completions {
    const known = completions.get(clone) ?? new Completions();
    completions.set(clone, known);
    return known;
  }

  /** Runs what reads and submits a call of a model; if it is refused, later calls do not wait for its number. */
  reading<T>(model: ModelEntry, seq: number | undefined, submit: () => T): T {
    try {
      return submit();
    } catch (error) {
      // A conflict is about a number that another call has, or a name: the order is not at fault.
      if (error instanceof HttpError && error.status !== 409) model.order.refuse(seq);
      throw error;
    }
  }

  /** Submits a call of a model in its order, or finds the request that it repeats. */
  submitInOrder(
    model: ModelEntry,
    seq: number | undefined,
    digest: Digest,
    work: () => Promise<FutureResult>,
  ): Submitted {
    const repeated = model.order.repeatOf(seq, digest);
    if (repeated !== undefined) return { request_id: repeated, model_id: model.id };
    const requestId = this.futures.create(model.session.id);
    const waits = model.order.add(seq, { digest, requestId }, () => void this.start(requestId, work));
    if (waits) this.futures.explain(requestId, `waiting for sequence number ${model.order.next} of ${model.id}`);
    return { request_id: requestId, model_id: model.id };
  }

  /** Starts work whose outcome the future will have; tells whether it succeeded. */
  async start(requestId: string, work: () => Promise<FutureResult>): Promise<boolean> {
    this.futures.explain(requestId, undefined);
    try {
      this.futures.settle(requestId, { ok: true, result: await work() });
      this.timelines.ended(requestId, true);
      return true;
    } catch (error) {
      const isTheirs = error instanceof HttpError || (error instanceof ComputeError && error.category === "user");
      const category = isTheirs ? "user" : "server";
      this.futures.settle(requestId, { ok: false, error: messageOf(error), category });
      this.timelines.ended(requestId, false);
      return false;
    }
  }

  /** Frees what a session holds. Its calls that still wait for their turn fail, its samples are given up; saved checkpoints stay. */
  endSession(session: Session, status: "expired" | "finished", finish?: Session["finish"]): void {
    if (session.status !== "live") return;
    session.status = status;
    session.finish = finish;
    for (const model of session.models) this.unload(model);
    for (const sampler of session.samplers) this.samplers.delete(sampler.id);
    for (const ticket of this.futures.abandonSamples(session.id))
      this.computer.run({ op: "cancel", ticket }).catch(() => {
        // A dead compute thread samples nothing any more.
      });
    this.#removeUnnamed(session);
  }

  /** Frees a model in training. What was sent before still runs; calls that wait for a missing number fail. */
  unload(model: ModelEntry): Promise<unknown> {
    if (model.status === "unloaded") return Promise.resolve();
    model.status = "unloaded";
    const unloading = this.computer.run({ op: "unload", model: model.id });
    model.order.flush();
    return unloading.catch(() => {
      // A dead compute thread holds nothing any more.
    });
  }

  /** Ends sessions without a sign of life, and drops old results. To be called now and then. */
  sweep(nowMs = Date.now()): void {
    for (const session of this.sessions.values()) {
      if (session.status === "live" && nowMs - session.lastSeenMs > this.settings.sessionTimeoutMs)
        this.endSession(session, "expired");
      if (session.status !== "live" && nowMs - session.lastSeenMs > FORGET_MS) {
        this.sessions.delete(session.id);
        this.timelines.forget(session.id);
        for (const { id } of session.models) this.models.delete(id);
      }
    }
    this.futures.sweep((id) => this.sessions.get(id)?.status === "live");
  }

  /** Drops a model's oldest unnamed weights beyond a number: a long run saves them at every step. */
  pruneUnnamed(model: ModelEntry): void {
    const kept = model.session.samplers.filter(({ unnamedOf, isDropped }) => unnamedOf === model.id && !isDropped);
    for (const sampler of kept.slice(0, -MOST_UNNAMED)) {
      sampler.isDropped = true;
      rmSync(this.unnamedFolder(model, sampler.id), { recursive: true, force: true });
    }
  }

  /** Folder of a session's unnamed sampler weights below a model's run. */
  unnamedFolder(model: ModelEntry, samplerId: string): string {
    return join(runFolder(this.settings.serverFolder, model.id), UNNAMED_FOLDER, samplerId);
  }

  #removeUnnamed(session: Session): void {
    for (const { id } of session.models)
      rmSync(join(runFolder(this.settings.serverFolder, id), UNNAMED_FOLDER), { recursive: true, force: true });
  }
}
