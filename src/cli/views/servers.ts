/** Servers as a person reads them: one line each. */
import type { Style } from "./style.ts";
import { printable } from "./text.ts";
import { duration } from "./units.ts";

/** `formatVersion` 1 of `serve status --json`; with its folder 2 of `serve list --json`. */
export interface ServerRow {
  readonly address: string;
  readonly backend: string;
  readonly model: string;
  readonly state: "running" | "starting" | "stopping" | "stopped" | "died" | "never" | "external";
  readonly url?: string;
  readonly pid?: number;
  readonly startedAt?: string;
  readonly uptimeSeconds?: number;
  readonly gpus?: number;
  /** Clients with a heartbeat in the last minute; of an embedded server, rlcli's own processes. */
  readonly sessions?: number;
  readonly restarts?: number;
  readonly lastCrash?: { readonly at: string; readonly code: number; readonly lines: readonly string[] };
  /** Of one that died. */
  readonly lastWords?: string;
  /** Of an ad-hoc server: the flags that name it. */
  readonly flags?: string;
}

export interface PlacedRow extends ServerRow {
  /** Of its spec, or where the command was given that started it. */
  readonly folder: string;
}

/** Those of other folders, folder by folder. */
export function renderElsewhere(rows: readonly PlacedRow[], style: Style): string {
  const folders = [...new Set(rows.map(({ folder }) => folder))];
  return folders
    .map((folder) => {
      const own = rows.filter((row) => row.folder === folder);
      return `${style.dim(`in ${printable(folder)}`)}\n${renderServers(own, style)}`;
    })
    .join("");
}

export function renderServers(rows: readonly ServerRow[], style: Style): string {
  const width = Math.max(0, ...rows.map((row) => row.address.length));
  return rows
    .map((row) => {
      const parts = [style.bold(row.address.padEnd(width)), paint(row, style), row.backend, row.model, ...details(row)];
      return `${parts.join("  ")}\n${crashText(row, style)}`;
    })
    .join("");
}

function details(row: ServerRow): readonly string[] {
  const parts: string[] = [];
  if (row.url) parts.push(row.url, `pid ${row.pid}`);
  if (row.gpus !== undefined) parts.push(row.gpus === 0 ? "CPU" : `${row.gpus} GPU${row.gpus === 1 ? "" : "s"}`);
  if (row.uptimeSeconds !== undefined) parts.push(`up ${duration(row.uptimeSeconds)}`);
  if (row.sessions !== undefined) parts.push(`${row.sessions} session${row.sessions === 1 ? "" : "s"}`);
  if (row.restarts) parts.push(`started again ${row.restarts} time${row.restarts === 1 ? "" : "s"}`);
  return row.flags ? [...parts, row.flags] : parts;
}

function crashText({ lastCrash, lastWords, state }: ServerRow, style: Style): string {
  const lines = state === "died" ? (lastWords ?? "").split("\n") : (lastCrash?.lines ?? []);
  const said = lines.filter((line) => line !== "").slice(-5);
  if (said.length === 0) return "";
  const title = state === "died" ? "its last words:" : `crashed at ${lastCrash?.at} (code ${lastCrash?.code}):`;
  return `${[title, ...said].map((line) => style.dim(`    ${line}`)).join("\n")}\n`;
}

function paint({ state }: ServerRow, style: Style): string {
  if (state === "running") return style.green(state);
  if (state === "died") return style.red(state);
  return state === "starting" || state === "stopping" ? style.yellow(state) : style.dim(state);
}
