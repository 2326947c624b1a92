/** A client of a command's server, for what the server keeps: checkpoints, training runs, sessions. */
import { fail } from "../diagnostic.ts";
import { TinkerClient } from "../tinker/client.ts";
import type { CheckpointInfo } from "../tinker/data.ts";
import { isUnsupported } from "../tinker/errors.ts";
import type { Supported } from "../tinker/rest.ts";
import type { CommandContext } from "./context.ts";
import { openTarget, type Target, type TargetFlags } from "./target.ts";
import { requireAnswer, serverFault } from "./voices.ts";

export interface RemoteFlags extends TargetFlags {
  /** Only ids, a line each. */
  readonly quiet?: boolean;
}

/** Starts a server of ours on need. `asked` names a run or deployment whose server it is. */
export async function withServer<T>(
  context: CommandContext,
  flags: TargetFlags,
  asked: string | undefined,
  work: (client: TinkerClient, target: Target) => Promise<T>,
): Promise<T> {
  // What a server keeps is asked for whatever models it serves.
  const anyModel = flags.baseUrl === undefined ? {} : { model: "any" };
  const target = await openTarget(context, { ...anyModel, ...flags }, asked);
  const { url, token } = await target.connect();
  const client = new TinkerClient({ baseUrl: url, ...(token === undefined ? {} : { apiKey: token }) });
  try {
    await requireAnswer(client);
    return await work(client, target);
  } catch (error) {
    return serverFault(error);
  } finally {
    await client.close();
  }
}

/** The value of a call that not every server has. Fails with RL9023. */
export function required<T>(result: Supported<T>, what: string): T {
  if (result.supported) return result.value;
  return fail("RL9023", `This server cannot ${what}: ${result.reason.replace(/\.$/, "")}.`);
}

/** All that a server keeps, or of one of its runs. A server that does not list all at once is asked run by run. */
export async function serverCheckpoints(client: TinkerClient, run?: string): Promise<readonly CheckpointInfo[]> {
  if (run !== undefined) return client.listCheckpoints(run);
  try {
    return await client.listCheckpoints();
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    const runs = await client.trainingRuns();
    const lists = await Promise.all(runs.map(({ runId }) => client.listCheckpoints(runId)));
    return lists.flat();
  }
}
