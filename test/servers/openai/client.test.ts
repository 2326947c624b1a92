/** The official client for JavaScript against the endpoint: what it sends is understood, and what it gets is what it expects. */
import { request } from "node:http";
import OpenAI from "openai";
import { expect, onTestFinished, test, vi } from "vitest";
import { type PolicyEndpoint, servePolicy } from "./endpoint.ts";

async function endpoint(...args: Parameters<typeof servePolicy>): Promise<PolicyEndpoint> {
  const served = await servePolicy(...args);
  onTestFinished(async () => {
    await served.close();
    expect(served.faults).toEqual([]);
  });
  return served;
}

const ask = (content: string) => ({ model: "agent", messages: [{ role: "user" as const, content }] });
const WEATHER = {
  type: "function" as const,
  function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};
const CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>';

test("an answer, its usage, and the list of models", async () => {
  const { client, policy } = await endpoint(() => "Grüezi 🙂");
  const completion = await client.chat.completions.create({
    ...ask("Hello"),
    temperature: 0.5,
    top_p: 0.9,
    seed: 7,
    max_completion_tokens: 50,
    user: "u-1",
    n: 2,
  });
  expect(completion.object).toBe("chat.completion");
  expect(completion.choices.map(({ message, finish_reason }) => [message.content, finish_reason])).toEqual([
    ["Grüezi 🙂", "stop"],
    ["Grüezi 🙂", "stop"],
  ]);
  // Bytes, and the token that ends a turn.
  const each = Buffer.byteLength("Grüezi 🙂") + 1;
  expect(completion.usage).toMatchObject({ completion_tokens: 2 * each });
  expect(completion.usage!.total_tokens).toBe(completion.usage!.prompt_tokens + 2 * each);
  const params = policy.server.requests
    .filter(({ path }) => path === "/asample")
    .map(({ body }) => body.sampling_params);
  expect(params.map(({ temperature, top_p, seed, max_tokens }) => [temperature, top_p, seed, max_tokens])).toEqual([
    [0.5, 0.9, 7, 50],
    [0.5, 0.9, 8, 50],
  ]);
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["agent"]);
  expect((await client.models.retrieve("agent")).id).toBe("agent");
});

test("a stream holds whole characters and ends with its reason and usage", async () => {
  const text = "日本語の答え 🙂 ".repeat(10);
  const { client } = await endpoint(() => text);
  const stream = await client.chat.completions.create({
    ...ask("Hello"),
    stream: true,
    stream_options: { include_usage: true },
  });
  const deltas: string[] = [];
  const reasons: unknown[] = [];
  let usage: OpenAI.CompletionUsage | null | undefined;
  for await (const chunk of stream) {
    deltas.push(chunk.choices[0]?.delta.content ?? "");
    if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
    usage = chunk.usage;
  }
  expect(deltas.join("")).toBe(text);
  expect(deltas.filter((delta) => delta !== "").length).toBeGreaterThan(3);
  expect(deltas.some((delta) => delta.includes("\uFFFD"))).toBe(false);
  expect(reasons).toEqual(["stop"]);
  expect(usage!.completion_tokens).toBe(Buffer.byteLength(text) + 1);
});

test("the client's own helper puts several streamed choices together", async () => {
  const { client } = await endpoint((prompt) => (prompt.includes("long") ? "a long answer ".repeat(9) : "short"));
  const runner = client.chat.completions.stream({ ...ask("a long one"), n: 3 });
  const final = await runner.finalChatCompletion();
  expect(final.choices.map(({ message }) => message.content)).toEqual(Array(3).fill("a long answer ".repeat(9)));
});

