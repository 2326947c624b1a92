/** `rlcli env gc`: what is left on the daemon of sandboxes, shown and removed. */

import type Docker from "dockerode";
import { fail } from "../../diagnostic.ts";
import { durationMs } from "../../duration.ts";
import { reapBuilds } from "../../environments/sandbox/building.ts";
import { checkDaemon, connectDaemon } from "../../environments/sandbox/daemon.ts";
import { buildFolder } from "../../environments/sandbox/docker.ts";
import {
  type FoundContainer,
  type FoundImage,
  listSandboxes,
  listTaskImages,
  removeContainer,
  removeImage,
} from "../../environments/sandbox/reap.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { cacheFolder } from "../project.ts";
import { gcLines } from "../views/env.ts";

export interface GcFlags {
  readonly host?: string;
  readonly dryRun?: boolean;
  /** Also containers that were left to be looked at. */
  readonly kept?: boolean;
  /** Also containers of other machines and of processes that live. */
  readonly all?: boolean;
  /** Also images of tasks. */
  readonly images?: boolean;
  readonly olderThan?: string;
}

export async function envGc(context: CommandContext, flags: GcFlags): Promise<ExitCode> {
  const connection = await connectDaemon(flags.host, context.env);
  try {
    return await collect(context, flags, connection.docker);
  } finally {
    connection.close();
  }
}

async function collect(context: CommandContext, flags: GcFlags, docker: Docker): Promise<ExitCode> {
  const facts = await checkDaemon(docker);
  const found = await listSandboxes(docker);
  const doomed = found.filter((one) => isDoomed(one, flags));
  const images = flags.images ? (await listTaskImages(docker)).filter(isOlder(flags.olderThan)) : [];
  const removed: FoundImage[] = [];
  if (!flags.dryRun) {
    await reapBuilds(docker, buildFolder(cacheFolder(context.env), facts));
    await Promise.all(doomed.map(({ id }) => removeContainer(docker, id)));
    for (const image of images) if (await removeImage(docker, image)) removed.push(image);
  }
  const left = found.filter((one) => !doomed.includes(one));
  const shown = { removed: doomed, left, images: flags.dryRun ? images : removed, isDryRun: flags.dryRun ?? false };
  context.out(context.isJson ? `${JSON.stringify({ formatVersion: 1, ...shown })}\n` : gcLines(shown, context.style));
  return EXIT.done;
}

function isDoomed({ verdict, isKept }: FoundContainer, { all, kept }: GcFlags): boolean {
  if (isKept) return kept === true;
  return verdict === "dead" || all === true;
}

function isOlder(duration: string | undefined): (image: FoundImage) => boolean {
  if (duration === undefined) return () => true;
  const ms = durationMs(duration);
  if (Number.isNaN(ms)) fail("RL9003", `--older-than takes a duration such as 12h or 7d, not \`${duration}\`.`);
  return ({ createdMs }) => Date.now() - createdMs > ms;
}
