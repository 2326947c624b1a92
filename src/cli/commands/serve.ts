/** `rlcli serve start|stop|status`: the embedded server by hand. Runs start it by themselves when they need it. */
import { diagnostic, fail, RlcliError } from "../../diagnostic.ts";
import { connect, type ServerSettings, serverFolder, serverSettings } from "../../kinds/connect.ts";
import { readRuntime, stopServer } from "../../servers/runtime.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import { openTarget, type TargetFlags } from "../target.ts";

export interface ServeFlags extends TargetFlags {
  readonly baseModel?: string;
  readonly backend?: string;
  readonly host?: string;
  readonly port?: number;
  readonly force?: boolean;
}

/** The predecessor calls it --base-model. */
const withModel = (flags: ServeFlags): ServeFlags =>
  flags.baseModel === undefined ? flags : { ...flags, model: flags.baseModel };

export async function serveStart(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  if (flags.backend !== undefined && flags.backend !== "embedded") {
    fail(
      "RL5011",
      `This version of rlcli starts embedded servers only, not ${flags.backend}. Start SkyRL yourself and use \`backend: external\` in a spec.`,
    );
  }
  const { host, port } = listening(flags);
  const target = await openTarget(context, withModel(flags));
  if (target.settings.backend !== "embedded") {
    fail("RL5011", `${target.settings.address} is ${target.settings.backend}: it is not rlcli's to start.`, {
      address: target.settings.address,
    });
  }
  const options = { onPhase: (text: string) => context.err(`${text}\n`) };
  const { url } = await connect({ ...target.settings, ...host, ...port }, target.open.context, options);
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, address: target.settings.address, url })}\n`);
  else context.out(startedText(target.settings, url, { ...target.settings, ...host }.host, flags.baseModel));
  return EXIT.done;
}

/** Where to listen, if the flags say so. A spec's server listens where the spec says. */
function listening(flags: ServeFlags): { host: { host?: string }; port: { port?: number } } {
  const given = (["host", "port"] as const).find((name) => flags[name] !== undefined);
  if (given !== undefined && flags.baseModel === undefined && flags.model === undefined)
    fail(
      "RL9003",
      `--${given} is for a server without a spec (--base-model). Set \`${given}\` of the server in the spec.`,
    );
  return {
    host: flags.host === undefined ? {} : { host: flags.host },
    port: flags.port === undefined ? {} : { port: flags.port },
  };
}

const LOOPBACK = /^(localhost|127\.|::1$)/;

function startedText({ address, model }: ServerSettings, url: string, host = "127.0.0.1", baseModel?: string): string {
  const more = baseModel === undefined ? "" : ` --base-model ${baseModel}`;
  const { port } = new URL(url);
  const others = LOOPBACK.test(host)
    ? `Programs here reach it with TINKER_BASE_URL=${url} and TINKER_API_KEY=$(rlcli serve token${more}).`
    : `It listens on ${host} and answers only those who send its key. Others need TINKER_BASE_URL=http://<this machine>:${port}, and as TINKER_API_KEY what \`rlcli serve token${more}\` prints here. The connection is not encrypted.`;
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
  context.out(`${seen.runtime.token}\n`);
  return EXIT.done;
}

const STOP_TIMEOUT_MS = 60_000;

export async function serveStop(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  const target = await openTarget(context, withModel(flags));
  const folder = serverFolder(target.open.context.dataFolder, target.settings.address);
  if (readRuntime(folder).state !== "running") {
    context.out(`${target.settings.address} is not running.\n`);
    return EXIT.done;
  }
  await stopServer(folder, { force: flags.force ?? false, timeoutMs: STOP_TIMEOUT_MS });
  context.out(`${target.settings.address} has stopped. Its checkpoints are kept.\n`);
  return EXIT.done;
}

/** Exit code 0 if every embedded server of the spec runs, 1 if one does not: for scripts. */
export async function serveStatus(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  const isAdhoc = flags.model !== undefined || flags.baseModel !== undefined;
  const open = isAdhoc ? (await openTarget(context, withModel(flags))).open : await openWith(context, flags);
  const servers = [...(open.spec?.nodes.values() ?? [])].filter((node) => node.kind === "server");
  if (servers.length === 0) throw new RlcliError(diagnostic("RL9009", "The spec has no servers."));
  const rows = servers.map((node) => {
    const { backend, model } = serverSettings(node);
    const seen = readRuntime(serverFolder(open.context.dataFolder, node.address));
    const runtime =
      seen.state === "running"
        ? { url: seen.runtime.url, pid: seen.runtime.process.pid, startedAt: seen.runtime.startedAt }
        : {};
    return {
      address: node.address,
      backend,
      model,
      state: backend === "embedded" ? seen.state : "external",
      ...runtime,
    };
  });
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, servers: rows })}\n`);
  else
    for (const row of rows)
      context.out(
        `${row.address}  ${row.state}  ${row.backend}  ${row.model}${row.url ? `  ${row.url}  pid ${row.pid}` : ""}\n`,
      );
  return rows.every((row) => row.state === "running" || row.state === "external") ? EXIT.done : EXIT.failed;
}
