/** `rlcli logs`: what a run's worker said and did, oldest first. It looks; it starts and changes nothing. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import { durationMs } from "../../duration.ts";
import { EventTail } from "../../kinds/run/attach.ts";
import { runFolder } from "../../kinds/run/observe.ts";
import type { RunEvent } from "../../run-record.ts";
import { listNames } from "../../suggest.ts";
import { LineTail } from "../../tail.ts";
import { hasWorker } from "../../training/progress.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import type { OpenProject } from "../project.ts";
import { runPlace } from "../run-record.ts";
import { compact, measuredWords, sandboxWords } from "../views/units.ts";

export interface LogsFlags extends Partial<SpecOptions> {
  readonly follow?: boolean;
  /** A duration back from now, or a time. */
  readonly since?: string;
}

export const LOGS_JSON_VERSION = 1;
const POLL_MS = 200;

/** With --follow until the worker has ended. What the worker wrote beside its events has no times: with --since only events are shown. */
export async function logs(context: CommandContext, name: string | undefined, flags: LogsFlags): Promise<ExitCode> {
  const since = flags.since === undefined ? undefined : sinceTime(flags.since, Date.now());
  const open = await openWith(context, flags);
  const { folder } = await runPlace(open, name ?? (await theRun(open)));
  const words = new LineTail(join(folder, "log.txt"));
  const events = new EventTail(join(folder, "events.jsonl"), 0);
  for (;;) {
    // Looked at before the files: whatever a dead worker wrote is then there to be read.
    const isLast = !flags.follow || !hasWorker(folder);
    const said = words.read(isLast);
    if (since === undefined) context.out(context.isJson ? wordsJson(said) : said);
    for (const event of events.read())
      if (since === undefined || event.at >= since) context.out(context.isJson ? lineJson(event) : renderEvent(event));
    if (isLast || context.outputClosed.aborted) return EXIT.done;
    await sleep(POLL_MS);
  }
}

const lineJson = (line: object): string => `${JSON.stringify({ formatVersion: LOGS_JSON_VERSION, ...line })}\n`;

const wordsJson = (text: string): string =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => lineJson({ t: "log", text: line }))
    .join("");

/** The earliest time to show, as events write it. */
function sinceTime(text: string, nowMs: number): string {
  const back = durationMs(text);
  const at = Number.isNaN(back) ? Date.parse(text) : nowMs - back;
  if (Number.isNaN(at))
    fail("RL9003", `--since takes a duration such as 10m or 2h, or a time such as 2026-11-30T12:00, not \`${text}\`.`);
  return new Date(at).toISOString();
}

/** Where no run is named: the only one, or the only one that is being worked on. */
async function theRun({ spec, store, context }: OpenProject): Promise<string> {
  const { records } = await store.list();
  const known = [...(spec?.nodes.values() ?? [])].filter(({ kind }) => kind === "run");
  const working = known.filter(({ address, name }) => {
    const record = records.get(address as Address);
    return record && hasWorker(runFolder(context.dataFolder, name, record.hash, record.incarnation));
  });
  const [only, other] = working.length > 0 ? working : known;
  if (only && !other) return only.name;
  if (!only) fail("RL9009", "The spec has no runs. `rlcli explain run` says how one is declared.");
  const names = listNames(
    (working.length > 0 ? working : known).map(({ name }) => name),
    8,
    "or",
  );
  return fail("RL9003", `Say which run: ${names}. \`rlcli status\` shows how far each is.`);
}

function renderEvent(event: RunEvent): string {
  const time = event.at.slice(11, 19);
  return eventLines(event)
    .map((line) => `${time} ${line}\n`)
    .join("");
}

function eventLines(event: RunEvent): readonly string[] {
  switch (event.t) {
    case "phase":
      return [`${event.phase}${event.detail ? ` (${event.detail})` : ""}`];
    case "progress": {
      const { step, steps, tokensPerSecond, sandboxes } = event;
      const words = [`step ${step}/${steps}`, ...measuredWords(event), `${compact(tokensPerSecond)} tokens/s`];
      return [[...words, ...(sandboxes ? [sandboxWords(sandboxes)] : [])].join(" ")];
    }
    case "sandboxes":
      // A line each time one starts or ends would hide the rest; the steps tell the most.
      return [];
    case "checkpoint":
      return [`checkpoint at step ${event.step}: ${event.path}`];
    case "warning":
      return [`warning ${event.diagnostic.code}: ${event.diagnostic.detail}`];
    case "end":
      return [
        `${event.end.status} at step ${event.end.step}`,
        ...(event.end.diagnostics ?? []).map((d) => `${d.code}: ${d.detail}`),
      ];
  }
}
