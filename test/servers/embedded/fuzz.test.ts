/** Whatever is sent, the API answers with a refusal of the protocol and goes on working: never a 500, never a hang. */
import { rmSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bytesOf, passBody, startTestServer, stepBody, type TestServer, wireDatum } from "./server.ts";

let server: TestServer;
let valid: readonly [path: string, body: Record<string, unknown>][];

beforeAll(async () => {
  server = await startTestServer({ slots: 64, holdMs: 10 });
  const { session, model } = await server.newModel();
  const { path } = await server.run("/save_weights", { model_id: model, path: "w" });
  const { forward_backward_input, ...forward } = passBody(model, 1, ["abc"]);
  const prompt = { chunks: [{ type: "encoded_text", tokens: bytesOf("ab") }] };
  const sampling_params = { max_tokens: 3, temperature: 1, top_k: -1, top_p: 1, seed: 1, stop: ["x"] };
  const targets = { target_prompt_logprobs: { data: [1, 2], dtype: "int64", shape: [1, 2] }, topk_sample_logprobs: 1 };
  const values = { data: [0.5, 0.5], dtype: "float32", shape: [2] };
  const ppo = { data: [wireDatum(bytesOf("abc"), { logprobs: values, advantages: values })], loss_fn: "ppo" };
  valid = [
    ["/forward", { model_id: model, forward_input: { ...ppo, loss_fn_config: { clip_low_threshold: 0.5 } } }],
    ["/create_session", { tags: [], user_metadata: { a: "b" }, display_name: "x" }],
    ["/session_heartbeat", { session_id: session }],
    ["/create_model", { session_id: session, model_seq_id: 5, base_model: "builtin:tiny", lora_config: { rank: 2 } }],
    ["/get_info", { model_id: model }],
    ["/forward", { ...forward, forward_input: forward_backward_input }],
    ["/forward_backward", passBody(model, 1, ["abc"])],
    ["/optim_step", stepBody(model, 2)],
    ["/save_weights", { model_id: model, path: "x", ttl_seconds: 4000, user_metadata: {}, overwrite: true }],
    ["/save_weights_for_sampler", { model_id: model, sampling_session_seq_id: 3, seq_id: 9 }],
    ["/load_weights", { model_id: model, path, optimizer: true }],
    ["/load_weights", { session_id: session, model_seq_id: 6, path, optimizer: true }],
    ["/weights_info", { tinker_path: path }],
    ["/create_sampling_session", { session_id: session, sampling_session_seq_id: 8, base_model: "builtin:tiny" }],
    ["/asample", { base_model: "builtin:tiny", prompt, sampling_params, num_samples: 1, prompt_logprobs: true }],
    ["/asample", { base_model: "builtin:tiny", prompt, sampling_params, prompt_alt_tokens_k: 2, ...targets }],
    ["/retrieve_future", { request_id: "1" }],
    ["/sessions/search", { display_name: "x", user_metadata: { a: "b" }, statuses: [{ type: "active" }], limit: 3 }],
    ["/retrieve_futures", { target: { sampling_session_id: "x", cloned_sampler_id: 0 }, prev_cursor: 0, timeout: 0 }],
    ["/cancel_future", { request_id: "1" }],
    ["/join_sampling_session", { sampling_session_id: "x" }],
  ];
});
afterAll(async () => {
  await server.server.close();
  rmSync(server.folder, { recursive: true, force: true });
});

/** Values that break careless code, beside arbitrary ones. */
const values = fc.oneof(
  fc.constantFrom(null, "", 0, -1, 1.5, 1e308, 2 ** 53, true, [], {}, [null], [[]], "tinker://", "__proto__", "\u0000"),
  fc.jsonValue({ maxDepth: 2 }),
);

/** The body with one value, somewhere in it, replaced or taken away. */
function damage(value: unknown, choose: (count: number) => number, replacement: unknown): unknown {
  if (typeof value !== "object" || value === null) return replacement;
  const keys = Object.keys(value);
  if (keys.length === 0 || choose(4) === 0) return replacement;
  const key = keys[choose(keys.length)]!;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  const inner = (value as Record<string, unknown>)[key];
  (copy as Record<string, unknown>)[key] = damage(inner, choose, replacement);
  return copy;
}

test("damaged bodies", { timeout: 300_000 }, async () => {
  const cases = fc.tuple(fc.nat(), fc.array(fc.nat(), { minLength: 12, maxLength: 12 }), values);
  await fc.assert(
    fc.asyncProperty(cases, async ([which, choices, replacement]) => {
      const [path, body] = valid[which % valid.length]!;
      let next = 0;
      const broken = damage(body, (count) => choices[next++ % choices.length]! % count, replacement);
      const answer = await server.call("POST", path, JSON.stringify(broken) ?? "");
      expect(answer.status, `${path} ${JSON.stringify(broken)}`).toBeLessThan(500);
      if (answer.status >= 400) expect(answer.body.detail, path).toBeTruthy();
    }),
    { numRuns: process.env.RLCLI_TEST_ALL ? 5000 : 600, seed: 1 },
  );
  expect(server.faults).toEqual([]);
  const { model } = await server.newModel();
  const pass = await server.run("/forward_backward", passBody(model, 1, ["still here"]));
  expect(pass.metrics["loss:sum"]).toBeGreaterThan(0);
});
