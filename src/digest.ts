/** Content digests. Every digest in state, plans and records is `sha256:` and 64 hex digits. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { canonicalJson } from "./value.ts";

export type Digest = `sha256:${string}`;

export function digestBytes(bytes: Uint8Array | string): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** Digest of a value's canonical JSON. */
export function digestJson(value: unknown): Digest {
  return digestBytes(canonicalJson(value));
}

export async function digestFile(path: string, signal?: AbortSignal): Promise<Digest> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash, {
    signal,
  });
  return `sha256:${hash.digest("hex")}`;
}

/** The short form used in folder names and output: the first 12 hex digits. */
export function shortDigest(digest: string): string {
  return digest.replace(/^sha256:/, "").slice(0, 12);
}
