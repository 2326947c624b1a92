/** `rlcli serve start|stop|token`: a server by hand. Runs start it by themselves when they need it. */
import { withDeadline } from "../../abort.ts";
import { type Address, nameOf } from "../../address.ts";
import { fail, RlcliError } from "../../diagnostic.ts";
import type { ProjectContext } from "../../kind.ts";
import { type Connection, connect, isManaged, type ServerSettings, serverFolder } from "../../kinds/connect.ts";
import { ensurePython, isLoopback } from "../../kinds/skyrl.ts";
import { readRuntime, stopServer } from "../../servers/runtime.ts";
import { BLOCK_FLAGS, serverBlock, withBackend } from "../adhoc/server.ts";
import { emittedText } from "../adhoc.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openBeside } from "../open.ts";
import { refuseCheckpointsBase } from "../predecessor.ts";
import { runningServers } from "../servers.ts";
import { openTarget, type TargetFlags } from "../target.ts";

export interface ServeFlags extends TargetFlags {
  readonly baseModel?: string;
  readonly force?: boolean;
  readonly wait?: number;
  readonly emitSpec?: boolean;
  readonly checkpointsBase?: string;
}

/** The predecessor calls it --base-model. */
export const withModel = (flags: ServeFlags): ServeFlags =>
  flags.baseModel === undefined ? flags : { ...flags, model: flags.baseModel };

export async function serveStart(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  refuseSpecFlags(flags);
  refuseCheckpointsBase(flags.checkpointsBase);
  const described = withBackend(context, withModel(flags));
  if (flags.emitSpec) return emitServer(context, described);
  const target = await openTarget(context, described);
  const { settings, open } = target;
  if (!isManaged(settings)) {
    fail("RL5011", `${settings.address} is ${settings.backend}: it is not rlcli's to start.`, {
      address: settings.address,
    });
  }
  const listening = settings.skyrl ? {} : { ...picked("host", flags.host), ...picked("port", flags.port) };
  const { url } = await connectWithin(context, { ...settings, ...listening }, open.context, flags.wait);
  const found = readRuntime(serverFolder(open.context.dataFolder, settings.address));
  const shown = found.state === "running" ? (found.runtime.publicUrl ?? url) : url;
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, address: settings.address, url: shown })}\n`);
  else context.out(startedText({ ...settings, ...listening }, shown, flags.baseModel));
  return EXIT.done;
}

/** Waits for no longer than the user wants; what was started until then is ended. */
async function connectWithin(
  context: CommandContext,
  settings: ServerSettings,
  project: ProjectContext,
  seconds: number | undefined,
): Promise<Connection> {
  const { stop } = context.interruption();
  const up = (signal: AbortSignal) =>
    connect(settings, project, { onPhase: (text) => context.err(`${text}\n`), signal });
  if (seconds === undefined) return up(stop);
  return withDeadline(seconds * 1000, stop, (limit) =>
    up(limit).catch((error: unknown) => {
      if (!limit.aborted || stop.aborted) throw error;
      const detail = `${settings.address} does not serve after the ${seconds} s of --wait; what was started of it has been ended. \`rlcli serve logs\` shows how far it came.`;
      return fail(settings.skyrl ? "RL5023" : "RL5003", detail, { address: settings.address, cause: error });
    }),
  );
}

/** The spec of a server that flags describe. */
async function emitServer(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  const { model } = flags;
  if (model === undefined) fail("RL9003", "--emit-spec needs --base-model: the server of a spec is written there.");
  context.out(emittedText(context, { servers: { default: await serverBlock(context, { ...flags, model }) } }, flags));
  return EXIT.done;
}

const picked = <K extends string, V>(key: K, value: V | undefined) => (value === undefined ? {} : { [key]: value });

/** A spec's server is what the spec says. */
function refuseSpecFlags(flags: ServeFlags): void {
  const isAdhoc = flags.baseModel !== undefined || flags.model !== undefined;
  const given = BLOCK_FLAGS.find((name) => flags[name] !== undefined);
  if (given !== undefined && !isAdhoc) {
    const option = given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    fail(
      "RL9003",
      `--${option} is for a server without a spec (--base-model). Set it in the server's block of the spec.`,
    );
  }
}

