/** `rlcli checkpoint download`: the files of a checkpoint as a folder, or its archive as the server packs it. */
import { createWriteStream, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract } from "tar-stream";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { isFileSystemError, syncFolder, temporaryName } from "../../files.ts";
import type { Archive } from "../../tinker/archive.ts";
import type { TinkerClient } from "../../tinker/client.ts";
import { TinkerError } from "../../tinker/errors.ts";
import { parseCheckpointPath } from "../../tinker/paths.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { type RemoteFlags, required, withServer } from "../remote.ts";
import { pathsNamed } from "./checkpoint-server.ts";

export interface DownloadFlags extends RemoteFlags {
  readonly output?: string;
  /** Of a run's step: the training state instead of the weights to sample. */
  readonly training?: boolean;
  readonly archive?: boolean;
}

export async function checkpointDownload(
  context: CommandContext,
  name: string,
  flags: DownloadFlags,
): Promise<ExitCode> {
  const { path, to } = await withServer(context, flags, name, async (client, target) => {
    const { training, sampler } = await pathsNamed(target, name);
    const path = (flags.training ? training : (sampler ?? training)) ?? sampler;
    const parts = path === undefined ? undefined : parseCheckpointPath(path);
    if (path === undefined || !parts) return fail("RL9009", `\`${name}\` has no checkpoint to download.`);
    const given = flags.output ?? `${parts.run}_${parts.name}`.replaceAll(":", "_");
    const to = resolve(context.cwd, flags.archive && flags.output === undefined ? `${given}.tar` : given);
    if (existsSync(to)) fail("RL9004", `${to} exists already. Give another place with --output.`);
    await (flags.archive ? saveArchive(client, path, to) : downloadFolder(client, path, to));
    return { path, to };
  });
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, path, to })}\n`);
  else context.out(flags.quiet ? `${to}\n` : `${path} is in ${to}\n`);
  return EXIT.done;
}

/** Fails with RL9023 where the server gives none, or keeps the weights elsewhere. */
async function openWeights(client: TinkerClient, path: string): Promise<Archive> {
  const archive = required(await client.rest.archive(path), "hand out checkpoints");
  if (archive.isMarker)
    fail(
      "RL9023",
      `The archive of ${path} holds no weights: the server keeps them elsewhere, at its \`checkpoints_base\`.`,
    );
  return archive;
}

async function saveArchive(client: TinkerClient, path: string, to: string): Promise<void> {
  const { bytes } = await openWeights(client, path);
  const temporary = temporaryName(to);
  mkdirSync(dirname(to), { recursive: true });
  try {
    await pipeline(Readable.from(bytes), createWriteStream(temporary));
    renameSync(temporary, to);
    syncFolder(dirname(to));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** The folder appears when it is whole. */
export async function downloadFolder(client: TinkerClient, path: string, to: string): Promise<void> {
  const { bytes, format } = await openWeights(client, path);
  const temporary = temporaryName(to);
  mkdirSync(temporary, { recursive: true });
  try {
    await unpack({ bytes, format }, temporary);
    renameSync(temporary, to);
    syncFolder(dirname(to));
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    if (error instanceof RlcliError || error instanceof TinkerError || isFileSystemError(error)) throw error;
    fail("RL5013", `The server's archive of ${path} is damaged: ${messageOf(error)}.`, { cause: error });
  }
}

/** Plain files only; a name that leads out of the folder is refused. */
async function unpack({ bytes, format }: Pick<Archive, "bytes" | "format">, folder: string): Promise<void> {
  const entries = extract();
  const unzipped = format === "tar.gz" ? [createGunzip()] : [];
  const feeding = pipeline([Readable.from(bytes), ...unzipped, entries]);
  // Whoever reads the entries meets its fault too, and first.
  feeding.catch(() => {});
  for await (const entry of entries) {
    const { name, type } = entry.header;
    const place = resolve(folder, name);
    const isInside = place.startsWith(`${folder}/`);
    if (type === "file" && isInside) {
      mkdirSync(dirname(place), { recursive: true });
      await pipeline(entry, createWriteStream(join(dirname(place), basename(place))));
    } else if (type === "directory" || place === folder) entry.resume();
    else fail("RL5013", `The server's archive holds \`${name}\`, which is no plain file within it.`);
  }
  await feeding;
}
