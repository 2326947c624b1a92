/** `rlcli deployment list` and `rlcli rollback`: where deployments point, why they are held, and the way back by hand. */
import { type Address, nameOf, parseAddress } from "../../address.ts";
import { fail, RlcliError } from "../../diagnostic.ts";
import { isPlaceThere } from "../../kinds/deployment-place.ts";
import {
  type DeployedAt,
  type DeploymentResults,
  deploymentResults,
  rolledBack,
  weightsOf,
} from "../../kinds/deployment-record.ts";
import { withLease } from "../../state/lease.ts";
import type { StateRecord } from "../../state-record.ts";
import { didYouMeanOf } from "../../suggest.ts";
import { lineageOfSave } from "../../training/save.ts";
import type { JsonObject } from "../../value.ts";
import { confirm } from "../confirm.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import { type OpenProject, planProject } from "../project.ts";

export const DEPLOYMENTS_JSON_VERSION = 1;

/** Of each deployment: its place, the ones before, and what a plan says of it now. */
export async function deploymentList(context: CommandContext, flags: Partial<SpecOptions>): Promise<ExitCode> {
  const open = await openWith(context, flags);
  const nodes = [...(open.spec?.nodes.values() ?? [])].filter(({ kind }) => kind === "deployment");
  const targets = nodes.map(({ address }) => address);
  const planned =
    targets.length === 0
      ? undefined
      : await planProject(open, { targets, replace: [], destroy: false, signal: context.outputClosed });
  const rows = targets.map((address) => {
    const results = deploymentResults(planned?.records.get(address));
    const change = planned?.plan.changes.find((candidate) => candidate.address === address);
    const held = planned?.diagnostics.find((d) => d.code === "RL2103" && d.address === address)?.detail;
    const { history = [], ...place } = results ?? {};
    return {
      address,
      ...(results ? { place } : {}),
      history,
      ...(held === undefined ? {} : { held }),
      ...(change && change.action !== "none" ? { next: change.reasons[0] ?? change.action } : {}),
    };
  });
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: DEPLOYMENTS_JSON_VERSION, deployments: rows })}\n`);
    return EXIT.done;
  }
  if (rows.length === 0) context.err("The spec has no deployments.\n");
  for (const { address, history, held, next } of rows) {
    const results = deploymentResults(planned?.records.get(address));
    context.out(`${context.style.bold(address)}  ${results ? sinceWords(results) : "points nowhere yet"}\n`);
    if (results) context.out(`      ${weightsOf(results)}\n`);
    if (held !== undefined) context.out(`      ${context.style.yellow(held)}\n`);
    if (next !== undefined) context.out(`      the next apply: ${next}\n`);
    for (const [at, place] of history.entries())
      context.out(context.style.dim(`   ${String(at + 1).padStart(2)} ${sinceWords(place)}\n`));
  }
  return EXIT.done;
}

const sinceWords = (place: DeployedAt): string =>
  `${placeWords(place)}, since ${place.at.slice(0, 16).replace("T", " ")}`;

/** With the generation and incarnation, since the same step of several stands in a history. */
function placeWords({ run, step, training }: DeployedAt): string {
  const lineage = lineageOfSave(training);
  return `${run} at step ${step}${lineage ? ` (${lineage})` : ""}`;
}

export interface RollbackFlags extends Partial<SpecOptions> {
  /** Number of the place in `deployment list`. */
  readonly to?: number;
  readonly autoApprove?: boolean;
}

/** Moves a deployment's pointer back. Under its lease, and only if it is still where it was when the user was asked. */
export async function rollback(context: CommandContext, text: string, flags: RollbackFlags): Promise<ExitCode> {
  const open = await openWith(context, flags);
  const record = await recordOf(open, text);
  const before = deploymentResults(record) as DeploymentResults;
  const after = rolledBack(before, flags.to);
  if (!after) return fail("RL9009", noPlace(record.address, before, flags.to), { address: record.address });
  await checkPlace(context, open, record.address, after);
  if (!context.isJson) context.out(`${record.address}: ${placeWords(before)} → ${placeWords(after)}\n`);
  const question = { question: "Move it?", otherwise: "Add --auto-approve to go ahead." };
  if (!flags.autoApprove && !(await confirm(context, question))) return EXIT.failed;
  const { formatVersion: _f, version, updatedAt: _u, fence: _n, ...draft } = record;
  await withLease(open.store, record.address, "rlcli rollback", (lease) =>
    open.store.write(
      { ...draft, status: "ready", hash: after.hash, results: after as unknown as JsonObject },
      { expect: version, fence: lease.record.token },
    ),
  );
  const { history: _, ...place } = after;
  if (context.isJson)
    context.out(`${JSON.stringify({ formatVersion: DEPLOYMENTS_JSON_VERSION, address: record.address, place })}\n`);
  else context.out(`Moved. ${weightsOf(after)}\n`);
  return EXIT.done;
}

async function recordOf({ spec, store }: OpenProject, text: string): Promise<StateRecord> {
  const address: Address = text.startsWith("deployment.") ? (text as Address) : `deployment.${text}`;
  if (!parseAddress(address)) fail("RL9003", `\`${text}\` does not name a deployment.`);
  const { records, diagnostics } = await store.list();
  if (diagnostics.length > 0) throw new RlcliError(diagnostics);
  const isDeclared = spec?.nodes.has(address) === true;
  const known = [...records.keys(), ...(spec?.nodes.keys() ?? [])].filter((key) => key.startsWith("deployment."));
  return (
    records.get(address) ??
    fail(
      "RL9009",
      isDeclared
        ? `${address} points nowhere, so there is nothing to go back from.`
        : `There is no ${address}.${didYouMeanOf(address, known)}`,
    )
  );
}

function noPlace(address: Address, { history }: DeploymentResults, to: number | undefined): string {
  if (history.length === 0) return `${address} was never anywhere else.`;
  if (to === undefined)
    return `${address} has no earlier place that it was not rolled back from. Name one with --to N.`;
  return `${address} has no earlier place ${to}: \`rlcli deployment list\` shows ${history.length}.`;
}

/** A pointer to weights that are gone would be worse than none. */
async function checkPlace(
  context: CommandContext,
  open: OpenProject,
  address: Address,
  place: DeployedAt,
): Promise<void> {
  const { run, step } = place;
  const { records } = await open.store.list();
  const reading = {
    project: open.context,
    address: run,
    node: open.spec?.nodes.get(run),
    record: records.get(run),
    recordOf: (other: Address) => records.get(other),
    nodeOf: (other: Address) => open.spec?.nodes.get(other),
    signal: context.outputClosed,
  };
  if ((await isPlaceThere(reading, place)) !== false) return;
  fail(
    "RL9009",
    `${run} has no checkpoint at step ${step} any more (${weightsOf(place)}), so ${nameOf(address)} cannot go back to it.`,
    {
      address,
    },
  );
}
