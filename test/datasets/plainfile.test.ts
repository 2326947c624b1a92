// The quick ways in and out of files give what streams give: the same blocks, rows, counts and places.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import type { Block } from "../../src/datasets/blocks.ts";
import { type ConvertRequest, convert, convertInto } from "../../src/datasets/convert.ts";
import { PlainFile } from "../../src/datasets/plainfile.ts";
import { openSource } from "../../src/datasets/sources.ts";
import { Tally } from "../../src/datasets/tally.ts";

const folder = mkdtempSync(join(tmpdir(), "rlcli-test-plain-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const path = join(folder, "log.jsonl");
const never = (error: unknown): never => {
  throw error;
};

async function* inChunks(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function taken(blocks: AsyncIterable<Block> | Iterable<Block>): Promise<{ bytes: Buffer; overlong: number }> {
  const parts: Buffer[] = [];
  let overlong = 0;
  for await (const block of blocks) {
    overlong += block.overlong;
    parts.push(Buffer.from(block.bytes));
  }
  return { bytes: Buffer.concat(parts), overlong };
}

test("blocks of a file hold its whole lines, each once, and not those that are too long", async () => {
  const lines = fc.array(fc.string({ maxLength: 60 }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(
      lines,
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 8, max: 80 }),
      async (parts, size, most) => {
        const bytes = Buffer.from(parts.join("\n"));
        writeFileSync(path, bytes);
        const file = PlainFile.open(path, never) as PlainFile;
        try {
          const whole = await taken(file.blocks(1 << 20, Buffer.allocUnsafeSlow, size));
          expect(whole).toEqual({ bytes, overlong: 0 });
          const bounded = await taken(file.blocks(most, Buffer.allocUnsafeSlow, size));
          // Whether a line that is too long is passed over or left to the reader depends on where the blocks end.
          const isShort = (line: string) => Buffer.byteLength(line) <= most;
          const kept = bounded.bytes.toString().split("\n");
          expect(kept.filter(isShort).filter((l) => l !== "")).toEqual(
            parts
              .join("\n")
              .split("\n")
              .filter(isShort)
              .filter((l) => l !== ""),
          );
          const tooLong = (all: readonly string[]) => all.filter((line) => !isShort(line)).length;
          expect(bounded.overlong + tooLong(kept)).toBe(tooLong(parts.join("\n").split("\n")));
        } finally {
          file.close();
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("memory that is used again does not change what blocks hold", async () => {
  const text = Array.from({ length: 4000 }, (_, i) => `${i} ${"x".repeat(i % 997)}`).join("\n");
  writeFileSync(path, text);
  const file = PlainFile.open(path, never) as PlainFile;
  const memory = Buffer.alloc(1 << 16);
  const parts: string[] = [];
  for (const { bytes } of file.blocks(1 << 20, (size) => memory.subarray(0, size), 1 << 12))
    parts.push(bytes.toString());
  file.close();
  expect(parts.join("")).toBe(text);
  expect(parts.length).toBeGreaterThan(100);
});

const turn = (role: string, content: string) => ({ role, content });
const conversation = fc.record({ topic: fc.nat(5), turns: fc.integer({ min: 1, max: 4 }) }).map(({ topic, turns }) =>
  JSON.stringify({
    model: "m",
    messages: Array.from({ length: turns }, (_, i) => [turn("user", `é${topic}.${i}`), turn("assistant", "ok")]).flat(),
  }),
);
const line = fc.oneof(
  { arbitrary: conversation.map((text) => Buffer.from(text)), weight: 6 },
  fc
    .constantFrom("{", "", " ", '{"messages":[]}', "[1", "\u0000", `"${"x".repeat(300)}"`)
    .map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
);
/** What stands before the first line, and how lines end. */
const frame = fc.record({
  mark: fc.constantFrom("", "\ufeff"),
  end: fc.constantFrom("\n", "\r\n"),
  last: fc.boolean(),
});
const request = fc.record({
  dedupe: fc.constantFrom("none" as const, "exact" as const, "prefix" as const),
  limit: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  sample: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  size: fc.constantFrom(7, 1 << 16),
});

test("files in and out give what streams give", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 14 }), request, frame, async (lines, asked, { mark, end, last }) => {
      const { dedupe, limit, sample, size } = asked;
      const ended = lines.flatMap((l, i) => (i < lines.length - 1 || last ? [l, Buffer.from(end)] : [l]));
      const bytes = Buffer.concat([Buffer.from(mark), ...ended]);
      writeFileSync(path, bytes);
      const given: ConvertRequest = {
        format: undefined,
        options: {
          min_messages: 2,
          max_line_bytes: 250,
          redact: {},
          dedupe,
          ...(limit ? { limit } : {}),
          ...(sample ? { sample } : {}),
        },
        threads: 0,
      };
      const streamed = new Tally();
      const rows: Buffer[] = [];
      for await (const more of convert([{ name: path, bytes: inChunks(bytes, size) }], given, streamed))
        rows.push(more);

      const placed = new Tally();
      const out = join(folder, "rows.jsonl");
      const fd = openSync(out, "w+");
      try {
        for await (const _ of convertInto(fd, [openSource({ name: path, path })], given, placed));
      } finally {
        closeSync(fd);
      }
      expect(readFileSync(out, "utf8")).toBe(Buffer.concat(rows).toString());
      const counts = placed.statistics();
      expect(counts).toEqual(streamed.statistics());
      const dropped = Object.values(counts.dropped).reduce((sum, count) => sum + count, 0);
      if (!limit) expect(counts.rows + dropped).toBe(counts.lines);
    }),
    { numRuns: 300 },
  );
}, 240_000);

test("rows of several sources, some of which wait, stand in their order", async () => {
  const log = (name: string, format: object[]) => {
    const file = join(folder, name);
    writeFileSync(file, format.map((l) => `${JSON.stringify(l)}\n`).join(""));
    return openSource({ name: file, path: file });
  };
  const turns = (question: string) => [turn("user", question), turn("assistant", "ok")];
  const sources = () => [
    log("a.jsonl", [{ messages: turns("first") }]),
    log("b.jsonl", [
      { model: "m", messages: turns("grows") },
      { model: "m", messages: [...turns("grows"), ...turns("on")] },
      { model: "m", messages: turns("other") },
    ]),
    log("c.jsonl", [{ messages: turns("last") }]),
  ];
  const given: ConvertRequest = { format: undefined, options: { min_messages: 2 }, threads: 0 };
  const out = join(folder, "several.jsonl");
  const fd = openSync(out, "w+");
  const tally = new Tally();
  for await (const _ of convertInto(fd, sources(), given, tally));
  closeSync(fd);
  const questions = readFileSync(out, "utf8")
    .trim()
    .split("\n")
    .map((l) => (JSON.parse(l) as { messages: { content: string }[] }).messages.at(-2)?.content);
  expect(questions).toEqual(["first", "on", "other", "last"]);
  expect(tally.rows).toBe(4);
});

test("threads, which take blocks in turn with the main one, change nothing of a file", async () => {
  const lines = Array.from({ length: 24_000 }, (_, i) =>
    i % 6000 === 5999
      ? `{"broken": ${i}`
      : JSON.stringify({
          model: "m",
          messages: [
            turn("user", `${i % 9000} é ${"x".repeat(200)}`),
            turn("assistant", `mail a${i % 50}@example.org`),
          ],
        }),
  );
  writeFileSync(path, `${lines.join("\n")}\n`);
  const outputs: { rows: string; statistics: unknown }[] = [];
  for (const threads of [0, 2]) {
    const tally = new Tally();
    const out = join(folder, "threads.jsonl");
    const fd = openSync(out, "w+");
    const given = { format: undefined, options: { min_messages: 2, redact: {} }, threads };
    for await (const _ of convertInto(fd, [openSource({ name: path, path })], given, tally));
    closeSync(fd);
    outputs.push({ rows: readFileSync(out, "utf8"), statistics: tally.statistics() });
  }
  expect(outputs[1]?.rows === outputs[0]?.rows).toBe(true);
  expect(outputs[1]?.statistics).toEqual(outputs[0]?.statistics);
  expect(outputs[0]?.statistics).toMatchObject({ lines: 24_000, dropped: { "JSON breaks off": 4 } });
}, 300_000);
