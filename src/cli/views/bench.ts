/** What `rlcli bench` measured, for people: the median, with the range where there were several measurements. */
import type { Style } from "./style.ts";
import { compact, duration } from "./units.ts";

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export interface BenchResult {
  readonly address: string;
  readonly url: string;
  readonly model: string;
  readonly backend: string;
  readonly loraRank: number;
  /** Sequences of a step, tokens of each and of each prompt, tokens of an answer, prompts at once, measurements. */
  readonly batchSize: number;
  readonly length: number;
  readonly maxTokens: number;
  readonly concurrency: number;
  readonly repeat: number;
  /** Until the server answered; with its start, where it was not running. */
  readonly connectSeconds: number;
  readonly roundTripMs: Spread;
  readonly firstTokenMs: Spread;
  readonly samplingTokensPerSecond: Spread;
  readonly trainingTokensPerSecond: Spread;
  readonly stepSeconds: Spread;
}

export function renderBench(result: BenchResult, style: Style): string {
  const { address, url, model, loraRank, batchSize, length, maxTokens, concurrency, repeat } = result;
  const range = ({ least, most }: Spread, show: (value: number) => string): string =>
    style.dim(` (${show(least)} to ${show(most)})`);
  const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
  const row = (label: string, spread: Spread, show: (value: number) => string, unit = ""): string =>
    `  ${label.padEnd(14)}${style.bold(`${show(spread.median)}${unit}`)}${range(spread, show)}`;
  const weights = loraRank === 0 ? "all weights" : `LoRA of rank ${loraRank}`;
  return [
    `${style.bold(address)} at ${url}: ${model}, ${weights}`,
    "",
    row("training", result.trainingTokensPerSecond, compact, " tokens/s"),
    row("a step", result.stepSeconds, duration),
    row("sampling", result.samplingTokensPerSecond, compact, " tokens/s"),
    row("first token", result.firstTokenMs, ms),
    row("round trip", result.roundTripMs, ms),
    "",
    `Medians of ${repeat} (latencies: 5). A step is ${batchSize} sequences of ${length} tokens; sampling is ${concurrency} prompts of ${length} tokens at once,`,
    `${maxTokens} tokens each; the first token is of one such prompt alone. Other sizes give other rates, and so does what else the server does.`,
    "",
  ].join("\n");
}
