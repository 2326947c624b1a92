/** Lines from a stream of bytes: memory for one line at a time, whatever the size of the file. */

/** Splits at newlines; a last line without one counts too. Lines number from 1. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<{ line: number; bytes: Buffer }> {
  let parts: Buffer[] = [];
  let line = 1;
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      const last = bytes.subarray(start, end);
      yield { line, bytes: parts.length > 0 ? Buffer.concat([...parts, last]) : last };
      parts = [];
      line += 1;
      start = end + 1;
    }
    if (start < bytes.length) parts.push(bytes.subarray(start));
  }
  if (parts.length > 0) yield { line, bytes: Buffer.concat(parts) };
}
