// The loops in WebAssembly against what they are defined to be.
import fc from "fast-check";
import { expect, test } from "vitest";
import { pairTables } from "../../src/datasets/kernels.ts";
import { conversationKeys, KeyList, kindOf, splitPoint } from "../../src/datasets/keys.ts";
import { MarkedBytes, nextMark } from "../../src/datasets/marks.ts";
import { SpanMemory } from "../../src/datasets/spanmemory.ts";

const marked = new MarkedBytes(pairTables([{ byte: { low: [1, 2], high: [6] }, next: { low: [3], high: [6] } }]));

/** Places of the marks in the first `length` bytes. */
const places = (marks: Uint32Array, length: number): number[] => {
  const found: number[] = [];
  for (let at = nextMark(marks, 0, length); at < length; at = nextMark(marks, at + 1, length)) found.push(at);
  return found;
};

test("marks are where a string can stop, and where a pair stands", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(0, 9, 10, 31, 32, 0x22, 0x5c, 0x61, 0x62, 0x63, 0x7f, 0x80, 0xff), { maxLength: 200 }),
      (list) => {
        marked.take(Uint8Array.from(list));
        const stops = list.flatMap((byte, at) => (byte < 0x20 || byte === 0x22 || byte === 0x5c ? [at] : []));
        expect(places(marked.stops, list.length)).toEqual(stops);
        const pairs = list.flatMap((byte, at) =>
          (byte === 0x61 || byte === 0x62) && list[at + 1] === 0x63 ? [at] : [],
        );
        // What follows the last byte is not the text's.
        expect(places(marked.points, Math.max(0, list.length - 1))).toEqual(pairs);
      },
    ),
    { numRuns: 500 },
  );
});

test.each([
  ["", "ef46db3751d8e999"],
  ["a", "d24ec4f1a98c6e5b"],
  ["abc", "44bc2cf5ad770999"],
  ["Nobody inspects the spammish repetition", "fbcea83c8a378bf1"],
])("XXH64 of %j", (text, digest) => {
  marked.encode(text);
  expect(BigInt.asUintN(64, marked.hash(0, marked.length, 0n)).toString(16)).toBe(digest);
});

test("memory grows for what is larger", () => {
  const large = Buffer.alloc(3 << 20, "x");
  large[large.length - 1] = 0x22;
  marked.take(large);
  expect(places(marked.stops, large.length)).toEqual([large.length - 1]);
});

test("rows of spans and pieces, and their keys, are those of their texts", () => {
  const kinds = [kindOf({ role: "user", content: "" }), kindOf({ role: "assistant", content: "" })];
  const memory = new SpanMemory(undefined, kinds, [",one", "two"]);
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary", maxLength: 90 }), { minLength: 1, maxLength: 6 }), (contents) => {
      const literals = contents.map((content) => JSON.stringify(content));
      const block = Buffer.from(literals.join(""));
      memory.take(block);
      memory.clearKey();
      let at = 0;
      for (const [i, literal] of literals.entries()) {
        const end = at + Buffer.byteLength(literal);
        memory.piece(i % 2, i % 2 === 0 ? 1 : 0);
        const start = memory.rows.length;
        memory.span(at, end);
        if (i % 3 === 0) memory.fold(i % 2, at + 1, end - 1);
        else if (i % 3 === 1) memory.foldRows(i % 2, start + 1, memory.rows.length - 1);
        else memory.foldLiteral(i % 2, literal);
        at = end;
      }
      const found = new KeyList();
      memory.keep(found);
      const messages = contents.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }));
      const { whole } = conversationKeys(messages);
      expect(found.take()[0]).toBe(BigInt.asUintN(64, whole));
      if (messages.length === 1) expect(memory.keyPoint()).toBe(splitPoint(messages));
      const text = literals.map((literal, i) => `${i % 2 === 0 ? "one" : "two"}${literal}`).join("");
      expect(memory.rows.take().toString()).toBe(text);
    }),
    { numRuns: 300 },
  );
});

test("rows outgrow their memory, and what was written stays", () => {
  const memory = new SpanMemory(undefined, [], ["x"]);
  memory.take(Buffer.alloc(3000, "y"));
  for (let i = 0; i < 100; i += 1) {
    memory.piece(0);
    memory.span(0, 3000);
  }
  const rows = memory.rows.take();
  expect(rows.toString()).toBe(`x${"y".repeat(3000)}`.repeat(100));
  expect(memory.bytes.subarray(0, memory.length).equals(Buffer.alloc(3000, "y"))).toBe(true);
});
