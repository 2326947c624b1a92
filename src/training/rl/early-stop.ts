/** Ends a run before its last step: where its aim is reached, or where its reward has collapsed. */

import { join } from "node:path";
import { fail } from "../../diagnostic.ts";
import { readJsonLines } from "../../files.ts";
import type { MetricsLine } from "../../run-record.ts";
import { RECORD_FILES } from "../record.ts";
import { mean } from "./measure.ts";
import type { RlRun } from "./rl-run.ts";

export class EarlyStop {
  readonly #run: RlRun;
  /** By which the run is judged so far: rewards of its first eval, else of its steps. */
  readonly #judged: { readonly step: number; readonly reward: number }[];

  constructor(run: RlRun) {
    this.#run = run;
    const lines = readJsonLines<MetricsLine>(join(run.deps.folder, RECORD_FILES.metrics)).values;
    this.#judged = lines.flatMap((line) => this.#judgementOf(line));
  }

  /**
   * Looks at the last step that is done, also one that an earlier process did and did not come to look at. Fails with RL8104 where the
   * reward collapsed.
   */
  isReached(step: number): boolean {
    const { target, collapse } = this.#run.rl.early_stop;
    const { last } = this.#run.record.metrics;
    if (last?.step === step && this.#judged.at(-1)?.step !== step) this.#judged.push(...this.#judgementOf(last));
    if (this.#judged.at(-1)?.step !== step) return false;
    const now = this.#at(this.#judged.length);
    if (now === undefined) return false;
    if (collapse !== undefined) this.#checkCollapse(step, now, collapse);
    return target !== undefined && now >= target;
  }

  #checkCollapse(step: number, now: number, collapse: number): void {
    const all = this.#judged.map((_, i) => this.#at(i + 1)).filter((value) => value !== undefined);
    const best = Math.max(...all);
    if (best <= 0 || now >= collapse * best) return;
    const { address } = this.#run.order;
    const detail = `The reward of ${address} fell to ${now.toPrecision(3)} at step ${step}, below ${collapse} of its best (${best.toPrecision(3)}).`;
    fail("RL8104", detail, { address });
  }

  get #hasEvals(): boolean {
    return this.#run.parts.evals.length > 0;
  }

  #judgementOf({
    step,
    evalReward,
    values,
  }: MetricsLine): readonly { readonly step: number; readonly reward: number }[] {
    const reward = this.#hasEvals ? evalReward : values?.["reward/mean"];
    return reward === undefined ? [] : [{ step, reward }];
  }

  /** The judged reward after so many entries; undefined before the window is full. */
  #at(count: number): number | undefined {
    const window = this.#hasEvals ? 1 : this.#run.rl.early_stop.window;
    if (count < window) return undefined;
    return mean(this.#judged.slice(count - window, count).map(({ reward }) => reward));
  }
}
