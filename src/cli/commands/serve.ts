/** `rlcli serve start|stop|status`: the embedded server by hand. Runs start it by themselves when they need it. */
import { diagnostic, fail, RlcliError } from "../../diagnostic.ts";
import { serverFolder, serverSettings } from "../../kinds/connect.ts";
import { readRuntime, stopServer } from "../../servers/runtime.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import { openTarget, type TargetFlags } from "../target.ts";

export interface ServeFlags extends TargetFlags {
  readonly baseModel?: string;
  readonly backend?: string;
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
  const target = await openTarget(context, withModel(flags));
  if (target.settings.backend !== "embedded") {
    fail("RL5011", `${target.settings.address} is ${target.settings.backend}: it is not rlcli's to start.`, {
      address: target.settings.address,
    });
  }
  const { url } = await target.connect();
  const stop = flags.baseModel === undefined ? "rlcli serve stop" : `rlcli serve stop --base-model ${flags.baseModel}`;
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, address: target.settings.address, url })}\n`);
  else
    context.out(
      `${target.settings.address} runs at ${url} with ${target.settings.model}.\nStop it with \`${stop}\`; it also stops by itself when nobody uses it.\n`,
    );
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
