/** `rlcli eval`: the spec's evals by themselves, or a measurement that no spec has. Exits with 1 where a threshold is not met. */
import { type Address, parseAddress } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import { referenceTo } from "../../kinds/attributes.ts";
import { judge, keptResults } from "../../kinds/eval/results.ts";
import { hasChanges } from "../../plan/plan.ts";
import type { SpecNode } from "../../spec.ts";
import { didYouMean } from "../../suggest.ts";
import { type CommandContext, EXIT, type ExitCode, reportFailure } from "../context.ts";
import { type EvalFlags, showEvals } from "../evals.ts";
import { openWith } from "../open.ts";
import { specFiles } from "../options.ts";
import type { OpenProject, PlannedProject } from "../project.ts";
import { parseVariables } from "../spec.ts";
import type { ShownEval } from "../views/eval.ts";
import { carryOut } from "./apply.ts";
import { makePlan } from "./plan.ts";

/** What means something only for a measurement that no spec has. */
const ADHOC_ONLY = ["run", "checkpoint", "model", "baseUrl", "tasks", "samples", "maxTokens", "minReward"] as const;

export async function evaluate(context: CommandContext, names: readonly string[], flags: EvalFlags): Promise<ExitCode> {
  if (flags.dataset !== undefined) {
    if (names.length > 0 || flags.fresh)
      fail("RL9003", "--dataset measures without an eval of the spec: leave the names and --fresh out.");
    return (await import("./eval-adhoc.ts")).evaluateAdhoc(context, { ...flags, dataset: flags.dataset });
  }
  const stray = ADHOC_ONLY.find((flag) => flags[flag] !== undefined);
  if (stray !== undefined) {
    const option = stray.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    fail(
      "RL9003",
      `--${option} needs --dataset, which says what to measure on. The spec's evals say all that themselves.`,
    );
  }
  return evaluateSpec(context, names, flags);
}

async function evaluateSpec(context: CommandContext, names: readonly string[], flags: EvalFlags): Promise<ExitCode> {
  const options = {
    files: specFiles(flags.file, context.cwd),
    variables: parseVariables(flags.var ?? []),
    variableFiles: flags.varFile ?? [],
    replace: [],
    destroy: false,
  };
  const targets = chosenEvals(await openWith(context, flags), names).map(({ address }) => address);
  const { open, planned } = await makePlan(context, { ...options, targets, replace: flags.fresh ? targets : [] });
  if (!planned.isValid) {
    reportFailure(context, planned.diagnostics);
    return EXIT.failed;
  }
  checkTrained(planned, targets);
  // Progress is for people here: the result is the evals.
  const quiet: CommandContext = { ...context, isJson: false, out: context.err };
  const code = hasChanges(planned.plan.changes) ? await carryOut(quiet, open, planned, planned.plan, {}) : EXIT.done;
  const shown = await resultsOf(open, targets);
  showEvals(context, shown);
  return code === EXIT.done && shown.every(({ passed }) => passed)
    ? EXIT.done
    : code === EXIT.done
      ? EXIT.failed
      : code;
}

function chosenEvals({ spec }: OpenProject, names: readonly string[]): readonly SpecNode[] {
  const evals = [...(spec?.nodes.values() ?? [])].filter(({ kind }) => kind === "eval");
  if (evals.length === 0)
    fail(
      "RL9009",
      "The spec has no evals. Declare one, or measure without one: `rlcli eval --dataset FILE --run RUN`.",
    );
  if (names.length === 0) return evals;
  return names.map((text) => {
    const address: Address = text.startsWith("eval.") ? (text as Address) : `eval.${text}`;
    if (!parseAddress(address)) fail("RL9003", `\`${text}\` does not name an eval.`);
    const known = evals.map((node) => node.address);
    return (
      evals.find((node) => node.address === address) ??
      fail("RL9009", `The spec has no ${address}.${didYouMean(address, known)}`)
    );
  });
}

/** Measuring trains nothing: what is to be measured has to be there. */
function checkTrained({ plan }: PlannedProject, targets: readonly Address[]): void {
  const training = plan.changes.find(
    ({ kind, action }) => kind === "run" && ["create", "replace", "extend", "resume"].includes(action),
  );
  if (!training) return;
  const { address, reasons } = training;
  const users = targets.length === 1 ? targets[0] : "these evals";
  fail(
    "RL9009",
    `${address} is to be trained before ${users} can measure it (${reasons[0] ?? "it does not exist yet"}). \`rlcli apply\` trains and measures.`,
    { address },
  );
}

/** What is recorded by now, held against the thresholds of the spec. */
async function resultsOf(open: OpenProject, targets: readonly Address[]): Promise<readonly ShownEval[]> {
  const shown: ShownEval[] = [];
  for (const address of targets) {
    const node = open.spec?.nodes.get(address) as SpecNode;
    const record = await open.store.read(address);
    const kept = keptResults(open.context.dataFolder, node.name).find(({ hash }) => hash === record?.hash);
    if (!kept) continue;
    const run = referenceTo(node, "checkpoint");
    const thresholds = (node.body.metrics ?? {}) as unknown as ShownEval["thresholds"];
    const what = `${run} at step ${kept.step}`;
    shown.push({ name: address, what, result: kept.result, thresholds, ...judge(node, kept.result) });
  }
  return shown;
}
