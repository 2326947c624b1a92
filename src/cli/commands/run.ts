/** `rlcli run list|info|finish`: runs by what they left, and the acceptance of a step as a run's last. */
import { join } from "node:path";
import { nameOf } from "../../address.ts";
import { fail, RlcliError } from "../../diagnostic.ts";
import { shortDigest } from "../../digest.ts";
import { JsonLinesFile } from "../../files.ts";
import { runFolder } from "../../kinds/run/observe.ts";
import { type CheckpointLine, RUN_RECORD_VERSION, type RunLength } from "../../run-record.ts";
import { withLease } from "../../state/lease.ts";
import type { StateRecord } from "../../state-record.ts";
import { bestCheckpoint } from "../../training/checkpoints.ts";
import { type RunProgress, readRunRecord } from "../../training/progress.ts";
import { RECORD_FILES } from "../../training/record.ts";
import { stepsWithRollouts } from "../../training/rl/rollout-files.ts";
import { canonicalJson } from "../../value.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import type { RemoteFlags } from "../remote.ts";
import { openRun, type RunPlace } from "../run-record.ts";
import { renderTable, type TableColumn } from "../views/table.ts";
import { counted, measuredWords } from "../views/units.ts";
import { rangesOf } from "./rollouts.ts";

export const RUNS_JSON_VERSION = 1;

/** What is told of a run. */
function infoOf(folder: string, record: StateRecord, progress: RunProgress) {
  const { order, step, durable, end, workerAlive, lastMetrics } = progress;
  const best = bestCheckpoint(durable);
  return {
    address: record.address,
    type: order?.settings.type,
    status: workerAlive ? "working" : record.status,
    generation: record.hash,
    incarnation: record.incarnation,
    folder,
    step,
    length: order?.length,
    model: order?.model,
    loss: order?.settings.loss.type,
    from: order?.from?.checkpoint,
    checkpoints: durable,
    best: best?.step,
    end,
    lastMetrics,
  };
}

export async function runList(context: CommandContext, flags: RemoteFlags): Promise<ExitCode> {
  if (isOfServer(flags)) return (await import("./run-server.ts")).serverRunList(context, flags);
  const open = await openWith(context, flags);
  const { records, diagnostics } = await open.store.list();
  if (diagnostics.length > 0) throw new RlcliError(diagnostics);
  const runs = [...records.values()].filter(({ address }) => address.startsWith("run."));
  const infos = runs.map((record) => {
    const folder = runFolder(open.context.dataFolder, nameOf(record.address), record.hash, record.incarnation);
    return infoOf(folder, record, readRunRecord(folder));
  });
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: RUNS_JSON_VERSION, runs: infos })}\n`);
    return EXIT.done;
  }
  if (flags.quiet) {
    context.out(infos.map(({ address }) => `${address}\n`).join(""));
    return EXIT.done;
  }
  if (infos.length === 0) context.err("No runs have been started here.\n");
  context.out(renderTable(infos, COLUMNS, context.style));
  return EXIT.done;
}

type RunInfo = ReturnType<typeof infoOf>;

const COLUMNS: readonly TableColumn<RunInfo>[] = [
  { title: "run", of: ({ address }) => address },
  { title: "type", of: ({ type = "" }) => type },
  { title: "status", of: ({ status }) => status },
  { title: "generation", of: ({ generation, incarnation }) => `${shortDigest(generation)}/${incarnation}` },
  { title: "step", of: ({ step }) => String(step), isNumber: true },
  { title: "measured", of: ({ lastMetrics }) => measuredOf(lastMetrics).join(", ") },
];

const measuredOf = (last: RunInfo["lastMetrics"]): readonly string[] =>
  last ? measuredWords({ ...last, reward: last.values?.["reward/mean"] }) : [];

/** Whether the question is what a server knows, rather than what this project has left. */
const isOfServer = ({ baseUrl, model, server }: RemoteFlags): boolean =>
  baseUrl !== undefined || model !== undefined || server !== undefined;

export async function runInfo(context: CommandContext, name: string, flags: RemoteFlags): Promise<ExitCode> {
  if (isOfServer(flags)) return (await import("./run-server.ts")).serverRunInfo(context, name, flags);
  const { folder, record } = await openRun(context, name, flags);
  const info = infoOf(folder, record, readRunRecord(folder));
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: RUNS_JSON_VERSION, ...info })}\n`);
    return EXIT.done;
  }
  const { length, from, end, lastMetrics, checkpoints, best } = info;
  const steps = stepsWithRollouts(folder);
  const kept = checkpoints.map(({ step, final }) =>
    [step, ...(final ? ["final"] : []), ...(step === best ? ["best"] : [])].join(" "),
  );
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["type", info.type],
    ["status", end && !["ready", "working"].includes(info.status) ? `${info.status} at step ${end.step}` : info.status],
    ["generation", `${shortDigest(info.generation)}/${info.incarnation}`],
    ["step", `${info.step}${length && "steps" in length ? ` of ${length.steps}` : ""}`],
    ["model", info.model],
    ["loss", info.loss],
    ["from", from && `${from.run} (${shortDigest(from.generation)}/${from.incarnation})`],
    [
      "measured",
      lastMetrics && measuredWords({ ...lastMetrics, reward: lastMetrics.values?.["reward/mean"] }).join(", "),
    ],
    ["checkpoints", kept.join(", ") || undefined],
    ["rollouts", steps.length > 0 ? `steps ${rangesOf(steps)}` : undefined],
    ["folder", folder],
  ];
  const shown = rows.filter((row): row is readonly [string, string] => row[1] !== undefined);
  context.out(`${context.style.bold(info.address)}\n`);
  for (const [key, value] of shown) context.out(`  ${key.padEnd(11)}  ${value}\n`);
  return EXIT.done;
}

