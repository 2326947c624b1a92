/**
 * The loop of reinforcement learning over one lineage. While a step's last results are on their way its successor already
 * samples: the call that takes its weights stands behind the update in the model's order.
 */

import { performance } from "node:perf_hooks";
import { nameOf } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import { lossNamed } from "../../losses/registry.ts";
import type { MetricsLine } from "../../run-record.ts";
import { SERVER_TRAITS } from "../../tinker/quirks.ts";
import { wireLoss } from "../batch.ts";
import { Clock } from "../clock.ts";
import { checkDivergence, gradNormOf } from "../divergence.ts";
import type { Lineage } from "../lineage.ts";
import { prune, saveCheckpoint } from "../save.ts";
import { AheadSampling } from "./ahead.ts";
import { RlContext } from "./context.ts";
import { EarlyStop } from "./early-stop.ts";
import { addEval, judgeEval, playEval, readEvals } from "./evals.ts";
import { measureGroups, measureParts } from "./measure.ts";
import type { RlRun } from "./rl-run.ts";
import { evalPath, writeAttempts } from "./rollout-files.ts";
import { checkLosses, sampleStep } from "./sampling.ts";
import { SandboxWatch } from "./sandbox-watch.ts";
import { type SentRlStep, sendStep } from "./step.ts";

/** Steps one after another without anything to learn from, after which a run stops; all of a shorter run. */
const MOST_BARREN = 5;

export async function trainRl(run: RlRun, lineage: Lineage): Promise<"complete" | "interrupted"> {
  checkServer(run, lineage);
  const context = await RlContext.open(run, lineage);
  const sandboxes = new SandboxWatch(run);
  try {
    return await new RlLoop(context, sandboxes).run();
  } finally {
    sandboxes.close();
    context.stop.abort();
  }
}

/** What the server turns out not to do. Fails with RL8011, before anything is sampled. */
function checkServer({ order, rl }: RlRun, { kind }: Lineage): void {
  const { loss, kl_penalty, max_steps_off_policy } = order.settings;
  const { losses, samplers } = SERVER_TRAITS[kind];
  const say = (detail: string) =>
    fail("RL8011", `${order.address} cannot train there: ${detail}`, { address: order.address });
  if (!losses.includes(loss.type) && (loss.strategy ?? "fused") === "fused") {
    const backends = lossNamed(loss.type)?.backends.join(", ");
    say(
      `${kind} servers do not compute ${loss.type}; ${backends} do. Declare the loss with \`strategy: two_pass\` (--loss-strategy two_pass).`,
    );
  }
  if (samplers === "snapshots") return;
  if (kl_penalty > 0 && (samplers === "saved last" || rl.reference !== undefined))
    say(`${kind} servers sample only the model in training, so kl_penalty has nothing to compare with. Leave it out.`);
  if (max_steps_off_policy > 0)
    say(`${kind} servers cannot sample older weights while newer ones are trained. Leave max_steps_off_policy at 0.`);
}

class RlLoop {
  readonly #context: RlContext;
  readonly #clock = new Clock();
  readonly #early: EarlyStop;
  readonly #sandboxes: SandboxWatch;
  /** Samples ahead of training, where the run may be off policy. */
  readonly #ahead: AheadSampling | undefined;
  #barren = 0;
  /** Processor time when the step before was measured. */
  #used: NodeJS.CpuUsage | undefined;

  constructor(context: RlContext, sandboxes: SandboxWatch) {
    this.#context = context;
    this.#sandboxes = sandboxes;
    this.#early = new EarlyStop(context.run);
    this.#ahead = context.run.order.settings.max_steps_off_policy > 0 ? new AheadSampling(context) : undefined;
  }

  async run(): Promise<"complete" | "interrupted"> {
    const { run, lineage } = this.#context;
    const { journal } = run.record;
    run.record.phase("training");
    // Asked for by an earlier process, perhaps in vain. With parts of a step on their way it stands behind them.
    if (journal.state.sent.length === 0)
      for (const step of journal.state.samplers.keys()) await this.#context.requestSampler(step);
    // A crash may have come between a step and what follows from it: an early end, its checkpoint.
    if (journal.state.sent.length === 0 && this.#early.isReached(journal.state.done)) run.endAt(journal.state.done);
    await prune(run, lineage.client);
    if (journal.state.done === 0) await this.#evaluate(0);
    else if (journal.state.sent.length === 0 && (run.savesAt(journal.state.done) || journal.state.save !== undefined))
      await saveCheckpoint(run, lineage);
    while (journal.state.done < run.total && !this.#mayStop()) {
      const step = journal.state.done + 1;
      await this.#step(step);
      if (this.#early.isReached(step)) run.endAt(step);
      if (run.savesAt(step)) await saveCheckpoint(run, lineage);
    }
    if (journal.state.done >= run.total) return "complete";
    if (journal.state.done > 0) await saveCheckpoint(run, lineage);
    return "interrupted";
  }

  /** Not in the middle of a step: its numbers would have a gap. */
  #mayStop(): boolean {
    const { run } = this.#context;
    return run.deps.stop.aborted && run.record.journal.state.sent.length === 0;
  }

  async #step(step: number): Promise<void> {
    const context = this.#context;
    const { run } = context;
    this.#used ??= process.cpuUsage();
    const startedAt = performance.now();
    const sampled = await (this.#ahead ? this.#ahead.take(step) : sampleStep(context, step));
    let sent: SentRlStep;
    try {
      sent = await sendStep(context, step, sampled);
      checkLosses(context, step, sent.groups);
    } finally {
      sampled.close();
    }
    run.at("step:sent");
    const trained = performance.now();
    const computed = await this.#await(sent);
    const values = {
      ...measureGroups(sent.groups, step),
      ...computed.values,
      "rollouts/reused": sampled.reused,
      "rollouts/stale": sampled.stale,
      "time/sample": sent.sampledMs / 1000,
      "time/train": (performance.now() - trained + sent.forwardMs) / 1000,
      "memory/client": process.memoryUsage.rss(),
      "time/client": this.#clientSeconds(),
    };
    const seconds = this.#clock.secondsSince(startedAt);
    const evalReward = await this.#evaluate(step);
    const line: MetricsLine = {
      ...lineOf(run, sent, seconds),
      loss: computed.loss,
      ...(computed.gradNorm === undefined ? {} : { gradNorm: computed.gradNorm }),
      ...(evalReward === undefined ? {} : { evalReward }),
      values,
    };
    this.#finish(line);
    this.#checkBarren(sent);
  }

  /** Waits for the server's results. Fails with RL8004 where the loss or the gradient is not a number. */
  async #await({ step, parts, updates }: SentRlStep) {
    const { run } = this.#context;
    const { settings } = run.order;
    const waiting = this.#context.waiting(`the server's result of step ${step}`);
    const computed = [];
    for (const { data, pass } of parts) computed.push({ data, result: await pass.result(waiting) });
    let gradNorm: number | undefined;
    for (const update of updates) gradNorm = gradNormOf(await update.result(waiting)) ?? gradNorm;
    run.at("step:results");
    const { loss, values } = measureParts(wireLoss(settings.loss), computed);
    checkDivergence(run.order, step, { loss, gradNorm });
    return { loss, values, gradNorm };
  }

