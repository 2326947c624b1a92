/** Compressed bodies. Node has zstd since 22.15; a server on an older one says so and clients send plain bodies. */

import { promisify } from "node:util";
import zlib from "node:zlib";
import { messageOf } from "../../../diagnostic.ts";
import { HttpError } from "./errors.ts";

type Decompress = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const { zstdDecompress } = zlib as { zstdDecompress?: Parameters<typeof promisify>[0] };
const decompressZstd = zstdDecompress && (promisify(zstdDecompress) as unknown as Decompress);

/** The body in the clear. 415 for encodings that are not read, 422 for bytes that are not what the header says. */
export async function decompress(bytes: Buffer, encoding: string | undefined, limitBytes: number): Promise<Buffer> {
  if (encoding === undefined || encoding === "identity") return bytes;
  if (encoding !== "zstd") throw new HttpError(415, `The embedded server does not read ${encoding} bodies.`);
  if (decompressZstd === undefined)
    throw new HttpError(
      415,
      `Node ${process.version} has no zstd: send the body uncompressed, or run the server on Node 22.15 or later.`,
    );
  try {
    return await decompressZstd(bytes, { maxOutputLength: limitBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
      throw new HttpError(413, `The body is larger than ${limitBytes} bytes.`);
    throw new HttpError(422, `The body is not valid zstd: ${messageOf(error)}`);
  }
}
