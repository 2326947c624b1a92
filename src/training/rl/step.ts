/**
 * One step: sample, grade, compare, train. Groups are sent in parts whose membership is fixed by their numbers, so that a step
 * that is done again sends the same bytes under the same numbers; each part is on disk before it is sent, and so are the
 * rollouts that it is made of.
 */
import { performance } from "node:perf_hooks";
import { fail } from "../../diagnostic.ts";
import { lossNamed } from "../../losses/registry.ts";
import type { JournalEntry } from "../../run-record.ts";
import type { Datum, PassResult } from "../../tinker/data.ts";
import type { Future, Pending } from "../../tinker/future.ts";
import { planStep } from "../../tinker/quirks/reduction.ts";
import { SERVER_TRAITS } from "../../tinker/quirks.ts";
import { digestData, wireLoss } from "../batch.ts";
import { type Gradient, planGradient, requestCounts, sendGradient } from "../gradient.ts";
import { answerTokens, type Divisor, type PenaltySettings, referenceDrift, rlData } from "./batch.ts";
import type { RlContext } from "./context.ts";
import { type JudgedGroup, type PartPlace, planParts, type Scored } from "./groups.ts";
import type { SampledStep } from "./sampling.ts";

type PartEntry = Extract<JournalEntry, { t: "part" }>;
type UpdateEntry = Extract<JournalEntry, { t: "update" }>;

interface SentPart {
  /** What the loss is the sum over, as every server understands it. */
  readonly data: readonly Datum[];
  readonly pass: Pending<PassResult>;
  readonly forwardMs: number;
}

/** A part that is ready to be sent. */
interface Part {
  readonly gradient: Gradient;
  readonly entry: PartEntry;
}

/** A step all of which the server has taken. */
export interface SentRlStep {
  readonly step: number;
  readonly groups: readonly JudgedGroup[];
  readonly parts: readonly SentPart[];
  readonly updates: readonly Future<Readonly<Record<string, number>>>[];
  readonly learningRate: number;
  /** Milliseconds from the first sample to the last grade. */
  readonly sampledMs: number;
  readonly forwardMs: number;
}

/** Sends a step as its groups end. */
export async function sendStep(context: RlContext, step: number, sampled: SampledStep): Promise<SentRlStep> {
  const sending = new Sending(context, step, sampled);
  return sending.run();
}

class Sending {
  readonly #context: RlContext;
  readonly #step: number;
  readonly #sampled: SampledStep;
  readonly #parts: SentPart[] = [];
  readonly #updates: Future<Readonly<Record<string, number>>>[] = [];
  readonly #begun: readonly (PartEntry | UpdateEntry)[];
  /** Of all groups together, once they have ended. */
  #penalty: PenaltySettings | undefined;

  constructor(context: RlContext, step: number, sampled: SampledStep) {
    this.#context = context;
    this.#step = step;
    this.#sampled = sampled;
    this.#begun = context.run.record.journal.state.sent.filter((entry) => entry.step === step);
  }

