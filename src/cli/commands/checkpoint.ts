/** `rlcli checkpoint list` and `rlcli prune`: what is kept of runs, and what may go. */
import type { Address } from "../../address.ts";
import { fail, RlcliError } from "../../diagnostic.ts";
import { shortDigest } from "../../digest.ts";
import { refresh } from "../../engine/refresh.ts";
import type { Observation } from "../../kind.ts";
import { deploymentResults } from "../../kinds/deployment-record.ts";
import { type Doomed, findDoomed, pruneDoomed } from "../../kinds/prune.ts";
import { kinds } from "../../kinds/registry.ts";
import { type Kept, observeRun, type RunSeen, runsWithRecords } from "../../kinds/run/observe.ts";
import { withLease } from "../../state/lease.ts";
import type { StateRecord } from "../../state-record.ts";
import { didYouMeanOf } from "../../suggest.ts";
import { bestCheckpoint } from "../../training/checkpoints.ts";
import { confirm } from "../confirm.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import type { OpenProject } from "../project.ts";
import type { RemoteFlags } from "../remote.ts";
import { renderTable, type TableColumn } from "../views/table.ts";
import { bytes } from "../views/units.ts";

export const CHECKPOINTS_JSON_VERSION = 1;

/** What is there of every run: in the spec, recorded, or forgotten with its weights kept. */
async function runsOf(context: CommandContext, open: OpenProject) {
  const { records, diagnostics } = await open.store.list();
  if (diagnostics.length > 0) throw new RlcliError(diagnostics);
  const seen = await refresh({ spec: open.spec, kinds, records, project: open.context, signal: context.outputClosed });
  const runs = new Map<Address, readonly Kept[]>();
  for (const [address, observation] of seen.observations) {
    if (address.startsWith("run.")) runs.set(address, (observation as Observation<RunSeen>).seen.kept);
  }
  for (const address of runsWithRecords(open.context.dataFolder)) {
    if (runs.has(address)) continue;
    const forgotten = await observeRun({
      project: open.context,
      address,
      node: undefined,
      record: undefined,
      recordOf: (other) => records.get(other),
      nodeOf: (other) => open.spec?.nodes.get(other),
      signal: context.outputClosed,
    });
    if (forgotten.seen.kept.some((kept) => kept.durable.length > 0)) runs.set(address, forgotten.seen.kept);
  }
  return { records, runs };
}

