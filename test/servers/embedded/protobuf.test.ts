/** The same requests in protobuf: same results, same refusals; and compressed bodies. */
import { rmSync } from "node:fs";
import zlib from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodePassMessage, type PassMessage } from "../../../src/tinker/proto/request.ts";
import { decodePassOutput } from "../../../src/tinker/proto/result.ts";
import { decodeSampleMessage } from "../../../src/tinker/proto/sample.ts";
import { type TensorData, tensorOf } from "../../../src/tinker/proto/tensor.ts";
import { bytesOf, passBody, startTestServer, stepBody, type TestServer, TOKEN } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ slots: 64 });
});
afterAll(async () => {
  await server.server.close();
  rmSync(server.folder, { recursive: true, force: true });
  expect(server.faults).toEqual([]);
});

const PROTOBUF = "application/x-protobuf";

/** A message whose one datum is a text. */
function messageOf(
  modelId: string,
  seqId: number,
  changes: Partial<PassMessage> & { tensors?: Record<string, TensorData>; text?: string } = {},
): PassMessage {
  const { tensors, text = "hello", ...rest } = changes;
  const tokens = Int32Array.from(bytesOf(text));
  const lossInputs = {
    target_tokens: tensorOf(tokens.slice(1)),
    weights: tensorOf(new Float32Array(tokens.length - 1).fill(1)),
    ...tensors,
  };
  const data = [{ input: [{ type: "encoded_text" as const, tokens: tokens.slice(0, -1) }], lossInputs }];
  return { modelId, seqId, lossName: "cross_entropy", lossConfig: {}, forwardOnly: false, data, ...rest };
}

