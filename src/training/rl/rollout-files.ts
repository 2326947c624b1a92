/** `rollouts/`: a file for each step, to which whole groups are added as they end. */
import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { RlcliError } from "../../diagnostic.ts";
import { JsonLinesFile, readJsonLines, writeFileWhole } from "../../files.ts";
import { newerFormat } from "../journal.ts";
import { type Attempt, type AttemptLine, fromLines, ROLLOUTS_VERSION, toLines } from "./rollout.ts";

const nameOf = (step: number): string => `${String(step).padStart(6, "0")}.jsonl`;

export function rolloutPath(folder: string, step: number): string {
  return join(folder, "rollouts", nameOf(step));
}

/** The attempts of an eval that a run made after a step. */
export function evalPath(folder: string, name: string, step: number): string {
  return join(folder, "evals", name, nameOf(step));
}

/** Steps of which there are rollouts, ascending. */
export function stepsWithRollouts(folder: string): readonly number[] {
  if (!existsSync(join(folder, "rollouts"))) return [];
  return readdirSync(join(folder, "rollouts"))
    .flatMap((name) => (/^\d+\.jsonl$/.test(name) ? [Number.parseInt(name, 10)] : []))
    .sort((a, b) => a - b);
}

/**
 * What was sampled for a step, in the order in which it ended; a torn last line counts as not written. Of a group that was written
 * again, because a crash or damage left only a part of it, the later lines count.
 */
export function readRollouts(folder: string, step: number): readonly Attempt[] {
  const attempts = readAttempts(rolloutPath(folder, step));
  return [...new Map(attempts.map((attempt) => [`${attempt.group} ${attempt.index}`, attempt])).values()];
}

/** All attempts of a file, in its order. Fails with RL3006 where a newer rlcli wrote it. */
export function readAttempts(path: string): readonly Attempt[] {
  const { values, formatVersion } = readJsonLines<AttemptLine>(path);
  const newer = newerFormat(path, formatVersion, ROLLOUTS_VERSION);
  if (newer.length > 0) throw new RlcliError(newer);
  return fromLines(values);
}

/** Writes some groups in place of what a file holds. */
export function writeAttempts(
  path: string,
  attempts: readonly Attempt[],
  options?: { readonly durable: boolean },
): void {
  const lines = [{ formatVersion: ROLLOUTS_VERSION }, ...toLines(attempts)];
  writeFileWhole(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), options);
}

/** The rollouts of a step that is being sampled. */
export class RolloutFile {
  readonly #file: JsonLinesFile;

  constructor(folder: string, step: number) {
    mkdirSync(join(folder, "rollouts"), { recursive: true });
    this.#file = new JsonLinesFile(rolloutPath(folder, step), ROLLOUTS_VERSION);
  }

  /** Handed to the system in one piece: a killed process leaves the whole group, or a torn line that is not read. */
  add(group: readonly Attempt[]): void {
    this.#file.append(...toLines(group));
  }

  /** On disk when this returns. */
  sync(): void {
    this.#file.sync();
  }

  close(): void {
    this.#file.close();
  }
}

/** Puts aside what was sampled by weights that are not there any more: kept to look at, not to train on. */
export function setAside(folder: string, step: number): void {
  const path = rolloutPath(folder, step);
  if (existsSync(path)) renameSync(path, path.replace(/\.jsonl$/, ".rolled-back.jsonl"));
}