function startedText(
  { address, model, host = "127.0.0.1", skyrl }: ServerSettings,
  url: string,
  baseModel?: string,
): string {
  const more = baseModel === undefined ? "" : ` --base-model ${baseModel}`;
  const { port, protocol } = new URL(url);
  const plain = protocol === "https:" ? "" : " The connection is not encrypted.";
  const others = isLoopback(host)
    ? `Programs here reach it with TINKER_BASE_URL=${url} and TINKER_API_KEY=$(rlcli serve token${more})${skyrl && skyrl.auth !== "token" ? ", which it does not check" : ""}.`
    : `It listens on ${host} and answers only those who send its key. Others need TINKER_BASE_URL=${protocol}//<this machine>:${port}, and as TINKER_API_KEY what \`rlcli serve token${more}\` prints here.${plain}`;
  return [
    `${address} runs at ${url} with ${model}.`,
    others,
    `Stop it with \`rlcli serve stop${more}\`; it also stops by itself when nobody uses it.`,
    "",
  ].join("\n");
}

/** The key alone, for `$(rlcli serve token)`. It is another one after each start. */
export async function serveToken(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  const target = await openTarget(context, withModel(flags));
  const { address } = target.settings;
  const seen = readRuntime(serverFolder(target.open.context.dataFolder, address));
  if (seen.state !== "running")
    return fail(
      "RL9009",
      `${address} is not running, and has a key only while it runs. Start it with \`rlcli serve start\`.`,
      {
        address,
      },
    );
  const { token } = seen.runtime;
  context.out(context.isJson ? `${JSON.stringify({ formatVersion: 1, address, token })}\n` : `${token}\n`);
  return EXIT.done;
}

/** Makes the Python environment ahead of the first start, and prints its folder: `$(rlcli serve install)/bin/ray start --head`. */
export async function serveInstall(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  refuseSpecFlags(flags);
  const { settings, open } = await openTarget(context, withBackend(context, withModel(flags)));
  if (!settings.skyrl)
    fail("RL5011", `${settings.address} is ${settings.backend}: it needs no Python environment.`, {
      address: settings.address,
    });
  const control = { onPhase: (text: string) => context.err(`${text}\n`), signal: context.interruption().stop };
  const { folder } = await ensurePython(settings.skyrl, open.context, control);
  context.out(context.isJson ? `${JSON.stringify({ formatVersion: 1, folder })}\n` : `${folder}\n`);
  return EXIT.done;
}

/** Saves of large models take minutes. */
const STOP_TIMEOUT_MS = 600_000;

interface StoppableServer {
  readonly address: Address;
  readonly folder: string;
}

/** A server that runs can be stopped though its spec does not load, or has it no more. */
async function serverToStop(context: CommandContext, flags: ServeFlags): Promise<StoppableServer> {
  try {
    const { open, settings } = await openTarget(context, withModel(flags));
    return { address: settings.address, folder: serverFolder(open.context.dataFolder, settings.address) };
  } catch (error) {
    const isOfSpec = flags.model === undefined && flags.baseModel === undefined && flags.baseUrl === undefined;
    if (!(error instanceof RlcliError) || !isOfSpec) throw error;
    const { dataFolder } = (await openBeside(context, flags)).context;
    const meant = runningServers(dataFolder).filter(
      (address) => flags.server === undefined || [address, nameOf(address)].includes(flags.server),
    );
    const [address] = meant;
    if (address === undefined || meant.length > 1) throw error;
    return { address, folder: serverFolder(dataFolder, address) };
  }
}

export async function serveStop(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  const { address, folder } = await serverToStop(context, flags);
  const wasRunning = readRuntime(folder).state === "running";
  if (wasRunning) await stopServer(folder, { force: flags.force ?? false, timeoutMs: STOP_TIMEOUT_MS });
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, address, wasRunning })}\n`);
  else context.out(wasRunning ? `${address} has stopped. Its checkpoints are kept.\n` : `${address} is not running.\n`);
  return EXIT.done;
}