async function post(path: string, body: Uint8Array, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.server.url}/api/v1${path}`, {
    method: "POST",
    headers: { "X-API-Key": TOKEN, "Content-Type": PROTOBUF, ...headers },
    body: Buffer.from(body),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

const send = (message: PassMessage) => post("/forward_backward", encodePassMessage(message));

/** The bytes of a result, and their type. */
async function retrieve(request_id: string, accept: string) {
  for (;;) {
    const response = await fetch(`${server.server.url}/api/v1/retrieve_future`, {
      method: "POST",
      headers: { "X-API-Key": TOKEN, "Content-Type": "application/json", Accept: accept },
      body: JSON.stringify({ request_id }),
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const type = response.headers.get("content-type");
    if (type === PROTOBUF || JSON.parse(Buffer.from(bytes).toString()).type !== "try_again") return { type, bytes };
  }
}

async function passOf(request_id: string) {
  const { type, bytes } = await retrieve(request_id, `${PROTOBUF}, application/json`);
  expect(type).toBe(PROTOBUF);
  const decoded = decodePassOutput(bytes);
  if (!decoded.ok) throw new Error(decoded.error);
  return decoded.value;
}

describe("a pass", () => {
  test("gives in protobuf what it gives in JSON, whichever it came in", async () => {
    const { model } = await server.newModel();
    const json = await server.run("/forward_backward", passBody(model, 1, ["hello"]));
    const { body } = await send(messageOf(model, 2));
    const proto = await passOf(body.request_id);
    expect([...proto.outputs[0]!.logprobs!.data]).toEqual(json.loss_fn_outputs[0].logprobs.data);
    expect([...proto.outputs[0]!.elementwise_loss!.data]).toEqual(json.loss_fn_outputs[0].elementwise_loss.data);
    expect(proto.metrics).toEqual(json.metrics);
    expect(await server.outcome(body)).toEqual(json);
    const step = await server.post("/optim_step", stepBody(model, 3));
    const answer = await retrieve(step.request_id, PROTOBUF);
    expect(answer.type).toBe("application/json");
  });

  test("with forward_only leaves no gradient", async () => {
    const { model } = await server.newModel();
    const { body } = await send(messageOf(model, 1, { forwardOnly: true }));
    expect((await passOf(body.request_id)).metrics["loss:sum"]).toBeGreaterThan(0);
    expect((await server.run("/optim_step", stepBody(model, 2))).metrics.grad_norm).toBe(0);
  });

  test("a repeat of a number is the same request; other content is a conflict", async () => {
    const { model } = await server.newModel();
    const first = await send(messageOf(model, 1));
    expect(await send(messageOf(model, 1))).toEqual(first);
    expect((await send(messageOf(model, 1, { text: "hellp" }))).status).toBe(409);
  });

  test("sparse tensors are written out, in both encodings", async () => {
    const { model } = await server.newModel();
    const weights = Float32Array.of(0, 2, 0, 0.5);
    const dense = await passOf(
      (await send(messageOf(model, 0, { tensors: { weights: tensorOf(weights) } }))).body.request_id,
    );
    const sparse: TensorData = {
      dtype: "float32",
      shape: [4, 1],
      data: Float32Array.of(2, 0.5),
      sparse: { crow: Int32Array.of(0, 0, 1, 1, 2), col: Int32Array.of(0, 0) },
    };
    const proto = await passOf((await send(messageOf(model, 0, { tensors: { weights: sparse } }))).body.request_id);
    expect(proto).toEqual(dense);
    const body = passBody(model, undefined, ["hello"]) as {
      forward_backward_input: { data: { loss_fn_inputs: Record<string, unknown> }[] };
    };
    body.forward_backward_input.data[0]!.loss_fn_inputs.weights = {
      data: [2, 0.5],
      dtype: "float32",
      shape: [4, 1],
      sparse_crow_indices: [0, 0, 1, 1, 2],
      sparse_col_indices: [0, 0],
    };
    const json = await server.run("/forward_backward", body);
    expect(json.metrics["loss:sum"]).toBe(dense.metrics["loss:sum"]);
  });

  const floats = (...values: number[]) => tensorOf(Float32Array.from(values));
  test.each<{ name: string; changes: Parameters<typeof messageOf>[2]; status: number; says: RegExp }>([
    { name: "an unknown loss", changes: { lossName: "nothing" }, status: 422, says: /losses cross_entropy/ },
    {
      name: "an unknown option",
      changes: { lossName: "ppo", lossConfig: { clip: 1 } },
      status: 422,
      says: /clip_low_threshold/,
    },
    {
      name: "an option that is text",
      changes: { lossName: "ppo", lossConfig: { clip_low_threshold: "a" } },
      status: 422,
      says: /finite number/,
    },
    { name: "no data", changes: { data: [] }, status: 400, says: /empty/ },
    {
      name: "NaN",
      changes: { tensors: { weights: floats(1, Number.NaN, 1, 1) } },
      status: 422,
      says: /Datum 0: weights 1/,
    },
    {
      name: "infinity",
      changes: { tensors: { weights: floats(1, Number.POSITIVE_INFINITY, 1, 1) } },
      status: 422,
      says: /Datum 0: weights 1/,
    },
    {
      name: "another length",
      changes: { tensors: { weights: floats(1) } },
      status: 400,
      says: /Datum 0: weights has 1 values for 4 tokens/,
    },
    {
      name: "floats for tokens",
      changes: { tensors: { target_tokens: floats(1, 2, 3, 4) } },
      status: 422,
      says: /target_tokens should be int64/,
    },
    {
      name: "a token beyond the vocabulary",
      changes: { tensors: { target_tokens: tensorOf(Int32Array.of(1, 2, 3, 4000)) } },
      status: 422,
      says: /Datum 0: target_tokens 3/,
    },
    {
      name: "a token beyond 2^53",
      changes: { tensors: { target_tokens: tensorOf(Float64Array.of(1, 2, 3, 2 ** 60)) } },
      status: 422,
      says: /target_tokens 3/,
    },
    {
      name: "two targets a position and one weight",
      changes: { tensors: { target_tokens: tensorOf(new Int32Array(8), [4, 2]), weights: floats(1, 1, 1, 1) } },
      status: 400,
      says: /weights has 4 values for 4 tokens: it should be \[4, 2\]/,
    },
    {
      name: "two targets a position of a loss that takes one",
      changes: { lossName: "ppo", tensors: { target_tokens: tensorOf(new Int32Array(8), [4, 2]) } },
      status: 400,
      says: /2 targets a position; ppo takes one/,
    },
    {
      name: "a shape that is not that of its values",
      changes: {
        tensors: { target_tokens: tensorOf(new Int32Array(8), [4, 2]), weights: tensorOf(new Float32Array(8), [8]) },
      },
      status: 400,
      says: /weights has 8 values for 4 tokens/,
    },
    {
      name: "a missing input",
      changes: { lossName: "ppo" },
      status: 400,
      says: /Datum 0 has no logprobs, which ppo needs/,
    },
    {
      name: "an image",
      changes: { data: [{ input: [{ type: "image", data: new Uint8Array(1), format: "png" }], lossInputs: {} }] },
      status: 422,
      says: /encoded_text/,
    },
    { name: "a critic's loss", changes: { lossName: "ppo_critic" }, status: 422, says: /policy/ },
    { name: "an unknown model", changes: { modelId: "x" }, status: 404, says: /not found/ },
  ])("$name is $status", async ({ changes, status, says }) => {
    const { model } = await shared();
    const answer = await send(messageOf(model, 0, changes));
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
    expect(JSON.stringify(answer.body)).toMatch(says);
  });

  test("bytes that are no message are 422, whatever they are", async () => {
    const { model } = await shared();
    const whole = encodePassMessage(messageOf(model, 0, { forwardOnly: true }));
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.uint8Array({ maxLength: 8 }), async (at, noise) => {
        const broken = Uint8Array.from(whole);
        broken.set(noise.slice(0, broken.length - at), at);
        for (const bytes of [broken, whole.slice(0, at), noise]) {
          const { status, body } = await post("/forward_backward", bytes);
          expect(status).toBeLessThan(500);
          if (status >= 400) expect(body.detail).toBeTruthy();
        }
      }),
      { numRuns: process.env.RLCLI_TEST_ALL ? 2000 : 100, seed: 7 },
    );
  });

  test("other endpoints take JSON only", async () => {
    expect((await post("/optim_step", new Uint8Array(3))).status).toBe(415);
    expect((await post("/nothing", new Uint8Array(3))).status).toBe(404);
  });

  let one: Promise<{ model: string }> | undefined;
  const shared = () => {
    one ??= server.newModel();
    return one;
  };
});

test("a sample in protobuf is the sample in JSON", async () => {
  const prompt = { chunks: [{ type: "encoded_text", tokens: bytesOf("hello") }] };
  const target_prompt_logprobs = { data: [101, -1, 108, 108], dtype: "int64", shape: [4, 1] };
  const submitted = await server.post("/asample", {
    base_model: "builtin:tiny",
    prompt,
    num_samples: 2,
    sampling_params: { max_tokens: 5, seed: 3 },
    prompt_logprobs: true,
    topk_prompt_logprobs: 2,
    topk_sample_logprobs: 2,
    prompt_alt_tokens_k: 2,
    target_prompt_logprobs,
  });
  const json = await server.outcome(submitted);
  const { bytes } = await retrieve(submitted.request_id, PROTOBUF);
  const decoded = decodeSampleMessage(bytes);
  if (!decoded.ok) throw new Error(decoded.error);
  const { sequences, promptLogprobs, topkPrompt, targetPromptLogprobs, promptAltTokens } = decoded.value;
  expect(sequences.map(({ tokens }) => [...tokens])).toEqual(json.sequences.map((s: { tokens: number[] }) => s.tokens));
  expect(sequences[0]!.topk).toMatchObject({ length: 5, k: 2 });
  expect(promptLogprobs![0]).toBeNaN();
  expect(promptLogprobs![4]).toBeCloseTo(json.prompt_logprobs[4], 5);
  expect(topkPrompt).toMatchObject({ length: 5, k: 2 });
  expect([...targetPromptLogprobs!.data]).toEqual(json.target_prompt_logprobs.data);
  expect([...promptAltTokens!.tokens.data]).toEqual(json.prompt_alt_tokens.tokens.data);
});

describe("compressed bodies", () => {
  const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Uint8Array) => Buffer };
  const headers = { "Content-Encoding": "zstd" };

  test.skipIf(zstdCompressSync === undefined)("zstd is read", async () => {
    const { model } = await server.newModel();
    const bytes = zstdCompressSync!(encodePassMessage(messageOf(model, 1)));
    const { body } = await post("/forward_backward", bytes, headers);
    expect((await passOf(body.request_id)).outputs.length).toBe(1);
    expect((await post("/forward_backward", new Uint8Array(9), headers)).status).toBe(422);
    expect((await post("/forward_backward", zstdCompressSync!(new Uint8Array(4_000_000)), headers)).status).toBe(413);
  });

  test.skipIf(zstdCompressSync !== undefined)(
    "zstd is refused with a sentence where the runtime has none",
    async () => {
      const { status, body } = await post("/forward_backward", new Uint8Array(9), headers);
      expect(status).toBe(415);
      expect(body.detail).toMatch(/Node .* has no zstd/);
    },
  );

  test("others are refused by name", async () => {
    const { status, body } = await post("/forward_backward", new Uint8Array(9), { "Content-Encoding": "br" });
    expect(status).toBe(415);
    expect(body.detail).toContain("br");
  });
});
