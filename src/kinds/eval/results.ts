/** What evals found, kept under `.rlcli/evals/<name>/<hash>/`: a threshold that moves, or a spec that goes back, samples nothing anew. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Digest, shortDigest } from "../../digest.ts";
import { writeFileWhole } from "../../files.ts";
import type { SpecNode } from "../../spec.ts";
import type { EvalResult } from "../../training/rl/evals.ts";

const RESULT_VERSION = 1;

export interface KeptResult {
  readonly hash: Digest;
  /** Step of the checkpoint that was measured. */
  readonly step: number;
  readonly result: EvalResult;
}

export function evalFolder(dataFolder: string, name: string, hash: string): string {
  return join(dataFolder, "evals", name, shortDigest(hash as Digest));
}

/** All results of an eval. A file that does not read counts as none: it is measured again. */
export function keptResults(dataFolder: string, name: string): readonly KeptResult[] {
  const folder = join(dataFolder, "evals", name);
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names.flatMap((hash) => {
    try {
      const kept = JSON.parse(readFileSync(join(folder, hash, "result.json"), "utf8"));
      return kept.formatVersion === RESULT_VERSION ? [kept as KeptResult] : [];
    } catch {
      return [];
    }
  });
}

export function keepResult(folder: string, kept: KeptResult): void {
  writeFileWhole(
    join(folder, "result.json"),
    `${JSON.stringify({ formatVersion: RESULT_VERSION, ...kept }, null, 1)}\n`,
  );
}

export interface Verdict {
  readonly passed: boolean;
  /** Why not, one sentence part each: `reward is 0.41, below 0.85`. */
  readonly faults: readonly string[];
}

type Threshold = { readonly min?: number; readonly max?: number };

/** Holds a result against the block's thresholds. A metric that was not measured does not pass. */
export function judge(node: SpecNode, result: EvalResult): Verdict {
  return judgeBy((node.body.metrics ?? {}) as unknown as Readonly<Record<string, Threshold>>, result);
}

/** The same for thresholds by name of their metric. */
export function judgeBy(thresholds: Readonly<Record<string, Threshold>>, { metrics }: EvalResult): Verdict {
  const faults = Object.entries(thresholds).flatMap(([name, { min, max }]) => {
    const value = metrics[name];
    if (value === undefined) return [`it has no metric ${name} (it has ${Object.keys(metrics).join(", ") || "none"})`];
    if (min !== undefined && value < min) return [`${name} is ${value.toPrecision(3)}, below ${min}`];
    return max !== undefined && value > max ? [`${name} is ${value.toPrecision(3)}, above ${max}`] : [];
  });
  return { passed: faults.length === 0, faults };
}

/** `reward 0.86 ±0.03, pass@1 0.86` */
export function resultWords({ metrics, error }: EvalResult): string {
  return Object.entries(metrics)
    .filter(([name]) => !name.startsWith("env/"))
    .map(
      ([name, value]) => `${name} ${value.toFixed(3)}${name === "reward" && error > 0 ? ` ±${error.toFixed(3)}` : ""}`,
    )
    .join(", ");
}
