// Bytes that nobody should have sent: random, cut, flipped. A decoder gives an error value or a value that is sound; it
// never throws, hangs, or makes much out of little.
import { readFileSync } from "node:fs";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodePassMessage, encodePassMessage } from "../../../src/tinker/proto/request.ts";
import { decodePassOutput, encodePassOutput } from "../../../src/tinker/proto/result.ts";
import { decodeSampleMessage, encodeSampleMessage } from "../../../src/tinker/proto/sample.ts";
import { denseValues, elementsOf, tensorOf } from "../../../src/tinker/proto/tensor.ts";
import {
  type ArrayRecordSchema,
  DType,
  ForwardBackwardOutputSchema,
  SparseCsrSchema,
  TensorSchema,
} from "../../../src/tinker/proto/tinker.gen.ts";
import { topkOf } from "../../../src/tinker/proto/topk.ts";
import { decodedValue } from "./plain.ts";

const fixture = (file: string, key: string) =>
  JSON.parse(readFileSync(new URL(`../../fixtures/tinker/${file}.json`, import.meta.url), "utf8"))[key] as {
    message: string;
    hex: string;
  }[];
const corpus = [...fixture("recorded-decoded", "messages"), ...fixture("proto-vectors", "vectors")].map(({ hex }) =>
  Uint8Array.from(Buffer.from(hex, "hex")),
);
const decoders = { decodePassMessage, decodePassOutput, decodeSampleMessage };

/** A value is sound if what it claims about sizes is true. */
function isSound(value: any): boolean {
  if (ArrayBuffer.isView(value) || typeof value !== "object" || value === null) return true;
  if (value.dtype !== undefined && value.shape && !value.sparse && elementsOf(value.shape) !== value.data.length)
    return false;
  return Object.values(value).every(isSound);
}

const survives = (bytes: Uint8Array) => {
  for (const decode of Object.values(decoders)) {
    const result = decode(bytes);
    if (result.ok) expect(isSound(result.value)).toBe(true);
    else expect(result.error).toMatch(/^(ForwardBackward(Request|Output)|SampleResponse): ./);
  }
};

test("random bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), survives), { numRuns: 2000 });
});

test("every message cut at every byte", () => {
  for (const bytes of corpus) for (let end = 0; end < bytes.length; end += 1) survives(bytes.subarray(0, end));
});

test("messages with some bytes changed, dropped or doubled", () => {
  const edit = fc.record({ at: fc.nat(), kind: fc.constantFrom("set", "drop", "double"), to: fc.nat({ max: 255 }) });
  const cases = fc.tuple(fc.constantFrom(...corpus), fc.array(edit, { minLength: 1, maxLength: 6 }));
  fc.assert(
    fc.property(cases, ([original, edits]) => {
      const bytes = [...original];
      for (const { at, kind, to } of edits) {
        const i = at % Math.max(bytes.length, 1);
        if (kind === "set") bytes[i] = to;
        else if (kind === "drop") bytes.splice(i, 1);
        else bytes.splice(i, 0, bytes[i] ?? 0);
      }
      survives(Uint8Array.from(bytes));
    }),
    { numRuns: 5000 },
  );
});

describe("small bytes with large claims are refused at once", () => {
  const output = (record: Parameters<typeof create<typeof ArrayRecordSchema>>[1]) =>
    toBinary(ForwardBackwardOutputSchema, create(ForwardBackwardOutputSchema, { lossFnOutputs: [record!] }));
  const bigint = (...values: bigint[]) => new Uint8Array(BigInt64Array.from(values).buffer);
  const field = (patch: object) => ({
    numDatums: 1n,
    fields: { x: { data: new Uint8Array(8), offsets: bigint(0n, 8n), dtype: DType.DTYPE_FLOAT32, ...patch } },
  });
  test.each([
    ["a trillion datums without fields", output({ numDatums: 10n ** 12n }), "1000000000000 datums"],
    ["more datums than offsets", output({ ...field({}), numDatums: 10n ** 9n }), "2 offsets for 1000000000 datums"],
    ["a negative count", output({ numDatums: -1n }), "-1 datums"],
    ["offsets beyond the data", output(field({ offsets: bigint(0n, 80n) })), "do not span"],
    ["offsets that wrap", output(field({ offsets: bigint(0n, -(2n ** 63n)) })), "do not span"],
    [
      "offsets inside an element",
      output({ ...field({ offsets: bigint(0n, 3n, 8n) }), numDatums: 2n }),
      "ascending rows",
    ],
    ["descending offsets", output({ ...field({ offsets: bigint(0n, 8n, 4n, 8n) }), numDatums: 3n }), "ascending rows"],
    ["an empty trailing shape", output(field({ trailingShape: [0n] })), "holds nothing"],
    ["a huge trailing shape", output(field({ trailingShape: [2n ** 62n] })), "side of"],
    ["an unknown dtype", output(field({ dtype: 9 as never })), "dtype 9"],
    ["no dtype", output(field({ dtype: 0 })), "dtype 0"],
  ])("%s", (_, bytes, words) => {
    const result = decodePassOutput(bytes);
    expect(result.ok ? "" : result.error).toContain(words);
  });

  const sparseOf = (crow: number[], col: number[], shape = [2, 3]) =>
    encodePassMessage({
      modelId: "m",
      seqId: 1,
      lossName: "l",
      lossConfig: {},
      forwardOnly: true,
      data: [
        {
          input: [],
          lossInputs: {
            w: {
              dtype: "float32",
              shape,
              data: Float32Array.of(1, 2),
              sparse: { crow: Int32Array.from(crow), col: Int32Array.from(col) },
            },
          },
        },
      ],
    });
  test.each([
    ["a column beyond the shape", sparseOf([0, 1, 2], [0, 3]), "column index"],
    ["a column before it", sparseOf([0, 1, 2], [-1, 0]), "column index"],
    ["rows that end early", sparseOf([0, 1, 1], [0, 1]), "do not span"],
    ["rows that begin late", sparseOf([1, 1, 2], [0, 1]), "do not span"],
    ["rows that descend", sparseOf([0, 3, 2], [0, 1]), "descend"],
    ["rows of another number", sparseOf([0, 2], [0, 1]), "2 row indices for 2 rows"],
    ["columns of another number", sparseOf([0, 1, 2], [0]), "1 column indices for 2 values"],
    ["a vector", sparseOf([0, 2], [0, 1], [3]), "instead of rows and columns"],
  ])("sparse: %s", (_, bytes, words) => {
    const result = decodePassMessage(bytes);
    expect(result.ok ? "" : result.error).toContain(`data.0: loss_fn_inputs.w: `);
    expect(result.ok ? "" : result.error).toContain(words);
  });

  test("a sparse tensor is not written out beyond reason", () => {
    const sparse = { crow: new Int32Array(2 ** 16 + 1), col: new Int32Array(0) };
    const huge = { dtype: "float32", shape: [2 ** 16, 2 ** 16], data: new Float32Array(0), sparse } as const;
    expect(() => denseValues(huge)).toThrow(RangeError);
  });
});