  async run(): Promise<SentRlStep> {
    const { run, lineage } = this.#context;
    const { substeps, minibatches } = run.order.settings;
    const startedAt = performance.now();
    const all = Promise.all(this.#sampled.groups);
    const sampledMs = all.then(() => performance.now() - startedAt);
    sampledMs.catch(() => {});
    // A server that averages needs to know all of an update at once.
    const isSummed = SERVER_TRAITS[lineage.kind].reduction === "sum";
    const places = planParts(this.#sampled.groups.length, substeps, isSummed ? minibatches : 1);
    const last = places.at(-1);
    let isTouched = false;
    for (const place of places) {
      const data = await this.#dataOf(place, places);
      isTouched ||= data.length > 0;
      const part = data.length > 0 ? await this.#partOf(place, data) : undefined;
      const update = place.isLast && isTouched ? this.#updateOf(place.substep) : undefined;
      // The next step's weights are those behind this update.
      const sampler = place === last && this.#isFollowed ? this.#context.samplerEntry(this.#step + 1) : [];
      this.#begin([...(part ? [part.entry] : []), ...(update ? [update] : []), ...sampler]);
      if (part) this.#parts.push(await this.#sendPart(part, data));
      if (!update) continue;
      // Where sampling reads the weights in training, they must stand still until all of the step is sampled.
      if (SERVER_TRAITS[lineage.kind].samplers !== "snapshots") await all;
      this.#updates.push(await this.#sendUpdate(update));
      isTouched = false;
    }
    if (this.#isFollowed) await this.#context.requestSampler(this.#step + 1);
    return {
      step: this.#step,
      groups: await all,
      parts: this.#parts,
      updates: this.#updates,
      learningRate: run.learningRate(this.#step),
      sampledMs: await sampledMs,
      forwardMs: this.#parts.reduce((sum, { forwardMs }) => sum + forwardMs, 0),
    };
  }

  /** The part's data, once all groups have ended that it depends on. */
  async #dataOf(place: PartPlace, places: readonly PartPlace[]): Promise<readonly Datum[]> {
    const { normalize, kl_penalty } = this.#context.run.order.settings;
    const inSubstep = places.filter(({ substep }) => substep === place.substep);
    const [from, to] = [inSubstep[0]?.from ?? 0, inSubstep.at(-1)?.to ?? 0];
    const { groups } = this.#sampled;
    const own = await Promise.all(groups.slice(place.from, place.to));
    const around = normalize === "token" ? await Promise.all(groups.slice(from, to)) : own;
    if (kl_penalty > 0) this.#penalty ??= penaltyOf(await Promise.all(groups), kl_penalty);
    return rlData(scoredOf(own), this.#divisor(around, to - from), this.#penalty);
  }

  #divisor(around: readonly JudgedGroup[], groups: number): Divisor {
    const { normalize, group_size } = this.#context.run.order.settings;
    if (normalize === "sequence") return { normalize, count: groups * group_size };
    const count = scoredOf(around).reduce((sum, { rollout }) => sum + answerTokens(rollout), 0);
    return { normalize, count };
  }

  /** The part's requests and its entry, which is the one that it was begun with, if it was. */
  async #partOf(place: PartPlace, data: readonly Datum[]): Promise<Part> {
    const { run, lineage } = this.#context;
    const gradient = this.#gradientOf(data);
    const batch = digestData(data);
    const known = this.#begun.find((entry): entry is PartEntry => entry.t === "part" && entry.part === place.part);
    if (known && known.batch !== batch) {
      const detail = `Step ${this.#step} of ${run.order.address} was begun with other data than its rollouts give now, so it cannot be sent again as it was. Start a new incarnation with \`rlcli apply --replace ${run.order.address}\`.`;
      fail("RL8007", detail, { address: run.order.address });
    }
    if (known) return { gradient, entry: known };
    const { forward, backward } = await requestCounts(lineage.model, gradient);
    const seq = lineage.model.reserve(forward + backward);
    return {
      gradient,
      entry: { t: "part", at: run.record.at(), step: this.#step, part: place.part, seq, batch },
    };
  }

  #updateOf(substep: number): UpdateEntry {
    const { run, lineage } = this.#context;
    const known = this.#begun.find((e): e is UpdateEntry => e.t === "update" && e.substep === substep);
    if (known) return known;
    const at = run.record.at();
    const learningRate = run.learningRate(this.#step);
    return { t: "update", at, step: this.#step, substep, seq: lineage.model.reserve(1), learningRate };
  }

  /** Puts what is new on disk, after the rollouts that it is made of. */
  #begin(entries: readonly JournalEntry[]): void {
    const { run } = this.#context;
    const fresh = entries.filter((entry) => !(this.#begun as readonly JournalEntry[]).includes(entry));
    if (fresh.some(({ t }) => t === "part")) this.#sampled.sync();
    run.at("part:rollouts-synced");
    run.record.journal.begin(...fresh);
    run.at("part:journaled");
  }

  async #sendPart({ gradient, entry }: Part, data: readonly Datum[]): Promise<SentPart> {
    const { run, lineage } = this.#context;
    const { pass, forwardMs } = await sendGradient(lineage.model, gradient, entry.seq);
    run.at("part:sent");
    return { data: this.#plainData(gradient, data), pass, forwardMs };
  }

  /** The data as the loss's formula takes it: where it reads weights as a mask, what they scale is put into the advantages. */
  #plainData(gradient: Gradient, data: readonly Datum[]): readonly Datum[] {
    const { reduction, readsRlWeights } = SERVER_TRAITS[this.#context.lineage.kind];
    // Such a server is sent just that.
    if (gradient.type === "fused" && reduction === "sum" && readsRlWeights) return gradient.data;
    const name = this.#context.run.order.settings.loss.type;
    if (!lossNamed(name)?.perSequence) return data;
    const plan = planStep("embedded", { name }, data);
    return plan.type === "send" ? plan.data : data;
  }

  /** Whether anybody will sample the weights after this step. */
  get #isFollowed(): boolean {
    const { run } = this.#context;
    return this.#step < run.total || run.evaluatesAt(this.#step);
  }

  #gradientOf(data: readonly Datum[]): Gradient {
    const { run, lineage } = this.#context;
    const { loss } = run.order.settings;
    const plan = planGradient(lineage.kind, wireLoss(loss), data, loss.strategy);
    if (plan.type !== "refused") return plan;
    const { address } = run.order;
    return fail("RL8011", `${address} cannot train there: ${plan.reason}.`, { address });
  }

  async #sendUpdate({ seq, learningRate }: UpdateEntry): Promise<Future<Readonly<Record<string, number>>>> {
    const { run, lineage } = this.#context;
    const params = { learning_rate: learningRate, ...run.order.settings.optimizer };
    const update = await lineage.model.optimStep(params, { seqId: seq[0] as number });
    run.at("update:sent");
    return update;
  }
}

const scoredOf = (groups: readonly JudgedGroup[]): readonly Scored[] => groups.flatMap(({ scored }) => scored);

function penaltyOf(groups: readonly JudgedGroup[], weight: number): PenaltySettings {
  return { weight, mean: referenceDrift(groups.flatMap(({ rollouts }) => rollouts)) };
}
