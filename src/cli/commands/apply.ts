/** `rlcli apply` and `rlcli destroy`: show the plan, ask, carry it out, say how it ended. */
import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { fail, hasErrors, messageOf, RlcliError } from "../../diagnostic.ts";
import { type ApplyResult, applyChanges } from "../../engine/apply.ts";
import { recordEvents } from "../../engine/history.ts";
import { isFileSystemError } from "../../files.ts";
import { checkStale, decodePlan, type PlanOptions } from "../../plan/file.ts";
import { hasChanges, type PlanResult } from "../../plan/plan.ts";
import { confirm } from "../confirm.ts";
import { type CommandContext, EXIT, type ExitCode, reportFailure } from "../context.ts";
import type { OpenProject, PlannedProject } from "../project.ts";
import { wantsAscii } from "../views/plot.ts";
import { jsonProgress, type ProgressView, TextProgress } from "../views/progress.ts";
import { renderResult } from "../views/result.ts";
import { makePlan, type PlanFlags, planOptions, showPlan } from "./plan.ts";

export interface ApplyFlags extends PlanFlags {
  readonly autoApprove?: boolean;
  readonly detach?: boolean;
  readonly parallelism?: number;
  /** With destroy: delete checkpoints too. */
  readonly weights?: boolean;
}

const DEFAULT_PARALLELISM = 10;

export async function apply(
  context: CommandContext,
  planFile: string | undefined,
  flags: ApplyFlags,
): Promise<ExitCode> {
  if (planFile !== undefined) {
    const decided = (["file", "var", "varFile", "target", "replace"] as const).find(
      (flag) => flags[flag] !== undefined,
    );
    if (decided !== undefined) {
      const option = decided === "varFile" ? "--var-file" : `--${decided}`;
      fail("RL9003", `${option} was decided when ${planFile} was made. Leave it out, or make another plan with it.`);
    }
    return applySaved(context, planFile, flags);
  }
  return applyFresh(context, planOptions(context, flags), flags);
}

export async function destroy(context: CommandContext, flags: ApplyFlags): Promise<ExitCode> {
  return applyFresh(context, { ...planOptions(context, flags), destroy: true }, flags);
}

export async function applyFresh(context: CommandContext, options: PlanOptions, flags: ApplyFlags): Promise<ExitCode> {
  const { open, planned } = await makePlan(context, options, flags);
  if (!planned.isValid) {
    reportFailure(context, planned.diagnostics);
    return EXIT.failed;
  }
  context.report(planned.diagnostics);
  const { changes } = planned.plan;
  const isBusy = changes.some((change) => change.busy);
  if (!context.isJson) showPlan(context, open, planned);
  if (!hasChanges(changes) && !isBusy) {
    if (context.isJson) showPlan(context, open, planned);
    return EXIT.done;
  }
  if (!flags.autoApprove && hasChanges(changes) && !(await agree(context, options.destroy))) return EXIT.failed;
  return carryOut(context, open, planned, planned.plan, { ...flags, destroy: options.destroy });
}

async function applySaved(context: CommandContext, name: string, flags: ApplyFlags): Promise<ExitCode> {
  const path = isAbsolute(name) ? name : join(context.cwd, name);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const isMissing = isFileSystemError(error) && error.code === "ENOENT";
    return fail(
      "RL2004",
      `The plan ${name} ${isMissing ? "does not exist" : `cannot be read: ${messageOf(error)}`}. Make one with \`rlcli plan -o ${name}\`.`,
    );
  }
  const saved = decodePlan(text, name);
  const { open, planned } = await makePlan(context, saved.options, flags);
  const { lineage, records, inputs } = planned;
  const stale = checkStale(saved, { lineage, records, inputs, changes: planned.plan.changes, cwd: context.cwd });
  if (hasErrors(stale)) throw new RlcliError(stale);
  if (!planned.isValid) {
    reportFailure(context, planned.diagnostics);
    return EXIT.failed;
  }
  return carryOut(
    context,
    open,
    planned,
    { ...planned.plan, changes: saved.changes },
    {
      ...flags,
      destroy: saved.options.destroy,
    },
  );
}

export async function carryOut(
  context: CommandContext,
  open: OpenProject,
  planned: PlannedProject,
  plan: PlanResult,
  flags: ApplyFlags,
): Promise<ExitCode> {
  const view = progressView(context);
  // Loaded now: when the work ends, perhaps days later, another version of rlcli may lie in this one's place.
  const curve = import("../curve.ts");
  curve.catch(() => {});
  const { stop, kill } = context.interruption();
  const history = recordEvents(open.context.dataFolder);
  const onStop = (forced: boolean) => () =>
    view.on({ type: "apply.stopping", at: new Date().toISOString(), signal: "SIGINT", forced });
  stop.addEventListener("abort", onStop(false), { once: true });
  kill.addEventListener("abort", onStop(true), { once: true });
  let result: ApplyResult;
  try {
    result = await applyChanges({
      changes: plan.changes,
      spec: open.spec,
      kinds: open.kinds,
      store: open.store,
      records: planned.records,
      facts: planned.refreshed.facts,
      observations: planned.refreshed.observations,
      identities: plan.identities,
      project: open.context,
      stop,
      kill,
      detach: flags.detach ?? false,
      weights: flags.weights ?? false,
      parallelism: flags.parallelism ?? DEFAULT_PARALLELISM,
      now: () => new Date(),
      emit: (event) => {
        history.append(event);
        view.on(event);
      },
    });
  } finally {
    view.close();
    history.close();
  }
  context.report(result.diagnostics);
  if (!context.isJson) {
    const isDestroy = flags.destroy ?? false;
    for (const { address, action } of isDestroy ? [] : plan.changes)
      if (open.spec?.nodes.get(address)?.kind === "run" && result.results.has(address) && action !== "restore")
        showCurve(context, await (await curve).runCurve(context, open, address));
    const isSmoke = open.context.isSmoke === true;
    context.out(renderResult(result, { wasStopped: stop.aborted, isSmoke, isDestroy, style: context.style }));
  }
  if (kill.aborted) return EXIT.interrupted;
  return result.counts.failed + result.counts.interrupted + result.counts.skipped > 0 ? EXIT.failed : EXIT.done;
}

/** The curve of a run that was worked on, where it has one. */
function showCurve(context: CommandContext, lines: readonly string[]): void {
  if (lines.length > 0) context.out(`\n${lines.join("\n")}\n\n`);
}

function progressView(context: CommandContext): ProgressView {
  if (context.isJson) return jsonProgress({ write: context.out, isTTY: false, columns: 0 });
  const out = {
    write: context.err,
    isTTY: context.canRedraw,
    get columns() {
      return context.errColumns;
    },
  };
  return new TextProgress(out, context.errStyle, { isAscii: wantsAscii(context.env) });
}

function agree(context: CommandContext, isDestroy: boolean): Promise<boolean> {
  return confirm(context, {
    question: isDestroy ? "Destroy all of this?" : "Carry this out?",
    otherwise: "Add --auto-approve to go ahead, or save a plan with `rlcli plan -o FILE` and apply that.",
  });
}
