/** A stream of bytes as blocks of whole lines: the unit of work of a thread. Memory is bounded by the longest line allowed. */
import type { Chunks } from "./decode.ts";

export interface Block {
  /** Whole lines; only the last of a source may lack its newline. Empty where one line was longer than allowed. */
  readonly bytes: Buffer;
  /** Lines that the block stands for without holding them: 1 where one was too long, else 0. */
  readonly overlong: 0 | 1;
}

const NEWLINE = 10;
export const BLOCK_BYTES = 1 << 19;

/** Memory for a block, of at least so many bytes. */
export type Allocate = (bytes: number) => Buffer;

/** `blockBytes` is what a block has at least, except the last. A block's memory is `allocate`'s, and whoever takes it owns it. */
export async function* lineBlocks(
  chunks: Chunks,
  maxLineBytes: number,
  blockBytes = BLOCK_BYTES,
  allocate: Allocate = Buffer.allocUnsafeSlow,
): AsyncGenerator<Block> {
  let parts: Buffer[] = [];
  let length = 0;
  let isSkipping = false;
  for await (const chunk of chunks) {
    let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (isSkipping) {
      const end = bytes.indexOf(NEWLINE);
      if (end < 0) continue;
      isSkipping = false;
      bytes = bytes.subarray(end + 1);
    }
    parts.push(bytes);
    length += bytes.length;
    if (length < blockBytes) continue;
    const last = bytes.lastIndexOf(NEWLINE);
    if (last >= 0) {
      const rest = bytes.subarray(last + 1);
      const whole = [...parts.slice(0, -1), bytes.subarray(0, last + 1)];
      yield { bytes: joined(whole, length - rest.length, allocate), overlong: 0 };
      parts = rest.length > 0 ? [Buffer.from(rest)] : [];
      length = rest.length;
    } else if (length > maxLineBytes) {
      yield* cutAtOverlong(parts, length, allocate);
      parts = [];
      length = 0;
      isSkipping = true;
    }
  }
  if (length > 0) yield { bytes: joined(parts, length, allocate), overlong: 0 };
}

/** Complete lines before the one that is too long, then the mark that stands for it. */
function* cutAtOverlong(parts: readonly Buffer[], length: number, allocate: Allocate): Generator<Block> {
  const all = joined(parts, length, allocate);
  const last = all.lastIndexOf(NEWLINE);
  if (last >= 0) yield { bytes: all.subarray(0, last + 1), overlong: 0 };
  yield { bytes: Buffer.alloc(0), overlong: 1 };
}

/** A copy that owns its memory, so that it can be handed to another thread. */
function joined(parts: readonly Buffer[], length: number, allocate: Allocate): Buffer {
  const all = allocate(length);
  let at = 0;
  for (const part of parts) at += part.copy(all, at);
  return all.subarray(0, length);
}
