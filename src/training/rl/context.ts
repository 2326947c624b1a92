/** What the parts of the loop share over one lineage: samplers by step, the reference, and the player of episodes. */
import { setMaxListeners } from "node:events";
import type { SamplingOrder } from "../../environment-order.ts";
import type { Environment } from "../../environments/environment.ts";
import { Limit } from "../../environments/limit.ts";
import type { JournalEntry } from "../../run-record.ts";
import type { Future } from "../../tinker/future.ts";
import type { Sampler } from "../../tinker/sampler.ts";
import type { Lineage } from "../lineage.ts";
import { WORK_LIMIT_MS } from "../run.ts";
import { type Player, SEQ_OF_A_PLAYER } from "./play.ts";
import type { RlRun } from "./rl-run.ts";

/** Waiting longer than this for one thing is said aloud. */
const QUIET_WAIT_MS = 30_000;

export class RlContext {
  readonly run: RlRun;
  readonly lineage: Lineage;
  /** Aborted where the lineage is given up: nothing more is sampled for it. */
  readonly stop = new AbortController();
  readonly #limit: Limit;
  readonly #samplers = new Map<number, Promise<Future<Sampler>>>();
  #reference: Promise<Sampler> | undefined;
  #quietUntil = 0;

  private constructor(run: RlRun, lineage: Lineage, samplesAtOnce: number) {
    this.run = run;
    this.lineage = lineage;
    this.#limit = new Limit(samplesAtOnce);
    // Every sample and every grade listens to it; that many listeners are no leak.
    setMaxListeners(0, this.stop.signal);
  }

  static async open(run: RlRun, lineage: Lineage): Promise<RlContext> {
    const { samplesAtOnce } = await lineage.client.config();
    return new RlContext(run, lineage, samplesAtOnce);
  }

  /**
   * The journal's entry for a sampler of the weights before a step, where it has none yet: on disk before `requestSampler` sends it.
   */
  samplerEntry(step: number): readonly Extract<JournalEntry, { t: "sampler" }>[] {
    const { record } = this.run;
    if (record.journal.state.samplers.has(step)) return [];
    return [{ t: "sampler", at: record.at(), step, seq: this.lineage.model.reserve(1) }];
  }

  /**
   * Asks for a sampler of the weights before a step: behind all calls so far in the model's order, so it need not be waited
   * for. After a crash the same call gives the same sampler.
   */
  requestSampler(step: number): Promise<Future<Sampler>> {
    const known = this.#samplers.get(step);
    if (known) return known;
    const { journal } = this.run.record;
    journal.begin(...this.samplerEntry(step));
    this.run.at("sampler:journaled");
    const seqId = journal.state.samplers.get(step)?.seq[0] as number;
    const asked = this.lineage.model.sampler({ seqId, samplerSeqId: seqId });
    this.#samplers.set(step, asked);
    // Older samplers are not asked for again.
    for (const old of this.#samplers.keys()) if (old < step - 1) this.#samplers.delete(old);
    return asked;
  }

  async samplerOf(step: number): Promise<Sampler> {
    const future = await this.requestSampler(step);
    const sampler = await future.result(this.waiting(`the weights before step ${step}`));
    this.run.at("sampler:ready");
    return sampler;
  }

  /** A sampler of the KL penalty's reference. */
  reference(): Promise<Sampler> {
    const { rl } = this.run;
    const source = rl.reference === undefined ? { baseModel: this.lineage.baseModel } : { modelPath: rl.reference };
    this.#reference ??= this.lineage.session.createSampler(source);
    return this.#reference;
  }

  /** A player of episodes with the sampler of a step. `place` 0 is the run's own, evals follow. */
  player(
    sampler: Sampler,
    step: number,
    of: { environment: Environment; sampling: SamplingOrder; seed: number; templateKwargs: Player["templateKwargs"] },
    place = 0,
  ): Player {
    return {
      ...of,
      renderer: this.run.parts.renderer,
      sampler,
      weights: step - 1,
      limit: this.#limit,
      firstSeq: place * SEQ_OF_A_PLAYER,
      signal: this.stop.signal,
      onWaiting: (what, waitedMs) => this.#say(what, waitedMs),
    };
  }

  /** Options for a wait that is said aloud once it is long. */
  waiting(what: string) {
    return {
      deadlineMs: WORK_LIMIT_MS,
      onWaiting: (waitedMs: number, state: string | undefined) =>
        this.#say(state === undefined ? what : `${what} (${state})`, waitedMs),
    };
  }

  /** Many things are waited for at once; one word in a while is enough. */
  #say(what: string, waitedMs: number): void {
    const now = performance.now();
    if (waitedMs < QUIET_WAIT_MS || now < this.#quietUntil) return;
    this.#quietUntil = now + QUIET_WAIT_MS;
    this.run.record.phase("waiting", `for ${what} since ${Math.round(waitedMs / 1000)} s`);
  }
}
