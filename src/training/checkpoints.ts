/** The list of a run's durable checkpoints, and which of them may go. */
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import { JsonLinesFile, readJsonLines } from "../files.ts";
import { type CheckpointLine, RUN_RECORD_VERSION, type RunLength } from "../run-record.ts";
import { canonicalJson } from "../value.ts";
import { damagedLine, newerFormat } from "./journal.ts";

export interface DurableCheckpoint {
  readonly step: number;
  readonly training: string;
  readonly sampler?: string;
  readonly heldOutLoss?: number;
  readonly evalReward?: number;
  /** The length of which this was the end. */
  readonly final?: RunLength;
  /** By hand. */
  readonly accepted?: true;
}

function isLine(value: unknown): value is CheckpointLine {
  const { t, step, training } = (value ?? {}) as Record<string, unknown>;
  return Number.isSafeInteger(step) && (t === "pruned" || (t === "checkpoint" && typeof training === "string"));
}

function foldLine(list: readonly DurableCheckpoint[], line: CheckpointLine): readonly DurableCheckpoint[] {
  const before = list.find((c) => c.step === line.step);
  const others = list.filter((c) => c.step !== line.step);
  if (line.t === "pruned") return others;
  const { t: _t, at: _at, ...fields } = line;
  const rest = fields.final === undefined ? others : others.map((other) => withoutFinal(other, fields.final));
  return [...rest, { ...before, ...fields }].sort((a, b) => a.step - b.step);
}

/** A length has one end: what is accepted later takes the place of what was before. */
function withoutFinal(checkpoint: DurableCheckpoint, length: RunLength | undefined): DurableCheckpoint {
  const { final, accepted: _, ...rest } = checkpoint;
  return final !== undefined && canonicalJson(final) === canonicalJson(length) ? rest : checkpoint;
}

/** Durable checkpoints by step. A torn last line is no fault; any other bad line is RL3007. */
export function readCheckpoints(path: string): { list: readonly DurableCheckpoint[]; diagnostics: Diagnostic[] } {
  const { values, bad, formatVersion } = readJsonLines<unknown>(path);
  const diagnostics = [...newerFormat(path, formatVersion), ...bad.map((line) => damagedLine(path, line))];
  const wrong = values.findIndex((value) => !isLine(value));
  if (wrong >= 0) {
    diagnostics.push(diagnostic("RL3007", `${path} has an entry that is no checkpoint: number ${wrong + 1}.`));
  }
  return { list: values.filter(isLine).reduce(foldLine, []), diagnostics };
}

/** What was measured of a step's weights, by which checkpoints are compared. */
export interface Judgement {
  readonly heldOutLoss?: number;
  readonly evalReward?: number;
}

/** A number that is higher the better the weights are; undefined where nothing was measured. */
export function scoreOf({ heldOutLoss, evalReward }: Judgement): number | undefined {
  return evalReward ?? (heldOutLoss === undefined ? undefined : -heldOutLoss);
}

/** The checkpoint with the highest reward of an eval, or the lowest held-out loss; the earliest of equals. */
export function bestCheckpoint(list: readonly DurableCheckpoint[]): DurableCheckpoint | undefined {
  let best: DurableCheckpoint | undefined;
  for (const checkpoint of list) {
    const score = scoreOf(checkpoint);
    if (score !== undefined && score > ((best && scoreOf(best)) ?? Number.NEGATIVE_INFINITY)) best = checkpoint;
  }
  return best;
}

/** What may go: neither among the last `keepLast` (at least the newest) nor a final one nor the best. */
export function prunable(list: readonly DurableCheckpoint[], keepLast: number): readonly DurableCheckpoint[] {
  const best = bestCheckpoint(list);
  const older = list.slice(0, Math.max(0, list.length - Math.max(1, keepLast)));
  return older.filter((c) => c.final === undefined && c !== best);
}

export class CheckpointList {
  readonly #file: JsonLinesFile;
  #list: readonly DurableCheckpoint[];

  constructor(path: string, list: readonly DurableCheckpoint[]) {
    this.#file = new JsonLinesFile(path, RUN_RECORD_VERSION);
    this.#list = list;
  }

  get list(): readonly DurableCheckpoint[] {
    return this.#list;
  }

  at(step: number): DurableCheckpoint | undefined {
    return this.#list.find((c) => c.step === step);
  }

  /** The newest that is not beyond `step`. */
  newest(step: number): DurableCheckpoint | undefined {
    return this.#list.findLast((c) => c.step <= step);
  }

  /** On disk when this returns. */
  add(line: CheckpointLine): void {
    this.#file.append(line);
    this.#file.sync();
    this.#list = foldLine(this.#list, line);
  }

  close(): void {
    this.#file.close();
  }
}
