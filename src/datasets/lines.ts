/** Lines of JSON from a stream of bytes: memory for one line at a time, whatever the size of the file. */
import { messageOf } from "../diagnostic.ts";
import { damaged, type RejectedRow } from "./row.ts";

export type JsonLine =
  | { readonly line: number; readonly value: unknown }
  | { readonly line: number; readonly rejected: RejectedRow };

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

/** Parses each line; empty lines are passed over, anything else gives a value or a rejection. */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<JsonLine> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  for await (const { line, bytes } of splitLines(chunks)) {
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      yield { line, rejected: damaged("not valid UTF-8") };
      continue;
    }
    if (line === 1) text = text.replace(/^\uFEFF/, "");
    if (text.trim() === "") continue;
    try {
      yield { line, value: JSON.parse(text) };
    } catch (error) {
      yield { line, rejected: damaged(jsonFault(text, error)) };
    }
  }
}

/** Names the fault without quoting the row: reasons are grouped, and logs may be private. */
function jsonFault(text: string, error: unknown): string {
  const message = messageOf(error);
  const position = Number(/position (\d+)/.exec(message)?.[1] ?? -1);
  if (/end of JSON/.test(message) || position >= text.trimEnd().length) return "JSON breaks off";
  return /^\s*[[{]/.test(text) ? "not valid JSON" : "not a JSON object";
}
