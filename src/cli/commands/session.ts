/** `rlcli session list|export-trace`: who works on a server, and the timeline of a session or of a run. */
import { createWriteStream, existsSync } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseAddress } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import { writeFileWhole } from "../../files.ts";
import { runTimeline } from "../../training/timeline.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { type RemoteFlags, required, withServer } from "../remote.ts";
import { openRun } from "../run-record.ts";
import { renderTable } from "../views/table.ts";

export const SESSIONS_JSON_VERSION = 1;

interface SessionRow {
  readonly id: string;
  readonly runs: readonly string[];
  readonly samplers: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export async function sessionList(context: CommandContext, flags: RemoteFlags): Promise<ExitCode> {
  const rows = await withServer(context, flags, undefined, async ({ rest }) => {
    const ids = required(await rest.sessions(), "list its sessions");
    if (flags.quiet) return ids.map((id): SessionRow => ({ id, runs: [], samplers: 0 }));
    const all: SessionRow[] = [];
    for (const id of ids) {
      const { runIds, samplerIds, metadata } = required(await rest.session(id), "describe its sessions");
      all.push({ id, runs: runIds, samplers: samplerIds.length, ...(metadata ? { metadata } : {}) });
    }
    return all;
  });
  if (flags.quiet) context.out(rows.map(({ id }) => `${id}\n`).join(""));
  else if (context.isJson) context.out(`${JSON.stringify({ formatVersion: SESSIONS_JSON_VERSION, sessions: rows })}\n`);
  else if (rows.length === 0) context.err("The server has no sessions.\n");
  else context.out(renderTable(rows, COLUMNS, context.style));
  return EXIT.done;
}

const COLUMNS = [
  { title: "session", of: ({ id }: SessionRow) => id },
  { title: "runs", of: ({ runs }: SessionRow) => runs.join(" ") },
  { title: "samplers", of: ({ samplers }: SessionRow) => String(samplers), isNumber: true },
  {
    title: "metadata",
    of: ({ metadata = {} }: SessionRow) =>
      Object.entries(metadata)
        .map(([key, value]) => `${key}=${value}`)
        .join(" "),
  },
];

export interface TraceFlags extends RemoteFlags {
  readonly output?: string;
}

/** Of a run from its own record; of a session from the server that it is on. */
export async function sessionExportTrace(context: CommandContext, name: string, flags: TraceFlags): Promise<ExitCode> {
  const isRun =
    !name.startsWith("session") &&
    flags.baseUrl === undefined &&
    parseAddress(`run.${name.replace(/^run\./, "")}`) !== undefined;
  const plain = name.replaceAll(/[^\w.-]/g, "_");
  const to = resolve(context.cwd, flags.output ?? `${plain}.${isRun ? "trace.json" : "pftrace"}`);
  if (existsSync(to)) fail("RL9004", `${to} exists already. Give another file with --output.`);
  if (isRun) {
    const { folder, address } = await openRun(context, name, flags);
    writeFileWhole(to, JSON.stringify(runTimeline(folder, address)));
  } else {
    await withServer(context, flags, undefined, async ({ rest }) => {
      const bytes = required(await rest.sessionTrace(name), "export timelines");
      await pipeline(Readable.from(bytes), createWriteStream(to, { flags: "wx" }));
    });
  }
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: SESSIONS_JSON_VERSION, name, to })}\n`);
  else context.out(flags.quiet ? `${to}\n` : `Written to ${to}. Open it at https://ui.perfetto.dev.\n`);
  return EXIT.done;
}
