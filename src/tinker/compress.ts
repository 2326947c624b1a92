/** zstd, which Node has from 22.15 on. It is never required: where it is missing, bodies travel as they are. */
import * as zlib from "node:zlib";

export type Compress = (bytes: Uint8Array) => Promise<Uint8Array>;

type ZstdCompress = (bytes: Uint8Array, done: (error: Error | null, result: Uint8Array) => void) => void;

/** The runtime's compressor, or undefined. `library` is `node:zlib`, whose older versions lack the function. */
export function zstdOf(library: object): Compress | undefined {
  const { zstdCompress } = library as { readonly zstdCompress?: ZstdCompress };
  if (zstdCompress === undefined) return undefined;
  return (bytes) =>
    new Promise((resolve, reject) => zstdCompress(bytes, (error, result) => (error ? reject(error) : resolve(result))));
}

export const runtimeZstd: Compress | undefined = zstdOf(zlib);