  /** Evals that are due after a step; the mean reward of the first of them. */
  async #evaluate(step: number): Promise<number | undefined> {
    const { run } = this.#context;
    const { folder } = run.deps;
    let reward: number | undefined;
    for (const [at, { order, environment }] of run.parts.evals.entries()) {
      if (!run.evalsAt(step).some((due) => due.order === order)) continue;
      const name = nameOf(order.address);
      let result = readEvals(folder).find((line) => line.step === step && line.eval === name);
      if (!result || step > 0) {
        run.record.phase("evaluating", `${name} after step ${step}`);
        const sampler = await this.#context.samplerOf(step + 1);
        const { sampling, seed, template_kwargs: templateKwargs } = order;
        const player = this.#context.player(sampler, step + 1, { environment, sampling, seed, templateKwargs }, at + 1);
        const groups = await playEval(player, order);
        run.at("eval:played");
        result = { step, eval: name, at: run.record.at(), ...judgeEval(groups, order, (t) => environment.tagOf(t)) };
        writeAttempts(evalPath(folder, name, step), groups.flat(), {
          durable: false,
        });
        addEval(folder, result);
      }
      reward ??= result.metrics.reward;
    }
    return reward;
  }

  /** Seconds of processor time that this process itself used since the last step, not waiting for a server or a grader's program. */
  #clientSeconds(): number {
    const { user, system } = process.cpuUsage(this.#used);
    this.#used = process.cpuUsage();
    return (user + system) / 1e6;
  }

  #finish(line: MetricsLine): void {
    const { run } = this.#context;
    const { record } = run;
    record.metrics.add(line);
    run.at("step:metrics");
    record.journal.note({ t: "done", at: record.at(), step: line.step });
    run.at("step:done");
    const { step, loss, tokensPerSecond, evalReward, values = {} } = line;
    const reward = values["reward/mean"];
    const sandboxes = this.#sandboxes.takeMost();
    record.emit({
      t: "progress",
      step,
      steps: run.total,
      loss,
      tokensPerSecond,
      etaSeconds: this.#clock.eta(run.total - step),
      ...(reward === undefined ? {} : { reward }),
      ...(evalReward === undefined ? {} : { evalReward }),
      ...(sandboxes ? { sandboxes } : {}),
    });
  }

  /** Stops a run that learns nothing. */
  #checkBarren({ step, updates, groups }: SentRlStep): void {
    this.#barren = updates.length > 0 ? 0 : this.#barren + 1;
    if (this.#barren < Math.min(MOST_BARREN, this.#context.run.total)) return;
    const rewards = groups.flatMap(({ rollouts }) => rollouts.map(({ reward }) => reward));
    const { address } = this.#context.run.order;
    const detail = `In the ${this.#barren === 1 ? "step" : `${this.#barren} steps`} up to step ${step} of ${address} no two answers to one task got different rewards${rewards.length > 0 ? ` (the last step's are from ${Math.min(...rewards)} to ${Math.max(...rewards)})` : ""}. Look at them with \`rlcli rollouts ${address} --step ${step}\`.`;
    fail("RL8103", detail, { address });
  }
}

function lineOf(run: RlRun, { step, groups, parts, learningRate }: SentRlStep, seconds: number) {
  const data = parts.flatMap((part) => part.data);
  const tokens = data.reduce((sum, { input }) => sum + input.length, 0);
  const trainedTokens = data.reduce((sum, { lossInputs: { weights } }) => sum + nonZero(weights as Float32Array), 0);
  return {
    step,
    at: run.record.at(),
    epoch: run.batches.at(step).epoch,
    learningRate,
    tokens,
    trainedTokens,
    rows: groups.reduce((sum, { rollouts }) => sum + rollouts.length, 0),
    seconds,
    tokensPerSecond: tokens / Math.max(seconds, 1e-6),
  };
}

function nonZero(values: Float32Array): number {
  let count = 0;
  for (const value of values) if (value !== 0) count += 1;
  return count;
}
