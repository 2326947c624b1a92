// Compressed sources that break off or are damaged give every whole line before the fault, and say where it is.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { convert, type LineSource } from "../../src/datasets/convert.ts";
import { openSource } from "../../src/datasets/sources.ts";
import { Tally } from "../../src/datasets/tally.ts";

const folder = mkdtempSync(join(tmpdir(), "rlcli-inflate-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Numbers that compress badly, so that a fault lies in the midst of lines. */
const line = (i: number): string =>
  JSON.stringify({
    messages: [
      { role: "user", content: `${i} ${Math.sin(i)} ${Math.cos(i * 7)}` },
      { role: "assistant", content: `${Math.tan(i)}` },
    ],
  });
const text = (lines: number): string => Array.from({ length: lines }, (_, i) => `${line(i)}\n`).join("");

async function run(source: LineSource) {
  const tally = new Tally();
  const chunks: Buffer[] = [];
  for await (const rows of convert([source], { format: undefined, options: { min_messages: 2 }, threads: 0 }, tally))
    chunks.push(rows);
  return { rows: Buffer.concat(chunks).toString(), statistics: tally.statistics() };
}

async function* inPieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Whole lines that zlib itself can still give of a truncated stream. */
const wholeLines = (compressed: Buffer): string => {
  const all = gunzipSync(compressed, { finishFlush: 2 }).toString();
  return all.slice(0, all.lastIndexOf("\n") + 1);
};

describe.each([
  ["a file", (bytes: Buffer) => openSource(file(bytes))],
  ["a stream", (bytes: Buffer): LineSource => ({ name: "f", bytes: inPieces(bytes, 999) })],
])("%s", (_, source) => {
  test.each([10, 300, 5000])("that breaks off, of %i lines", async (count) => {
    const whole = gzipSync(text(count));
    for (const share of [0.3, 0.7, 0.99]) {
      const broken = whole.subarray(0, Math.floor(whole.length * share));
      const { rows, statistics } = await run(source(broken));
      expect(rows).toBe(wholeLines(broken));
      const after = rows.split("\n").length;
      expect(statistics.rejected.map((r) => r.reason)).toContain("the compressed data breaks off");
      expect(statistics.rejected.find((r) => r.reason.includes("breaks off"))?.places[0]).toMatch(
        new RegExp(`:(${after}|${after + 1}):`),
      );
    }
  });
  test.each([10, 300, 5000])("that is damaged, of %i lines", async (count) => {
    const whole = gzipSync(text(count));
    const at = Math.floor(whole.length * 0.6);
    const broken = Buffer.from(whole);
    broken.fill(0xff, at, at + 64);
    const { rows, statistics } = await run(source(broken));
    // What inflates before the damage is there, to its last whole line.
    const sound = wholeLines(whole.subarray(0, at - 8));
    expect(rows.startsWith(sound)).toBe(true);
    expect(statistics.rejected.map((r) => r.reason)).toContain("the compressed data is damaged");
  });
});

function file(bytes: Buffer) {
  const path = join(folder, "log.jsonl.gz");
  writeFileSync(path, bytes);
  return { name: "log.jsonl.gz", path };
}
