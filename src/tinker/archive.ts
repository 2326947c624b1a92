/**
 * Checkpoint archives. A server answers with a redirect or with a URL in JSON; the bytes behind it are gzip or plain tar
 * whatever the name says, and SkyRL's may hold a marker instead of weights.
 */

import { type HttpAnswer, parseJson } from "./answer.ts";
import { isUnsupported, TinkerError } from "./errors.ts";
import type { CallOptions } from "./future.ts";
import { checkpointUrl, parseCheckpointPath, runUrl } from "./paths.ts";
import type { HttpRequest, Transport } from "./transport.ts";

export interface Archive {
  /** By the bytes themselves. */
  readonly format: "tar.gz" | "tar";
  /** The archive holds no weights: the server keeps them elsewhere. Known of plain tar only. */
  readonly isMarker: boolean;
  /** May be read once. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export async function openArchive(transport: Transport, path: string, options: CallOptions): Promise<Archive> {
  const answer = await askForArchive(transport, path, options.signal);
  const { url } = (parseJson(answer) ?? {}) as { url?: unknown };
  const location = answer.headers.location ?? url;
  if (typeof location !== "string") {
    const reason = "the answer names no place to download from";
    throw new TinkerError({ kind: "failed", endpoint: `GET ${path}`, status: answer.status, reason });
  }
  return sniff(await transport.download(location, options.signal));
}

async function askForArchive(transport: Transport, path: string, signal: AbortSignal | undefined): Promise<HttpAnswer> {
  const get = (url: string): HttpRequest => ({ method: "GET", path: url, signal });
  try {
    return await transport.send(get(`${checkpointUrl(path)}/archive`));
  } catch (error) {
    const parts = parseCheckpointPath(path);
    if (!isUnsupported(error) || parts?.kind !== "sampler_weights") throw error;
    // SkyRL serves it under the bare name.
    return transport.send(get(`${runUrl(parts.run)}/checkpoints/${encodeURIComponent(parts.name)}/archive`));
  }
}

/** Enough for the first entry's name and the magic of a tar header. */
const HEAD_BYTES = 512;

/** Reads the head to tell what it is, and gives all of it back. */
export async function sniff(source: AsyncIterable<Uint8Array>): Promise<Archive> {
  const iterator = source[Symbol.asyncIterator]();
  const head: Uint8Array[] = [];
  for (let size = 0; size < HEAD_BYTES; ) {
    const { value, done } = await iterator.next();
    if (done) break;
    head.push(value);
    size += value.length;
  }
  const start = Buffer.concat(head);
  const isGzip = start[0] === 0x1f && start[1] === 0x8b;
  const firstName = start.subarray(0, 100).toString("latin1").replace(/\0.*$/s, "");
  return {
    format: isGzip ? "tar.gz" : "tar",
    isMarker: !isGzip && /^(\.\/)?MARKER$/.test(firstName),
    bytes: (async function* () {
      yield* head;
      yield* { [Symbol.asyncIterator]: () => iterator };
    })(),
  };
}
