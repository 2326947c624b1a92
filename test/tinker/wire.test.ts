// Recorded traffic of real servers and SDKs (fixtures/tinker): what we send means the same, what they sent is understood.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { decodePassJson, decodeSampleJson } from "../../src/tinker/encoding/json.ts";
import { encodePass } from "../../src/tinker/encoding.ts";
import { isGone, reasonOf } from "../../src/tinker/errors.ts";
import { normalCheckpointPath, parseCheckpointPath } from "../../src/tinker/paths.ts";

interface Exchange {
  readonly name: string;
  readonly request: { readonly path: string; readonly body?: any };
  readonly response: { readonly status: number; readonly body?: any; readonly body_text?: string };
}
const load = (file: string) => {
  const url = new URL(`../fixtures/tinker/${file}.json`, import.meta.url);
  return (JSON.parse(readFileSync(url, "utf8")) as { exchanges: Exchange[] }).exchanges;
};
const named = (file: string, name: string) => load(file).find((e) => e.name === name)!;
const bytes = (body: unknown) => Buffer.from(typeof body === "string" ? body : JSON.stringify(body));

test("a forward_backward body is what SDK 0.24 sends", () => {
  const { body } = named("sdk-0.24.1-training", "forward_backward cross_entropy, two datums").request;
  const { data, loss_fn } = body.forward_backward_input;
  const encoded = encodePass("json", {
    kind: "forward_backward",
    modelId: body.model_id,
    seqId: body.seq_id,
    loss: { name: loss_fn },
    data: data.map((d: any) => ({
      input: Int32Array.from(d.model_input.chunks[0].tokens),
      lossInputs: {
        target_tokens: Int32Array.from(d.loss_fn_inputs.target_tokens.data),
        weights: Float32Array.from(d.loss_fn_inputs.weights.data),
      },
    })),
  });
  const sent = JSON.parse(Buffer.from(encoded.body).toString());
  expect(encoded.path).toBe("/forward_backward");
  expect(sent).toMatchObject({ model_id: body.model_id, seq_id: body.seq_id, forward_backward_input: { loss_fn } });
  for (const [i, d] of data.entries()) {
    const mine = sent.forward_backward_input.data[i];
    expect(mine.model_input.chunks[0].tokens).toEqual(d.model_input.chunks[0].tokens);
    for (const name of ["target_tokens", "weights"]) {
      expect(mine.loss_fn_inputs[name]).toMatchObject({
        data: d.loss_fn_inputs[name].data,
        dtype: d.loss_fn_inputs[name].dtype,
      });
    }
  }
});

test("results are read into typed arrays", () => {
  const { body } = named("raw-training-json", "cross_entropy, no weights, JSON result / future").response;
  const result = decodePassJson(bytes(body));
  expect(result.outputs[0]!.logprobs).toEqual(Float32Array.of(-11.75, -0.375, -2.375, -0.5, -0.25, -0.375));
  expect(result.metrics).toEqual({});
});

test("samples are read, and the missing first prompt log-probability is put back", () => {
  const exchange = named("raw-sampling", "greedy with prompt_logprobs, JSON result / future");
  const prompt = named("raw-sampling", "greedy with prompt_logprobs, JSON result").request.body.prompt.chunks[0].tokens;
  const result = decodeSampleJson(bytes(exchange.response.body), prompt.length);
  expect([...result.sequences[0]!.tokens]).toEqual([198, 198, 504, 2988, 314]);
  expect(result.sequences[0]!.stopReason).toBe("length");
  expect(result.promptLogprobs).toHaveLength(prompt.length);
  expect(result.promptLogprobs![0]).toBeNaN();
});

test("every recorded error body is put into words without echoing input", () => {
  const errors = ["raw-training-json", "raw-sampling", "raw-errors", "raw-checkpoints"]
    .flatMap(load)
    .filter((e) => e.response.status >= 400);
  expect(errors.length).toBeGreaterThan(30);
  for (const { response } of errors) {
    const reason = reasonOf(bytes(response.body ?? response.body_text ?? ""));
    expect(reason).toMatch(/\w/);
    expect(reason).not.toContain('"input"');
  }
});

test("what is gone is told from what is wrong", () => {
  expect(isGone(404, "Model not found")).toBe(true);
  expect(isGone(404, "Session not found")).toBe(true);
  expect(isGone(404, "Checkpoint not found: model_71a7e462/nope")).toBe(false);
  expect(isGone(400, "Model model_1 not loaded")).toBe(true);
  expect(isGone(400, "LoRA rank 64 must be between 1 and 16")).toBe(false);
});

test("checkpoint paths: two parts, three parts, ids with colons", () => {
  expect(parseCheckpointPath("tinker://a:train:0/weights/x-1")).toEqual({
    run: "a:train:0",
    kind: "weights",
    name: "x-1",
  });
  expect(normalCheckpointPath("tinker://model_1/p1")).toBe("tinker://model_1/sampler_weights/p1");
  for (const bad of ["", "tinker://x", "http://a/weights/b", "tinker://a/other/b", "tinker://a/weights/b/c"]) {
    expect(parseCheckpointPath(bad)).toBeUndefined();
  }
});
