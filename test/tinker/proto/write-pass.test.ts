// Plain datums are written without the general encoder, and a step that is sent again after a crash must be the same bytes, whichever
// version of the program began it: so the two agree to the byte.
import fc from "fast-check";
import { expect, test } from "vitest";
import { type DatumMessage, encodePassMessage, type PassMessage } from "../../../src/tinker/proto/request.ts";
import { tensorOf } from "../../../src/tinker/proto/tensor.ts";

/** A record of the general encoder has no such field. */
const name = fc.string().filter((text) => text !== "__proto__");
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const tokens = fc.oneof(fc.array(int32, { maxLength: 40 }), fc.array(int32, { minLength: 200, maxLength: 300 }));
const floats = fc.array(fc.float(), { maxLength: 80 }).map((values) => Float32Array.from(values));
const tensor = fc.oneof(
  tokens.map((values) => tensorOf(Int32Array.from(values))),
  floats.map((values) => tensorOf(values)),
  floats.map((values) => tensorOf(values, [values.length, 1])),
  fc.float().map((value) => tensorOf(Float32Array.of(value), [])),
);
const datum: fc.Arbitrary<DatumMessage> = fc.record({
  input: fc.array(
    tokens.map((values) => ({ type: "encoded_text" as const, tokens: Int32Array.from(values).subarray(1) })),
    { maxLength: 3 },
  ),
  lossInputs: fc.dictionary(name, tensor, { maxKeys: 5 }),
});
const message: fc.Arbitrary<PassMessage> = fc.record({
  modelId: fc.string(),
  seqId: fc.nat(),
  lossName: fc.string(),
  lossConfig: fc.dictionary(name, fc.oneof(fc.double(), fc.string()), { maxKeys: 1 }),
  forwardOnly: fc.boolean(),
  data: fc.array(datum, { maxLength: 5 }),
});

test("plain datums are written as the general encoder writes them", () => {
  fc.assert(
    fc.property(message, (plain) => {
      // Spans, though there are none, are only the general encoder's.
      const general = { ...plain, data: plain.data.map((each) => ({ ...each, inputSpans: [] })) };
      expect(Buffer.from(encodePassMessage(plain)).equals(encodePassMessage(general))).toBe(true);
    }),
  );
});