test.each([false, true])("tools are called in the template's own form (streamed: %s)", async (isStreamed) => {
  const { client, prompts } = await endpoint((prompt) =>
    prompt.includes("<|im_start|>tool") ? "It is 3 °C." : `Let me see.\n${CALL}\n${CALL.replace("Zürich", "Bern")}`,
  );
  const body = { ...ask("Weather?"), tools: [WEATHER], tool_choice: "auto" as const };
  const completion = isStreamed
    ? await client.chat.completions.stream(body).finalChatCompletion()
    : await client.chat.completions.create(body);
  const [choice] = completion.choices;
  expect(choice!.finish_reason).toBe("tool_calls");
  expect(choice!.message.content).toBe("Let me see.");
  const calls = choice!.message.tool_calls as OpenAI.ChatCompletionMessageFunctionToolCall[];
  expect(calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual([
    ["weather", { city: "Zürich" }],
    ["weather", { city: "Bern" }],
  ]);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  expect(prompts[0]).toContain('Tools: [{"type": "function", "function": {"name": "weather"');
  const next = await client.chat.completions.create({
    ...body,
    messages: [
      ...body.messages,
      { role: "assistant", content: choice!.message.content, tool_calls: calls },
      { role: "tool", tool_call_id: calls[0]!.id, content: "3" },
    ],
  });
  expect(next.choices[0]!.message.content).toBe("It is 3 °C.");
  // Arguments reach the template as an object, not as text within text.
  expect(prompts.at(-1)).toContain('<tool_call>{"name": "weather", "arguments": {"city": "Zürich"}}</tool_call>');
});

test("tool_choice none tells the model of no tools; one call where several are not wanted; a broken call is text", async () => {
  let said = `${CALL}\n${CALL}`;
  const { client, prompts } = await endpoint(() => said);
  const body = { ...ask("Weather?"), tools: [WEATHER] };
  const none = await client.chat.completions.create({ ...body, tool_choice: "none" });
  expect(prompts[0]).not.toContain("Tools:");
  expect(none.choices[0]!.message.tool_calls).toBeUndefined();
  const one = await client.chat.completions.create({ ...body, parallel_tool_calls: false });
  expect(one.choices[0]!.message.tool_calls).toHaveLength(1);
  expect(one.choices[0]!.message.content).toBeNull();
  said = '<tool_call>\n{"name": "weather", "arg';
  const broken = await client.chat.completions.create(body);
  expect(broken.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: said } });
});

test("a call in the thinking is none", async () => {
  const said = `I could ${CALL} or not.</think>\n\n${CALL}`;
  const { client } = await endpoint(() => said);
  const body = { ...ask("Weather?"), tools: [WEATHER], chat_template_kwargs: { enable_thinking: true } };
  const completion = await client.chat.completions.create(body as OpenAI.ChatCompletionCreateParamsNonStreaming);
  expect(completion.choices[0]!.message.tool_calls).toHaveLength(1);
  expect(completion.choices[0]!.message.content).toBe(`I could ${CALL} or not.</think>`);
});

test("stop texts end the answer before them, in a stream too", async () => {
  const { client } = await endpoint(() => "one two END three");
  const body = { ...ask("Count"), stop: ["END", "never"] };
  expect((await client.chat.completions.create(body)).choices[0]).toMatchObject({
    finish_reason: "stop",
    message: { content: "one two " },
  });
  const final = await client.chat.completions.stream(body).finalChatCompletion();
  expect(final.choices[0]!.message.content).toBe("one two ");
});

test("log-probabilities come token by token with their bytes; likeliest tokens are refused where there are none", async () => {
  const { client } = await endpoint(() => "é!");
  const { choices } = await client.chat.completions.create({ ...ask("x"), logprobs: true });
  expect(choices[0]!.logprobs!.content).toEqual([
    { token: "\uFFFD", logprob: -0.5, bytes: [0xc3], top_logprobs: [] },
    { token: "\uFFFD", logprob: -0.5, bytes: [0xa9], top_logprobs: [] },
    { token: "!", logprob: -0.5, bytes: [33], top_logprobs: [] },
  ]);
  await expect(client.chat.completions.create({ ...ask("x"), logprobs: true, top_logprobs: 2 })).rejects.toMatchObject({
    status: 400,
    param: "top_logprobs",
  });
});

test.each([
  ["an unknown model", { ...ask("x"), model: "other" }, 404, "model_not_found"],
  ["a penalty", { ...ask("x"), frequency_penalty: 0.5 }, 400, "unsupported_value"],
  ["a format", { ...ask("x"), response_format: { type: "json_object" } }, 400, "unsupported_value"],
  ["a field of nobody", { ...ask("x"), best_of: 3 }, 400, "unsupported_parameter"],
  ["a forced tool", { ...ask("x"), tools: [WEATHER], tool_choice: "required" }, 400, "unsupported_value"],
  [
    "a strict tool",
    { ...ask("x"), tools: [{ ...WEATHER, function: { ...WEATHER.function, strict: true } }] },
    400,
    null,
  ],
  [
    "an image",
    { model: "agent", messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
    400,
    "unsupported_value",
  ],
  ["no messages", { model: "agent", messages: [] }, 400, null],
  ["too much randomness", { ...ask("x"), temperature: 3 }, 400, null],
  ["a prompt beyond the context", ask("x".repeat(5000)), 400, "context_length_exceeded"],
])("%s is refused in OpenAI's shape", async (_, body, status, code) => {
  const { client } = await endpoint(() => "never");
  for (const stream of [false, true]) {
    const asked = client.chat.completions.create({ ...body, stream } as OpenAI.ChatCompletionCreateParamsNonStreaming);
    const error = await asked.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ status, code, type: "invalid_request_error" });
  }
});

