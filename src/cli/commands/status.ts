/** `rlcli status`: what runs now and how far it is. It looks; it starts and changes nothing. */
import { type Address, nameOf } from "../../address.ts";
import { serverFolder } from "../../kinds/connect.ts";
import { deploymentResults } from "../../kinds/deployment-record.ts";
import { judge, keptResults, resultWords } from "../../kinds/eval/results.ts";
import { resultsOf } from "../../kinds/run/identity.ts";
import { runFolder } from "../../kinds/run/observe.ts";
import type { SandboxCount } from "../../run-record.ts";
import { readRuntime } from "../../servers/runtime.ts";
import type { SpecNode } from "../../spec.ts";
import type { StateRecord } from "../../state-record.ts";
import { type RunProgress, readRunRecord, readSandboxes } from "../../training/progress.ts";
import { canonicalJson } from "../../value.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import type { OpenProject } from "../project.ts";
import { compact, duration, measuredWords, sandboxWords } from "../views/units.ts";

export const STATUS_JSON_VERSION = 1;

interface StatusRow {
  readonly address: string;
  readonly status: string;
  readonly detail: string;
  /** Of a run that is being worked on and uses them. */
  readonly sandboxes?: SandboxCount;
}

export async function status(context: CommandContext, flags: Partial<SpecOptions>): Promise<ExitCode> {
  const open = await openWith(context, flags);
  const [{ records }, leases] = await Promise.all([open.store.list(), open.store.leases()]);
  const rows: StatusRow[] = [];
  for (const node of open.spec?.nodes.values() ?? []) {
    if (node.kind === "server") rows.push(serverRow(open, node.address));
    if (node.kind === "dataset") rows.push(datasetRow(node.address, records.get(node.address)));
    if (node.kind === "run") rows.push(runRow(open, node.address, records.get(node.address)));
    if (node.kind === "eval") rows.push(evalRow(open, node, records.get(node.address)));
    if (node.kind === "deployment") rows.push(deploymentRow(node, records.get(node.address), records));
  }
  if (context.isJson) {
    const held = leases.map(({ address, owner, acquiredAt }) => ({
      address,
      owner: owner.purpose,
      pid: owner.process.pid,
      host: owner.host,
      acquiredAt,
    }));
    context.out(`${JSON.stringify({ formatVersion: STATUS_JSON_VERSION, resources: rows, leases: held })}\n`);
    return EXIT.done;
  }
  const width = Math.max(0, ...rows.map((row) => row.address.length));
  const middle = Math.max(0, ...rows.map((row) => row.status.length));
  for (const { address, status: word, detail } of rows) {
    context.out(
      `${context.style.bold(address.padEnd(width))}  ${paint(context, word)(word.padEnd(middle))}  ${detail}\n`.replace(
        / +\n$/,
        "\n",
      ),
    );
  }
  return EXIT.done;
}

function paint({ style }: CommandContext, word: string): (text: string) => string {
  if (word === "ready" || word === "running" || word === "passed") return style.green;
  if (word === "failed" || word === "died" || word === "not passed") return style.red;
  return word === "working" || word === "interrupted" || word === "held" ? style.yellow : style.dim;
}

function serverRow(open: OpenProject, address: Address): StatusRow {
  const seen = readRuntime(serverFolder(open.context.dataFolder, address));
  switch (seen.state) {
    case "running":
      return {
        address,
        status: "running",
        detail: `${seen.runtime.url}, ${seen.runtime.model}, pid ${seen.runtime.process.pid}`,
      };
    case "died":
      return { address, status: "died", detail: `pid ${seen.pid} ended without a clean stop` };
    case "stopped":
      return { address, status: "stopped", detail: "starts when it is needed" };
    case "never":
      return { address, status: "not started", detail: "" };
  }
}

function datasetRow(address: string, record: StateRecord | undefined): StatusRow {
  const rows = record?.results.rows;
  return { address, status: record ? "ready" : "not imported", detail: rows === undefined ? "" : `${rows} rows` };
}

