/** `rlcli run list|info --base-url`: training runs as a server knows them. */
import type { TrainingRunInfo } from "../../tinker/data.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { type RemoteFlags, serverCheckpoints, withServer } from "../remote.ts";
import { renderTable } from "../views/table.ts";

export const SERVER_RUNS_JSON_VERSION = 1;

export async function serverRunList(context: CommandContext, flags: RemoteFlags): Promise<ExitCode> {
  const runs = await withServer(context, flags, undefined, (client) => client.trainingRuns());
  if (flags.quiet) context.out(runs.map(({ runId }) => `${runId}\n`).join(""));
  else if (context.isJson) context.out(`${JSON.stringify({ formatVersion: SERVER_RUNS_JSON_VERSION, runs })}\n`);
  else if (runs.length === 0) context.err("The server has no runs.\n");
  else context.out(renderTable(runs, COLUMNS, context.style));
  return EXIT.done;
}

const adapter = ({ isLora, loraRank }: TrainingRunInfo): string => (isLora ? `rank ${loraRank ?? "?"}` : "all weights");

const COLUMNS = [
  { title: "run", of: ({ runId }: TrainingRunInfo) => runId },
  { title: "model", of: ({ baseModel }: TrainingRunInfo) => baseModel },
  { title: "trains", of: adapter },
  {
    title: "last request",
    of: ({ lastRequestTime = "" }: TrainingRunInfo) => lastRequestTime.slice(0, 16).replace("T", " "),
  },
];

export async function serverRunInfo(context: CommandContext, id: string, flags: RemoteFlags): Promise<ExitCode> {
  const { run, checkpoints } = await withServer(context, flags, undefined, async (client) => ({
    run: await client.rest.trainingRun(id),
    checkpoints: await serverCheckpoints(client, id),
  }));
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: SERVER_RUNS_JSON_VERSION, ...run, checkpoints })}\n`);
    return EXIT.done;
  }
  context.out(`${context.style.bold(run.runId)}\n  model    ${run.baseModel}\n  trains   ${adapter(run)}\n`);
  if (run.lastRequestTime) context.out(`  last     ${run.lastRequestTime}\n`);
  for (const { tinkerPath } of checkpoints) context.out(`  keeps    ${tinkerPath}\n`);
  return EXIT.done;
}