test("nulls and the values that ask for nothing are taken", async () => {
  const { client } = await endpoint(() => "fine");
  const body = {
    ...ask("x"),
    frequency_penalty: 0,
    logit_bias: {},
    response_format: { type: "text" },
    stop: null,
    seed: null,
    tools: null,
  };
  const completion = await client.chat.completions.create(
    body as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming,
  );
  expect(completion.choices[0]!.message.content).toBe("fine");
});

test("a server that fails is 502, one that says later is waited for, and a fault amid a stream is told in it", async () => {
  const { client, policy } = await endpoint(() => "word ".repeat(30));
  policy.server.fault = ({ path }) =>
    path === "/asample" ? { type: "answer", status: 500, body: "broken" } : undefined;
  await expect(client.chat.completions.create(ask("x"))).rejects.toMatchObject({ status: 502 });
  let later = 0;
  policy.server.fault = ({ path }) =>
    path === "/asample" && ++later === 1
      ? { type: "answer", status: 429, body: { detail: "later" }, headers: { "retry-after-ms": "5" } }
      : undefined;
  expect((await client.chat.completions.create(ask("x"))).choices[0]!.finish_reason).toBe("stop");
  let asked = 0;
  policy.server.fault = ({ path }) =>
    path === "/asample" && ++asked > 1 ? { type: "answer", status: 400, body: { detail: "gone wrong" } } : undefined;
  const stream = await client.chat.completions.create({ ...ask("x"), stream: true });
  const deltas: string[] = [];
  await expect(
    (async () => {
      for await (const chunk of stream) deltas.push(chunk.choices[0]?.delta.content ?? "");
    })(),
  ).rejects.toThrow("gone wrong");
  expect(deltas.join("")).toBe("word wor");
});

test("a client that hangs up ends its sampling", async () => {
  const { client, policy } = await endpoint(() => "word ".repeat(200));
  const stream = await client.chat.completions.create({ ...ask("x"), stream: true });
  for await (const _ of stream) break;
  stream.controller.abort();
  await vi.waitFor(async () => {
    const before = policy.server.count("/asample");
    await new Promise((done) => setTimeout(done, 200));
    expect(policy.server.count("/asample")).toBe(before);
  }, 20_000);
  expect(policy.server.count("/asample")).toBeLessThan(16);
});

test("a key is asked for; without one only loopback's own names are answered, and only JSON", async () => {
  const { url, client } = await endpoint(() => "x", { settings: { key: "secret" } });
  expect((await client.models.list()).data).toHaveLength(1);
  const stranger = new OpenAI({ baseURL: url, apiKey: "guess", maxRetries: 0 });
  await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  const open = await endpoint(() => "x");
  expect(await statusOf(`${open.url}/models`, { headers: { host: "attacker.example" } })).toBe(403);
  const plain = { method: "POST", headers: { "content-type": "text/plain" } };
  expect(await statusOf(`${open.url}/chat/completions`, plain, JSON.stringify(ask("x")))).toBe(415);
  expect(await statusOf(`${open.url}/chat/completions`, {})).toBe(405);
  expect(await statusOf(`${open.url}/embeddings`, {})).toBe(404);
  const json = { method: "POST", headers: { "content-type": "application/json" } };
  expect(await statusOf(`${open.url}/chat/completions`, json, "{")).toBe(400);
  expect(await statusOf(`${open.url}/chat/completions`, json, JSON.stringify(ask("x".repeat(1_100_000))))).toBe(413);
});

function statusOf(url: string, options: object, body = ""): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

test("two hundred at once get an answer each", async () => {
  const { client } = await endpoint((prompt) => `re ${/q\d+/.exec(prompt)?.[0]}`);
  const asked = Array.from({ length: 200 }, (_, i) =>
    i % 2 === 0
      ? client.chat.completions.create(ask(`q${i}`)).then(({ choices }) => choices[0]!.message.content)
      : client.chat.completions.stream(ask(`q${i}`)).finalContent(),
  );
  expect(await Promise.all(asked)).toEqual(Array.from({ length: 200 }, (_, i) => `re q${i}`));
});