describe("what is encoded is decoded again", () => {
  const float = fc.float({ noNaN: true }).map(Math.fround);
  const floats = (length: number) =>
    fc.array(float, { minLength: length, maxLength: length }).map((v) => Float32Array.from(v));
  const ints = fc.array(fc.integer(), { maxLength: 9 }).map((v) => Int32Array.from(v));
  // An object has no key of this name, and no metric has it either.
  const names = fc.string().filter((name) => name !== "__proto__");
  const metrics = fc.dictionary(names, fc.double());
  const wide = fc.array(fc.maxSafeInteger(), { minLength: 1, maxLength: 5 });

  test("passes and their results", () => {
    const datum = fc
      .nat({ max: 6 })
      .chain((n) => fc.record({ tokens: ints, values: floats(n), wide, k: fc.constant(n) }));
    fc.assert(
      fc.property(fc.array(datum, { maxLength: 5 }), metrics, (datums, metrics) => {
        const outputs = datums.map(({ values, tokens }) => ({ values: tensorOf(values), n: tensorOf(tokens) }));
        const output = { outputType: "T", outputs, metrics };
        expect(decodedValue(decodePassOutput(encodePassOutput(output)))).toEqual(output);
        const message = {
          modelId: "m:train:0",
          seqId: 3,
          lossName: "ppo",
          lossConfig: { a: 0.5, b: "x" },
          forwardOnly: false,
          data: datums.map(({ tokens, values }) => ({
            input: [{ type: "encoded_text" as const, tokens }],
            lossInputs: { target_tokens: tensorOf(tokens), weights: tensorOf(values) },
          })),
        };
        expect(decodedValue(decodePassMessage(encodePassMessage(message)))).toEqual(message);
      }),
    );
  });

  test("whole numbers beyond 32 bits stay exact", () => {
    fc.assert(
      fc.property(wide, (values) => {
        const outputs = [{ n: tensorOf(Float64Array.from(values)) }];
        const back = decodedValue(decodePassOutput(encodePassOutput({ outputType: "", outputs, metrics: {} })));
        expect([...back.outputs[0]!.n!.data]).toEqual(values.map((v) => v + 0));
      }),
    );
  });

  test("samples with rows of any length", () => {
    const row = fc.option(fc.array(fc.tuple(fc.nat(), float), { minLength: 1, maxLength: 4 }));
    fc.assert(
      fc.property(fc.array(row), ints, (rows, tokens) => {
        const message = {
          promptCacheHitTokens: 2,
          promptLogprobs: Float32Array.of(Number.NaN, -1),
          topkPrompt: topkOf(rows),
          sequences: [{ stopReason: "length" as const, tokens, topk: topkOf([[[1, -1]], null]) }],
        };
        expect(decodedValue(decodeSampleMessage(encodeSampleMessage(message)))).toEqual(message);
      }),
    );
  });

  test("a sparse tensor keeps its indices", () => {
    const sparse = create(SparseCsrSchema, {});
    expect(
      toBinary(TensorSchema, create(TensorSchema, { encoding: { case: "sparseCsr", value: sparse } })),
    ).toHaveLength(2);
    const tensor = {
      dtype: "float32",
      shape: [2, 3],
      data: Float32Array.of(1, 2),
      sparse: { crow: Int32Array.of(0, 0, 2), col: Int32Array.of(0, 2) },
    } as const;
    const message = { modelId: "m", seqId: 1, lossName: "l", lossConfig: {}, forwardOnly: true };
    const data = [{ input: [], lossInputs: { weights: tensor } }];
    expect(decodedValue(decodePassMessage(encodePassMessage({ ...message, data }))).data).toEqual(data);
  });
});
