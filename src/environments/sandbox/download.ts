/** Files out of a container, unpacked with suspicion: regular files only, within limits, in memory. */
import type Docker from "dockerode";
import { extract } from "tar-stream";
import { diagnostic } from "../../diagnostic.ts";
import { failSandbox, statusOf, wordsOf } from "./daemon.ts";
import { type DownloadedFile, type DownloadLimits, TooMuchError } from "./sandbox.ts";

export async function downloadFiles(
  container: Docker.Container,
  path: string,
  limits: DownloadLimits,
): Promise<readonly DownloadedFile[] | undefined> {
  let stream: NodeJS.ReadableStream;
  try {
    stream = await container.getArchive({ path });
  } catch (error) {
    if (statusOf(error) === 404 && /could not find the file|no such file/i.test(wordsOf(error))) return undefined;
    return failSandbox(`${path} cannot be read from the container`, error);
  }
  const reader = extract();
  stream.on("error", (error) => reader.destroy(error));
  stream.pipe(reader);
  const files: DownloadedFile[] = [];
  let bytes = 0;
  let entries = 0;
  try {
    for await (const entry of reader) {
      const { name, type, size = 0, mode = 0 } = entry.header;
      entries += 1;
      bytes += size;
      if (bytes > limits.bytes || entries > limits.entries) tooMuch(path, limits);
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      // The first part is the base name of what was asked for.
      const parts = name.split("/").filter((part) => part !== "" && part !== ".");
      if (type !== "file" || parts.includes("..")) continue;
      files.push({ path: parts.slice(1).join("/"), mode: mode & 0o777, bytes: Buffer.concat(chunks) });
    }
  } catch (error) {
    return failSandbox(`${path} cannot be read from the container`, error);
  } finally {
    reader.destroy();
    (stream as unknown as { destroy?: () => void }).destroy?.();
  }
  return files;
}

function tooMuch(path: string, { bytes, entries }: DownloadLimits): never {
  const detail = `${path} is more than may be read from a container (${bytes} bytes, ${entries} files).`;
  throw new TooMuchError(diagnostic("RL7303", detail));
}
