// What the spool keeps is what a list in memory would, however few keys are compared at once.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Dedupe } from "../../src/datasets/options.ts";
import { Spool } from "../../src/datasets/spool.ts";

interface Given {
  readonly key: bigint;
  readonly beginnings: readonly bigint[];
  readonly text: string;
}

const key = fc.integer({ min: 1, max: 12 }).map((n) => (BigInt(n) << 60n) | (BigInt(n) << 30n) | BigInt(n));
const row = fc.record({
  key,
  beginnings: fc.array(key, { maxLength: 2 }),
  text: fc.stringMatching(/^[a-z]{0,20}$/),
});
const batches = fc.array(
  fc.record({
    rows: fc.array(row, { minLength: 1, maxLength: 6 }),
    dedupe: fc.constantFrom<Dedupe>("none", "exact", "prefix"),
  }),
  { maxLength: 6 },
);

function expected(given: readonly { rows: readonly Given[]; dedupe: Dedupe }[]) {
  const shadows = new Set(
    given.filter((b) => b.dedupe === "prefix").flatMap((b) => b.rows.flatMap((r) => r.beginnings)),
  );
  const seen = new Set<bigint>();
  const kept: string[] = [];
  const drops: string[] = [];
  for (const [b, { rows, dedupe }] of given.entries())
    for (const [i, r] of rows.entries()) {
      if (dedupe === "prefix" && shadows.has(r.key))
        drops.push(`the beginning of a longer conversation ${b}:${10 + i}`);
      else if (dedupe !== "none" && seen.has(r.key)) drops.push(`equal to an earlier row ${b}:${10 + i}`);
      else kept.push(r.text);
      if (dedupe !== "none" && !(dedupe === "prefix" && shadows.has(r.key))) seen.add(r.key);
    }
  return { kept, drops };
}

test("growing and equal conversations", () => {
  fc.assert(
    fc.property(batches, fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 30 }), (given, atOnce, limit) => {
      const spool = new Spool({ min_messages: 1 }, atOnce);
      try {
        for (const [b, { rows, dedupe }] of given.entries())
          spool.add({
            file: String(b),
            lineBefore: 9,
            dedupe,
            rows: Buffer.from(rows.map((r) => `${r.text}\n`).join("")),
            rowLines: Uint32Array.from(rows, (_, i) => i + 1),
            sets: undefined,
            keys: {
              wholes: BigUint64Array.from(rows, (r) => r.key),
              beginnings: new BigUint64Array(rows.flatMap((r) => r.beginnings)),
            },
          });
        const drops: string[] = [];
        const chunks = [...spool.kept((reason, file, line) => drops.push(`${reason} ${file}:${line}`), limit)];
        const kept = chunks.flatMap(({ rows }) => rows.toString().slice(0, -1).split("\n"));
        const wanted = expected(given);
        expect(kept).toEqual(wanted.kept.slice(0, limit));
        expect(chunks.reduce((sum, { count }) => sum + count, 0)).toBe(kept.length);
        expect(drops).toEqual(wanted.drops);
      } finally {
        spool.close();
      }
    }),
    { numRuns: 300 },
  );
});
