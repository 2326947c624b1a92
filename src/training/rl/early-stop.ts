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
  /** Rewards by which the run is judged so far: of its first eval, else of its steps. */
  readonly #rewards: number[];

  constructor(run: RlRun) {
    this.#run = run;
    const lines = readJsonLines<MetricsLine>(join(run.deps.folder, RECORD_FILES.metrics)).values;
    this.#rewards = lines.flatMap((line) => this.#rewardOf(line));
  }

  /** Looks at a step that is done. Fails with RL8104 where the reward collapsed. */
  isReached(step: number): boolean {
    const { target, collapse } = this.#run.rl.early_stop;
    const { last } = this.#run.record.metrics;
    const added = last?.step === step ? this.#rewardOf(last) : [];
    this.#rewards.push(...added);
    if (added.length === 0) return false;
    const now = this.#at(this.#rewards.length);
    if (now === undefined) return false;
    if (collapse !== undefined) this.#checkCollapse(step, now, collapse);
    return target !== undefined && now >= target;
  }

  #checkCollapse(step: number, now: number, collapse: number): void {
    const all = this.#rewards.map((_, i) => this.#at(i + 1)).filter((value) => value !== undefined);
    const best = Math.max(...all);
    if (best <= 0 || now >= collapse * best) return;
    const { address } = this.#run.order;
    const detail = `The reward of ${address} fell to ${now.toPrecision(3)} at step ${step}, below ${collapse} of its best (${best.toPrecision(3)}).`;
    fail("RL8104", detail, { address });
  }

  get #hasEvals(): boolean {
    return this.#run.parts.evals.length > 0;
  }

  #rewardOf({ evalReward, values }: MetricsLine): readonly number[] {
    const reward = this.#hasEvals ? evalReward : values?.["reward/mean"];
    return reward === undefined ? [] : [reward];
  }

  /** The judged reward after so many entries; undefined before the window is full. */
  #at(count: number): number | undefined {
    const window = this.#hasEvals ? 1 : this.#run.rl.early_stop.window;
    return count < window ? undefined : mean(this.#rewards.slice(count - window, count));
  }
}