export async function checkpointList(
  context: CommandContext,
  run: string | undefined,
  flags: RemoteFlags,
): Promise<ExitCode> {
  if (flags.baseUrl !== undefined || flags.model !== undefined || flags.server !== undefined)
    return (await import("./checkpoint-server.ts")).serverCheckpointList(context, run, flags);
  const open = await openWith(context, flags);
  const { records, runs } = await runsOf(context, open);
  const address = run === undefined ? undefined : (`run.${run.replace(/^run\./, "")}` as Address);
  if (address !== undefined && !runs.has(address))
    fail("RL9009", `There is no run \`${run}\`.${didYouMeanOf(address, runs.keys())}`);
  const rows = [...runs].flatMap(([owner, kept]) =>
    address !== undefined && owner !== address
      ? []
      : kept.flatMap((incarnation) =>
          incarnation.durable.map((checkpoint) => ({
            address: owner,
            generation: shortDigest(incarnation.generation),
            incarnation: incarnation.incarnation,
            isCurrent:
              records.get(owner)?.hash === incarnation.generation &&
              records.get(owner)?.incarnation === incarnation.incarnation,
            step: checkpoint.step,
            training: checkpoint.training,
            ...(checkpoint.sampler ? { sampler: checkpoint.sampler } : {}),
            isFinal: checkpoint.final !== undefined,
            isBest: bestCheckpoint(incarnation.durable) === checkpoint,
            deployments: deploymentsAt(records, checkpoint.training),
          })),
        ),
  );
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: CHECKPOINTS_JSON_VERSION, checkpoints: rows })}\n`);
    return EXIT.done;
  }
  if (flags.quiet) {
    context.out(rows.map(({ sampler, training }) => `${sampler ?? training}\n`).join(""));
    return EXIT.done;
  }
  if (rows.length === 0) context.err("No checkpoints are kept here.\n");
  const isForgotten = (owner: Address) => !records.has(owner) && !open.spec?.nodes.has(owner);
  const past = (row: (typeof rows)[number]) =>
    isForgotten(row.address) ? "forgotten" : row.isCurrent ? "" : "earlier generation";
  const marks = (row: (typeof rows)[number]) =>
    [row.isFinal ? "final" : "", row.isBest ? "best" : "", ...row.deployments, past(row)].filter(Boolean).join(", ");
  const columns: readonly TableColumn<(typeof rows)[number]>[] = [
    { title: "step", of: (row) => `${row.address}@${row.step}` },
    { title: "generation", of: (row) => `${row.generation}/${row.incarnation}` },
    { title: "checkpoint", of: (row) => row.sampler ?? row.training },
    { title: "is", of: marks },
  ];
  context.out(renderTable(rows, columns, context.style));
  return EXIT.done;
}

/** Deployments that point at a checkpoint now. */
function deploymentsAt(records: ReadonlyMap<Address, StateRecord>, training: string): readonly Address[] {
  return [...records.values()]
    .filter(({ address }) => address.startsWith("deployment."))
    .filter((record) => deploymentResults(record)?.training === training)
    .map(({ address }) => address);
}

export interface PruneFlags extends Partial<SpecOptions> {
  readonly autoApprove?: boolean;
  readonly keepGenerations?: number;
  readonly forgotten?: boolean;
  readonly dryRun?: boolean;
}

/** Deletes what the retention policy does not keep, after saying what and how many bytes. */
export async function prune(context: CommandContext, flags: PruneFlags): Promise<ExitCode> {
  const open = await openWith(context, flags);
  const { records, runs } = await runsOf(context, open);
  const doomed = findDoomed(
    { project: open.context, spec: open.spec, records, runs },
    {
      forgotten: flags.forgotten ?? false,
      ...(flags.keepGenerations === undefined ? {} : { keepGenerations: flags.keepGenerations }),
    },
  );
  const total = doomed.reduce((sum, item) => sum + item.bytes, 0);
  if (context.isJson) {
    const items = doomed.map(({ what, bytes: size, reason, address }) => ({
      what,
      bytes: size,
      reason,
      ...(address ? { address } : {}),
    }));
    context.out(`${JSON.stringify({ formatVersion: 1, items, bytes: total, isDryRun: flags.dryRun ?? false })}\n`);
  } else {
    for (const item of doomed) context.out(`${item.what}  ${bytes(item.bytes)}  ${context.style.dim(item.reason)}\n`);
    context.out(doomed.length === 0 ? "Nothing to prune.\n" : `${doomed.length} to delete, ${bytes(total)}.\n`);
  }
  if (doomed.length === 0 || flags.dryRun) return EXIT.done;
  if (!flags.autoApprove && !(await agree(context))) return EXIT.failed;
  const failed = await deleteAll(open, doomed, context.interruption().stop);
  if (failed.length > 0) throw new RlcliError(failed.flatMap((error) => error.diagnostics));
  if (!context.isJson) context.out(`Deleted, ${bytes(total)} freed.\n`);
  return EXIT.done;
}

/** Under each run's lease, so that nothing goes that a worker is about to need. */
async function deleteAll(
  open: OpenProject,
  doomed: readonly Doomed[],
  stop: AbortSignal,
): Promise<readonly RlcliError[]> {
  const failed: RlcliError[] = [];
  const groups = new Map<Address | undefined, Doomed[]>();
  for (const item of doomed) groups.set(item.address, [...(groups.get(item.address) ?? []), item]);
  for (const [address, items] of groups) {
    try {
      if (address === undefined) await pruneDoomed(items, stop);
      else await withLease(open.store, address, "rlcli prune", () => pruneDoomed(items, stop));
    } catch (error) {
      if (!(error instanceof RlcliError)) throw error;
      failed.push(error);
    }
  }
  return failed;
}

function agree(context: CommandContext): Promise<boolean> {
  return confirm(context, { question: "Delete these?", otherwise: "Add --auto-approve to go ahead." });
}
