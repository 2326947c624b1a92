// Bytes recorded from SDK 0.38 and a SkyRL server, and vectors built with that SDK's descriptors for what SkyRL never
// sends (fixtures/tinker): each decodes to the form written beside it, and encoding what was decoded gives it again.
import { readFileSync } from "node:fs";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import type { Decoded } from "../../../src/tinker/proto/decoded.ts";
import { decodePassMessage, encodePassMessage, type PassMessage } from "../../../src/tinker/proto/request.ts";
import { decodePassOutput, encodePassOutput, type PassOutput } from "../../../src/tinker/proto/result.ts";
import { decodeSampleMessage, encodeSampleMessage, type SampleMessage } from "../../../src/tinker/proto/sample.ts";
import { denseValues, readTensor } from "../../../src/tinker/proto/tensor.ts";
import { TensorSchema } from "../../../src/tinker/proto/tinker.gen.ts";
import { decodedValue, plainPass, plainPassOutput, plainSample, plainTensor } from "./plain.ts";

interface Vector {
  readonly name: string;
  readonly message: string;
  readonly hex: string;
  readonly decoded: any;
}
const load = (file: string): any =>
  JSON.parse(readFileSync(new URL(`../../fixtures/tinker/${file}.json`, import.meta.url), "utf8"));
const vectors: Vector[] = [...load("recorded-decoded").messages, ...load("proto-vectors").vectors];
const of = (message: string) => vectors.filter((v) => v.message === `tinker_public.${message}`);
/** At an odd place of a larger buffer, so that nothing may rely on alignment. */
const bytesAt = (hex: string, shift: number) => {
  const whole = new Uint8Array(hex.length / 2 + shift);
  whole.set(Buffer.from(hex, "hex"), shift);
  return whole.subarray(shift);
};

function check<T>(
  vector: Vector,
  decode: (bytes: Uint8Array) => Decoded<T>,
  encode: (value: T) => Uint8Array,
  plain: (value: T) => unknown,
) {
  const value = decodedValue(decode(bytesAt(vector.hex, 1)));
  expect(plain(value)).toEqual(vector.decoded);
  expect(plain(decodedValue(decode(encode(value))))).toEqual(vector.decoded);
}

describe("ForwardBackwardRequest", () => {
  test.each(of("ForwardBackwardRequest"))("$name", (v) =>
    check<PassMessage>(v, decodePassMessage, encodePassMessage, plainPass),
  );
});
describe("ForwardBackwardOutput", () => {
  test.each(of("ForwardBackwardOutput"))("$name", (v) =>
    check<PassOutput>(v, decodePassOutput, encodePassOutput, plainPassOutput),
  );
});
describe("SampleResponse", () => {
  test.each(of("SampleResponse"))("$name", (v) =>
    check<SampleMessage>(v, decodeSampleMessage, encodeSampleMessage, plainSample(v.decoded)),
  );
});

test("requests without maps of several keys are encoded to the recorded bytes", () => {
  const { hex } = of("SampleResponse").find((v) => v.name === "two samples")!;
  expect(Buffer.from(encodeSampleMessage(decodedValue(decodeSampleMessage(bytesAt(hex, 3))))).toString("hex")).toBe(
    hex,
  );
});

test("a sparse tensor lists its values, and can be written out", () => {
  const { hex, decoded } = of("Tensor")[0]!;
  const tensor = readTensor(fromBinary(TensorSchema, bytesAt(hex, 1)));
  expect({
    ...plainTensor(tensor),
    crow_indices: [...tensor.sparse!.crow],
    col_indices: [...tensor.sparse!.col],
  }).toEqual({
    dtype: decoded.dtype,
    shape: decoded.shape,
    data: decoded.values,
    crow_indices: decoded.crow_indices,
    col_indices: decoded.col_indices,
  });
  expect([...denseValues(tensor)]).toEqual(decoded.dense_equivalent.flat());
  expect(denseValues(tensor, -1)[1]).toBe(-1);
});

test("every vector was used", () => {
  const names = ["ForwardBackwardRequest", "ForwardBackwardOutput", "SampleResponse", "Tensor"];
  expect(names.flatMap(of)).toHaveLength(vectors.length);
  expect(vectors.length).toBe(19);
});
