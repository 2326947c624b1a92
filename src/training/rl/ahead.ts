/**
 * Sampling ahead of training. Groups are always under way, each with the newest weights at its start; a step is trained on the first
 * that are done. What took so long that its weights are too old by then is dropped and counted. Which groups make up a step
 * is written down before it is trained, so that it can be sent again as it was.
 */
import type { RlContext } from "./context.ts";
import { judgeGroup } from "./groups.ts";
import type { Player } from "./play.ts";
import type { Attempt } from "./rollout.ts";
import { RolloutFile } from "./rollout-files.ts";
import { countOf, knownGroups, playTask, rulesOf, runPlayer, type SampledStep } from "./sampling.ts";

interface Group {
  readonly attempts: readonly Attempt[];
  /** Step after which its weights were taken. */
  readonly weights: number;
}

export class AheadSampling {
  readonly #context: RlContext;
  /** Groups that are done and not trained on, in the order in which they ended. */
  #ready: Group[] = [];
  #flying = 0;
  /** The next group to begin: its batch and its number within. */
  #next: { batch: number; group: number };
  /** The newest weights. */
  #player: Player | undefined;
  #failure: { readonly error: unknown } | undefined;
  #wake: () => void = () => {};

  constructor(context: RlContext) {
    this.#context = context;
    this.#next = { batch: context.run.record.journal.state.done + 1, group: 0 };
  }

  /** The groups of a step. Meanwhile, and while the step is trained, others are sampled for those to come. */
  async take(step: number): Promise<SampledStep> {
    const { run } = this.#context;
    const { max_steps_off_policy: most, groups_per_batch: count } = run.order.settings;
    const known = knownGroups(this.#context, step, count);
    if (known.size === count) {
      this.#skip(step);
      return this.#stepOf(
        step,
        [...known.entries()].sort(([a], [b]) => a - b).map(([, attempts]) => attempts),
        {
          reused: countOf(known),
          stale: 0,
        },
      );
    }
    this.#player = runPlayer(this.#context, await this.#context.samplerOf(step), step);
    let stale = 0;
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      const fresh = this.#ready.filter(({ weights }) => step - 1 - weights <= most);
      stale += this.#ready
        .filter((group) => !fresh.includes(group))
        .reduce((sum, { attempts }) => sum + attempts.length, 0);
      this.#ready = fresh;
      this.#fill(Math.min(most + 1, run.total - step + 1));
      if (this.#ready.length >= count) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const taken = this.#ready.splice(0, count);
    // These weights are of use to the steps behind this one, too.
    this.#fill(Math.min(most, run.total - step));
    const attempts = taken.map((group, at) => group.attempts.map((attempt) => ({ ...attempt, group: at })));
    return this.#stepOf(step, attempts, { reused: 0, stale });
  }

  #stepOf(
    step: number,
    groups: readonly (readonly Attempt[])[],
    counts: { readonly reused: number; readonly stale: number },
  ): SampledStep {
    const file = new RolloutFile(this.#context.run.deps.folder, step);
    if (counts.reused === 0) file.add(groups.flat());
    this.#context.run.at("rollouts:formed");
    const rules = rulesOf(this.#context);
    const judged = groups.map(async (attempts) => judgeGroup(attempts, rules));
    return { groups: judged, ...counts, sync: () => file.sync(), close: () => file.close() };
  }

  /** Begins groups until enough for so many steps are under way or ready. */
  #fill(steps: number): void {
    const wanted = steps * this.#context.run.order.settings.groups_per_batch;
    while (this.#flying + this.#ready.length < wanted && !this.#failure) this.#begin(this.#player as Player);
  }

  #begin(player: Player): void {
    const { batch, group } = this.#next;
    const tasks = this.#context.run.tasksOf(batch);
    this.#next = group + 1 < tasks.length ? { batch, group: group + 1 } : { batch: batch + 1, group: 0 };
    this.#flying += 1;
    playTask(this.#context, player, { step: batch, group, task: tasks[group] as number })
      .then(
        (attempts) => this.#ready.push({ attempts, weights: player.weights }),
        (error: unknown) => {
          this.#failure ??= { error };
        },
      )
      .finally(() => {
        this.#flying -= 1;
        this.#wake();
      });
  }

  /** A step that was formed before has used the tasks of its batch. */
  #skip(step: number): void {
    if (this.#next.batch <= step) this.#next = { batch: step + 1, group: 0 };
  }
}