export interface FinishFlags extends Partial<SpecOptions> {
  readonly at: number;
}

/**
 * Writes down that a kept checkpoint is the end of the run's present length: training goes no further than it, and whoever starts
 * from the run, measures it or deploys it gets that step. Under the run's lease, so that no worker is on it.
 */
export async function runFinish(context: CommandContext, name: string, flags: FinishFlags): Promise<ExitCode> {
  const place = await openRun(context, name, flags);
  const { address, open } = place;
  const { length, isKnown } = await withLease(open.store, address, "rlcli run finish", async () =>
    accept(place, flags.at),
  );
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: RUNS_JSON_VERSION, address, step: flags.at, length })}\n`);
    return EXIT.done;
  }
  if (isKnown) context.out(`Step ${flags.at} was already the last of ${address}.\n`);
  else
    context.out(
      `Step ${flags.at} is now the last of ${address}${insteadOf(length, flags.at)}. \`rlcli apply\` makes its record say so.\n`,
    );
  return EXIT.done;
}

/** Nothing where the step is where the length ends by itself. */
function insteadOf(length: RunLength, step: number): string {
  if ("epochs" in length) return ` (instead of ${counted(length.epochs, "epoch")})`;
  return length.steps === step ? "" : ` (instead of ${counted(length.steps, "step")})`;
}

function accept(
  { folder, address }: RunPlace,
  step: number,
): { readonly length: RunLength; readonly isKnown: boolean } {
  const { order, durable, workerAlive, diagnostics } = readRunRecord(folder);
  if (workerAlive)
    fail(
      "RL3003",
      `${address} is being worked on. \`rlcli stop ${nameOf(address)}\` stops it at the end of its step.`,
      { address },
    );
  if (diagnostics.length > 0) throw new RlcliError(diagnostics);
  if (!order) return fail("RL3007", `${join(folder, RECORD_FILES.order)} is missing. Apply again to write it anew.`);
  const found = durable.find((checkpoint) => checkpoint.step === step);
  if (!found) {
    const kept = durable.map((checkpoint) => checkpoint.step);
    const has = kept.length > 0 ? `It keeps ${rangesOf(kept)}.` : "It keeps none.";
    return fail("RL9009", `${address} keeps no checkpoint at step ${step}. ${has}`, { address });
  }
  const { length } = order;
  const last = durable.find(({ final }) => canonicalJson(final) === canonicalJson(length));
  if (last?.step === step) return { length, isKnown: true };
  const { step: _, ...rest } = found;
  const file = new JsonLinesFile(join(folder, RECORD_FILES.checkpoints), RUN_RECORD_VERSION);
  const line: CheckpointLine = {
    ...rest,
    t: "checkpoint",
    at: new Date().toISOString(),
    step,
    final: length,
    accepted: true,
  };
  file.append(line);
  file.sync();
  file.close();
  return { length, isKnown: false };
}
