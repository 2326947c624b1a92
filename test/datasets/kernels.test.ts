// The loops in WebAssembly against what they are defined to be.
import fc from "fast-check";
import { expect, test } from "vitest";
import { pairTables } from "../../src/datasets/kernels.ts";
import { MarkedBytes, nextMark } from "../../src/datasets/marks.ts";

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
