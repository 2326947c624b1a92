/** `rlcli serve status|list|logs`: looking at servers. Nothing is started. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { diagnostic, fail, RlcliError } from "../../diagnostic.ts";
import { serverFolder } from "../../kinds/connect.ts";
import { indexFolder, type KnownServer, knownServers } from "../../servers/known.ts";
import { logPath } from "../../servers/launch.ts";
import { readLog } from "../../servers/log.ts";
import { LineTail } from "../../tail.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import { DEFAULT_SPEC_FILE, specFiles } from "../options.ts";
import { type OpenProject, openProject } from "../project.ts";
import { runningRow, serverNodes, serverRow } from "../servers.ts";
import { openTarget } from "../target.ts";
import { type PlacedRow, renderElsewhere, renderServers, type ServerRow } from "../views/servers.ts";
import { type ServeFlags, withModel } from "./serve.ts";

/** Exit code 0 if every server of the spec that is rlcli's to start runs, 1 if one does not: for scripts. */
export async function serveStatus(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  const isAdhoc = flags.model !== undefined || flags.baseModel !== undefined;
  const open = isAdhoc ? (await openTarget(context, withModel(flags))).open : await openWith(context, flags);
  const nodes = serverNodes(open);
  if (nodes.length === 0) throw new RlcliError(diagnostic("RL9009", "The spec has no servers."));
  const rows = await Promise.all(nodes.map((node) => serverRow(open, node)));
  show(context, rows);
  return rows.every((row) => row.state === "running" || row.state === "external") ? EXIT.done : EXIT.failed;
}

export interface ListFlags extends ServeFlags {
  /** Only this folder's. */
  readonly here?: boolean;
}

/** 2: also servers of other folders, so that every row has its folder. */
export const SERVE_LIST_JSON_VERSION = 2;

/**
 * All servers of this folder: the spec's, and those that were started with --base-model, whether or not they run. Then those that this user
 * started in other folders, as long as they run.
 */
export async function serveList(context: CommandContext, flags: ListFlags): Promise<ExitCode> {
  const hasSpec =
    flags.file !== undefined || specFiles(undefined, context.cwd).some((file) => existsSync(join(context.cwd, file)));
  const own = hasSpec ? await openWith(context, flags) : undefined;
  const ofSpec = own ? (await rowsOf(own)).map((row) => ({ ...row, folder: own.context.folder })) : [];
  const files = adhocFiles(context.cwd);
  const adhoc = await Promise.all(files.map((file) => adhocRows(context, file)));
  const here = [...ofSpec, ...adhoc.flat().map((row) => ({ ...row, folder: context.cwd }))];
  const isHere = ({ project, address }: KnownServer) =>
    files.includes(join(project, DEFAULT_SPEC_FILE)) ||
    (project === own?.context.folder && own.spec?.nodes.has(address) === true);
  const elsewhere = flags.here ? [] : await rowsElsewhere(context, isHere);
  if (context.isJson) {
    const servers = [...here, ...elsewhere];
    context.out(`${JSON.stringify({ formatVersion: SERVE_LIST_JSON_VERSION, servers })}\n`);
    return EXIT.done;
  }
  context.out(renderServers(here, context.style) + renderElsewhere(elsewhere, context.style));
  if (here.length + elsewhere.length === 0)
    context.err("No servers here. `rlcli serve start --base-model MODEL` starts one.\n");
  return EXIT.done;
}

/** Servers that run under other folders, or that the spec here has no more. */
async function rowsElsewhere(
  { env }: CommandContext,
  isHere: (server: KnownServer) => boolean,
): Promise<readonly PlacedRow[]> {
  const others = knownServers(indexFolder(env)).filter((server) => !isHere(server));
  return Promise.all(
    others.map(async (server) => {
      const row = await runningRow(server.address, server.folder, server.runtime);
      const { place, isAdhoc } = placeOf(server);
      return { ...row, folder: place, ...(isAdhoc ? { flags: `-f ${join(server.project, DEFAULT_SPEC_FILE)}` } : {}) };
    }),
  );
}

/** Ad-hoc projects lie in the folder where their command was given. */
function placeOf({ project }: KnownServer): { readonly place: string; readonly isAdhoc: boolean } {
  const [, place] = /^(.+?)[\\/]\.rlcli[\\/]adhoc[\\/][^\\/]+$/.exec(project) ?? [];
  return { place: place ?? project, isAdhoc: place !== undefined };
}

const rowsOf = (open: OpenProject): Promise<readonly ServerRow[]> =>
  Promise.all(serverNodes(open).map((node) => serverRow(open, node)));

function adhocFiles(cwd: string): readonly string[] {
  const folder = join(cwd, ".rlcli", "adhoc");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => join(folder, name, DEFAULT_SPEC_FILE)).filter((file) => existsSync(file));
}

/** Servers of verbs that were never started are no servers. */
async function adhocRows(context: CommandContext, file: string): Promise<readonly ServerRow[]> {
  const open = await openProject({
    files: [file],
    variables: {},
    variableFiles: [],
    cwd: context.cwd,
    env: context.env,
  });
  if (!open.spec) return [];
  // What a verb trains is in the same spec, and its server is another than that of `serve start`.
  const isServerOnly = [...open.spec.nodes.keys()].every((address) => address.startsWith("server."));
  const rows = await rowsOf(open);
  return rows
    .filter((row) => row.state !== "never" && row.state !== "external")
    .map((row) => ({
      ...row,
      flags: isServerOnly ? `--base-model ${row.model}` : `-f ${relative(context.cwd, file)}`,
    }));
}

function show(context: CommandContext, rows: readonly ServerRow[]): void {
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, servers: rows })}\n`);
  else context.out(renderServers(rows, context.style));
}

export interface LogsFlags extends ServeFlags {
  /** Lines from the end. */
  readonly lines: number;
  readonly follow?: boolean;
}

export async function serveLogs(context: CommandContext, flags: LogsFlags): Promise<ExitCode> {
  const { settings, open } = await openTarget(context, withModel(flags));
  const folder = serverFolder(open.context.dataFolder, settings.address);
  const path = logPath(folder);
  if (!existsSync(path))
    fail("RL9009", `${settings.address} has no log: it was never started here.`, { address: settings.address });
  const from = statSync(path).size;
  const lines = readLog(folder).trimEnd().split("\n").slice(-flags.lines);
  write(context, `${lines.join("\n")}\n`);
  if (flags.follow) await follow(context, path, from);
  return EXIT.done;
}

/** With --json each line is an object. */
function write(context: CommandContext, text: string): void {
  if (!context.isJson) context.out(text);
  else
    for (const line of text.split("\n").filter((one) => one !== ""))
      context.out(`${JSON.stringify({ formatVersion: 1, line })}\n`);
}

const POLL_MS = 300;

/** Prints what is appended until interrupted. */
async function follow(context: CommandContext, path: string, from: number): Promise<void> {
  const { stop } = context.interruption();
  const over = AbortSignal.any([stop, context.outputClosed]);
  const tail = new LineTail(path, from);
  while (!over.aborted) {
    write(context, tail.read());
    await sleep(POLL_MS, undefined, { signal: over }).catch(() => {});
  }
  write(context, tail.read(true));
}
