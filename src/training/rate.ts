/** How fast a run went, from its metrics. */
import { join } from "node:path";
import { readJsonLines } from "../files.ts";
import type { MetricsLine, RunOrder, RunRate } from "../run-record.ts";
import { RECORD_FILES } from "./record.ts";

/** Later steps count: the first ones compile. */
const LAST_STEPS = 100;

/** Undefined before the first step. */
export function measureRate(folder: string, order: RunOrder): RunRate | undefined {
  const lines = readJsonLines<MetricsLine>(join(folder, RECORD_FILES.metrics)).values.slice(-LAST_STEPS);
  const last = lines.at(-1);
  if (last === undefined) return undefined;
  const seconds = lines.map((line) => line.seconds).sort((a, b) => a - b);
  const tokens = lines.reduce((sum, line) => sum + line.tokens, 0);
  return {
    secondsPerStep: seconds[seconds.length >> 1] as number,
    tokensPerStep: tokens / lines.length,
    ...(!("batch_tokens" in order.settings) ? { stepsPerEpoch: Math.round(last.step / last.epoch) } : {}),
  };
}
