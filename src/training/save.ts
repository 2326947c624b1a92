/** Durable checkpoints of a lineage, and the end of those no longer needed. */
import { setTimeout as sleep } from "node:timers/promises";
import { diagnostic, messageOf } from "../diagnostic.ts";
import { shortDigest } from "../digest.ts";
import type { TinkerClient } from "../tinker/client.ts";
import { TinkerError } from "../tinker/errors.ts";
import type { Future } from "../tinker/future.ts";
import { formatCheckpointPath } from "../tinker/paths.ts";
import { canonicalJson } from "../value.ts";
import { bestCheckpoint, type Judgement, scoreOf } from "./checkpoints.ts";
import type { Lineage } from "./lineage.ts";
import { type Run, WORK_LIMIT_MS } from "./run.ts";

type SaveKind = "weights" | "sampler_weights";

/** Carries the checkpoint's identity, so that it is known again wherever it is found. */
function saveName({ order }: Run, step: number): string {
  return `${shortDigest(order.generation)}-${order.incarnation}-${step}`;
}

/** `14ea8fbe7438/1`, the generation and incarnation in the name of a checkpoint's path; undefined for a name that is not of our making. */
export function lineageOfSave(path: string): string | undefined {
  const found = /\/([0-9a-f]{12})-(\d+)-\d+$/.exec(path);
  return found ? `${found[1]}/${found[2]}` : undefined;
}

/** What is still to be saved for the last done step. */
export function missingKinds(run: Run): readonly SaveKind[] {
  const { checkpoints, journal } = run.record;
  const step = journal.state.done;
  const known = checkpoints.at(step);
  const wantsSampler = step === run.total || isBestYet(run, judgementAt(run, step));
  return [
    ...(known ? [] : (["weights"] as const)),
    ...(wantsSampler && known?.sampler === undefined ? (["sampler_weights"] as const) : []),
  ];
}

/**
 * Makes the last done step durable: training state, and sampler weights where it is the final step or the best so far.
 * What is there already is not saved again.
 */
export async function saveCheckpoint(run: Run, lineage: Lineage): Promise<void> {
  const { record, order } = run;
  const { journal, checkpoints } = record;
  const step = journal.state.done;
  const known = checkpoints.at(step);
  const isFinal = step === run.total;
  const isMarked = !isFinal || canonicalJson(known?.final) === canonicalJson(order.length);
  const kinds = missingKinds(run);
  if (kinds.length === 0 && isMarked) return noteSaved(run, step);

  const paths = kinds.length > 0 ? await saveAll(run, lineage, step, kinds) : new Map<SaveKind, string>();
  const [training = known?.training, sampler] = [paths.get("weights"), paths.get("sampler_weights")];
  if (training === undefined) throw new RangeError("a checkpoint without training state");
  checkpoints.add({
    t: "checkpoint",
    at: record.at(),
    step,
    training,
    ...(sampler === undefined ? {} : { sampler }),
    ...judgementAt(run, step),
    ...(isFinal ? { final: order.length } : {}),
  });
  run.at("save:listed");
  noteSaved(run, step);
  record.emit({ t: "checkpoint", step, path: training });
  await prune(run, lineage.client);
}

/** What the step's line of metrics says of its weights. */
export function judgementAt({ record }: Run, step: number): Judgement {
  if (record.metrics.last?.step !== step) return {};
  const { heldOutLoss, evalReward } = record.metrics.last;
  return {
    ...(heldOutLoss === undefined ? {} : { heldOutLoss }),
    ...(evalReward === undefined ? {} : { evalReward }),
  };
}

function noteSaved({ record }: Run, step: number): void {
  if (record.journal.state.save?.step === step) record.journal.note({ t: "saved", at: record.at(), step });
}

function isBestYet({ record }: Run, judgement: Judgement): boolean {
  const best = bestCheckpoint(record.checkpoints.list);
  const [score, known] = [scoreOf(judgement), best && scoreOf(best)];
  return score !== undefined && (known === undefined || score > known);
}

async function saveAll(run: Run, lineage: Lineage, step: number, kinds: readonly SaveKind[]) {
  const { record } = run;
  const { journal } = record;
  const name = saveName(run, step);
  run.at("save:begin");
  const begun = journal.state.save;
  const isSame = begun?.step === step && begun.name === name && begun.seq.length === kinds.length;
  const seq = isSame ? begun.seq : lineage.model.reserve(kinds.length);
  if (!isSame) journal.begin({ t: "save", at: record.at(), step, name, seq });
  run.at("save:journaled");
  const paths = new Map<SaveKind, string>();
  for (const [i, kind] of kinds.entries()) paths.set(kind, await saveOne(run, lineage, kind, name, seq[i] as number));
  return paths;
}

async function saveOne(
  run: Run,
  { client, model }: Lineage,
  kind: SaveKind,
  name: string,
  seqId: number,
): Promise<string> {
  run.record.phase("saving", name);
  try {
    const submitted: Future<string> =
      kind === "weights"
        ? await model.saveWeights(name, { seqId })
        : await model.saveWeightsForSampler(name, { seqId });
    run.at(`save:${kind}-sent`);
    const path = await submitted.result({ deadlineMs: WORK_LIMIT_MS });
    run.at(`save:${kind}-done`);
    return path;
  } catch (error) {
    if (!(error instanceof TinkerError) || error.status !== 409) throw error;
    const path = formatCheckpointPath({ run: model.id, kind, name });
    if (await isListedSoon(client, model.id, path)) return path;
    throw error;
  }
}

/** How long a save that an earlier try began may take to be complete. */
const LISTED_WITHIN_MS = 120_000;
const LIST_EVERY_MS = 500;

/** A name that is taken was taken by an earlier try of this very save; it counts once the server lists it as complete. */
async function isListedSoon(client: TinkerClient, run: string, path: string): Promise<boolean> {
  const until = performance.now() + LISTED_WITHIN_MS;
  for (;;) {
    const listed = await client.listCheckpoints(run);
    if (listed.some((c) => c.tinkerPath === path)) return true;
    if (performance.now() > until) return false;
    await sleep(LIST_EVERY_MS);
  }
}

/** Deletes first and notes afterwards: a crash between leaves a deletion to repeat, never a file nobody knows of. */
export async function prune(run: Run, client: TinkerClient): Promise<void> {
  const { record, order } = run;
  for (const { step, training, sampler } of run.prunable) {
    try {
      await client.deleteCheckpoint(training);
      if (sampler !== undefined) await client.deleteCheckpoint(sampler);
      run.at("prune:deleted");
      record.checkpoints.add({ t: "pruned", at: record.at(), step });
      run.at("prune:listed");
    } catch (error) {
      if (!(error instanceof TinkerError)) throw error;
      const detail = `The checkpoint ${training} could not be deleted and is kept: ${messageOf(error)}.`;
      record.emit({ t: "warning", diagnostic: diagnostic("RL8006", detail, { address: order.address }) });
      return;
    }
  }
}
