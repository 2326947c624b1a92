/** A measurement that no spec has: a run, a checkpoint or a base model on tasks from flags. */
import { join } from "node:path";
import { hasErrors, RlcliError } from "../../diagnostic.ts";
import { digestJson, shortDigest } from "../../digest.ts";
import type { EvalOrder } from "../../environment-order.ts";
import type { DatasetFacts } from "../../kinds/dataset.ts";
import { environmentOrder } from "../../kinds/environment.ts";
import { measure } from "../../kinds/eval/measure.ts";
import { judgeBy } from "../../kinds/eval/results.ts";
import { hasChanges } from "../../plan/plan.ts";
import type { SpecNode } from "../../spec.ts";
import { type EnvironmentFlags, environmentBlock, tasksSource } from "../adhoc/environment.ts";
import { datasetIdentity, optionsFor } from "../adhoc/work.ts";
import { adhocSpec } from "../adhoc.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { type EvalFlags, showEvals } from "../evals.ts";
import { interruptible } from "../interruptible.ts";
import { askedWeights, openTarget } from "../target.ts";
import type { ShownEval } from "../views/eval.ts";
import { carryOut } from "./apply.ts";
import { makePlan } from "./plan.ts";

type Flags = EvalFlags & EnvironmentFlags;

export async function evaluateAdhoc(context: CommandContext, flags: Flags): Promise<ExitCode> {
  const target = await openTarget(context, flags, flags.run);
  const asked = await askedWeights(target, flags.run, flags);
  const { order, folder } = await orderOf(context, flags);
  const what = asked?.name ?? `base model ${target.settings.model}`;
  const attempts = join(
    folder,
    ".rlcli",
    "evals",
    order.address.slice("eval.".length),
    shortDigest(digestJson({ what, ...order })),
  );
  return interruptible(context, async (signal) => {
    const result = await measure({
      address: order.address,
      order,
      server: target.settings,
      weights: asked?.weights,
      step: asked?.step ?? 0,
      folder: attempts,
      project: target.open.context,
      signal,
      onPhase: (text) => context.err(`${text}\n`),
    });
    const thresholds: ShownEval["thresholds"] =
      flags.minReward === undefined ? {} : { reward: { min: flags.minReward } };
    const verdict = judgeBy(thresholds, result);
    showEvals(context, [{ name: flags.dataset, what, result, thresholds, ...verdict }]);
    if (!context.isJson) context.out(context.style.dim(`  ${join(attempts, "attempts.jsonl")} has the answers\n`));
    return verdict.passed ? EXIT.done : EXIT.failed;
  });
}

/** The environment as a spec of its own would have it, its tasks imported, and how it is sampled. */
async function orderOf(context: CommandContext, flags: Flags): Promise<{ order: EvalOrder; folder: string }> {
  const source = await tasksSource(context, flags.dataset, "test");
  const body = {
    datasets: { tasks: { source, rows: "tasks" } },
    environments: { tasks: environmentBlock(context, flags, "tasks") },
  };
  const identity = { dataset: datasetIdentity(context, flags.dataset, source), env: flags.env };
  const { file } = adhocSpec(context, "eval", body, identity);
  const { open, planned } = await makePlan(context, optionsFor(file));
  if (!planned.isValid) throw new RlcliError(planned.diagnostics);
  const quiet: CommandContext = { ...context, isJson: false, out: () => {} };
  if (hasChanges(planned.plan.changes)) {
    const code = await carryOut(quiet, open, planned, planned.plan, {});
    if (code !== EXIT.done) throw new RlcliError(planned.diagnostics.filter((d) => hasErrors([d])));
  }
  const node = open.spec?.nodes.get("environment.tasks") as SpecNode;
  const { digest } = planned.refreshed.facts.get("dataset.tasks") as DatasetFacts;
  const { tasks, samples = 1, seed = 0, temperature = 1, topP = 1, maxTokens = 512, stop = [] } = flags;
  const order: EvalOrder = {
    address: "eval.tasks",
    environment: environmentOrder(node, digest, open.context),
    sampling: { temperature, top_p: topP, max_tokens: maxTokens, stop },
    ...(tasks === undefined ? {} : { tasks }),
    samples,
    seed,
    pass_reward: 1,
    template_kwargs: {},
    every: 0,
  };
  return { order, folder: open.context.folder };
}