function runRow(open: OpenProject, address: Address, record: StateRecord | undefined): StatusRow {
  if (!record) return { address, status: "not trained", detail: "" };
  const folder = runFolder(open.context.dataFolder, nameOf(address), record.hash, record.incarnation);
  const progress = readRunRecord(folder);
  const sandboxes = progress.workerAlive ? readSandboxes(folder) : undefined;
  const word = progress.workerAlive ? "working" : record.status === "working" ? "interrupted" : record.status;
  const detail = [runDetail(progress, record), ...(sandboxes ? [sandboxWords(sandboxes)] : [])].join(", ");
  return { address, status: word, detail, ...(sandboxes ? { sandboxes } : {}) };
}

function runDetail(progress: RunProgress, record: StateRecord): string {
  const { order, step, lastMetrics, worker, workerAlive } = progress;
  const results = resultsOf(record);
  if (!workerAlive && record.status === "ready" && results) {
    return [`step ${results.step}`, ...measuredWords(results)].join(", ");
  }
  const goal = order && "steps" in order.length ? `/${order.length.steps}` : "";
  const parts = [`step ${step}${goal}`];
  if (lastMetrics) parts.push(...measuredWords({ ...lastMetrics, reward: lastMetrics.values?.["reward/mean"] }));
  if (lastMetrics && workerAlive) parts.push(`${compact(lastMetrics.tokensPerSecond)} tokens/s`);
  if (worker && workerAlive) {
    parts.push(`pid ${worker.process.pid}, for ${duration((Date.now() - Date.parse(worker.startedAt)) / 1000)}`);
  }
  return parts.join(", ");
}

/** The result that the record stands for, against the thresholds that the spec has now. */
function evalRow(open: OpenProject, node: SpecNode, record: StateRecord | undefined): StatusRow {
  const { address } = node;
  const kept = record && keptResults(open.context.dataFolder, node.name).find(({ hash }) => hash === record.hash);
  if (!record || !kept) return { address, status: "not measured", detail: "" };
  const { passed, faults } = judge(node, kept.result);
  const where = `step ${kept.step}: ${resultWords(kept.result)}`;
  const isJudged = Object.keys((node.body.metrics ?? {}) as object).length > 0;
  const word = !isJudged ? "measured" : passed ? "passed" : "not passed";
  return { address, status: word, detail: [where, ...faults].join("; ") };
}

function deploymentRow(
  node: SpecNode,
  record: StateRecord | undefined,
  records: ReadonlyMap<Address, StateRecord>,
): StatusRow {
  const { address } = node;
  const results = deploymentResults(record);
  const failed = node.references
    .filter(({ path }) => path.startsWith("requires."))
    .flatMap(({ to }) => {
      const required = records.get(to);
      return required?.results.passed === false ? [required] : [];
    });
  // Of the checkpoint that it points at already, a failed eval holds nothing back.
  const holding = failed.filter((required) => !isSameCheckpoint(required, record));
  const held = holding.length > 0 ? `held: ${namesOf(holding)} did not pass` : undefined;
  const doubted = failed.filter((required) => !holding.includes(required));
  const doubt =
    doubted.length > 0 ? `${namesOf(doubted)} ${doubted.length > 1 ? "do" : "does"} not pass any more` : undefined;
  const back = results?.rolledBackFrom === undefined ? undefined : "rolled back by hand";
  if (!results) return { address, status: "points nowhere", detail: held ?? "" };
  const place = `${results.run} at step ${results.step}, since ${results.at.slice(0, 16).replace("T", " ")}`;
  const isHeld = held !== undefined || back !== undefined;
  return { address, status: isHeld ? "held" : "ready", detail: [place, back, held, doubt].filter(Boolean).join("; ") };
}

const namesOf = (records: readonly StateRecord[]): string => records.map(({ address }) => address).join(" and ");

function isSameCheckpoint(a: StateRecord, b: StateRecord | undefined): boolean {
  const id = "checkpoint.id";
  return b !== undefined && canonicalJson(a.attributes[id]) === canonicalJson(b.attributes[id]);
}
