// What each format makes of one line: named cases, a value in, messages out or the reason why not.
import { describe, expect, test } from "vitest";
import { convertRows, type ImportOptions } from "../../src/datasets/convert.ts";
import { detectFormat, formatNamed } from "../../src/datasets/registry.ts";
import { Tally } from "../../src/datasets/tally.ts";

async function* bytesOf(...chunks: (string | Uint8Array)[]) {
  for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

async function run(format: string, chunks: (string | Uint8Array)[], options: ImportOptions = { min_messages: 2 }) {
  const tally = new Tally();
  const rows: string[] = [];
  const fixed = format === "auto" ? undefined : formatNamed(format);
  const sources = [{ name: "f.jsonl", bytes: bytesOf(...chunks) }];
  for await (const row of convertRows(sources, { format: fixed, options }, tally)) rows.push(row);
  return { rows, statistics: tally.statistics() };
}

const one = async (format: string, value: unknown) => {
  const { rows, statistics } = await run(format, [`${JSON.stringify(value)}\n`]);
  return statistics.rejected[0]?.reason ?? rows.map((r) => (JSON.parse(r) as { messages: unknown }).messages);
};

const u = { role: "user", content: "q" };
const a = { role: "assistant", content: "r" };

describe("messages", () => {
  test.each([
    [
      "roles",
      {
        messages: [
          { role: "human", content: "q" },
          { role: "Bot", content: "r" },
        ],
      },
      [[u, a]],
    ],
    ["developer", { messages: [{ role: "developer", content: "s" }, a] }, [[{ role: "system", content: "s" }, a]]],
    [
      "from and value",
      {
        conversations: [
          { from: "human", value: "q" },
          { from: "gpt", value: "r" },
        ],
      },
      [[u, a]],
    ],
    ["a bare list", [u, a], [[u, a]]],
    ["text parts", { messages: [{ role: "user", content: [{ type: "text", text: "q" }] }, a] }, [[u, a]]],
    ["weights stay", { messages: [u, { ...a, weight: 0 }] }, [[u, { ...a, weight: 0 }]]],
    ["empty turns go", { messages: [{ role: "system", content: " " }, u, a] }, [[u, a]]],
    ["unknown role", { messages: [{ role: "narrator", content: "x" }, a] }, 'unknown role "narrator"'],
    ["a bad weight", { messages: [u, { ...a, weight: "0" }] }, "a message's weight is not a number of 0 or more"],
    ["too short", { messages: [a] }, "fewer than 2 messages"],
    ["no answer", { messages: [u, a, u] }, "does not end with an assistant turn"],
    [
      "an image",
      { messages: [{ role: "user", content: [{ type: "image_url" }] }, a] },
      'content has a part of type "image_url"',
    ],
    ["not a list", { messages: 3 }, 'no list under "messages"'],
    ["a string", "hello", 'no list under "messages"'],
  ])("%s", async (_, value, expected) => {
    expect(await one("messages", value)).toEqual(expected);
  });
  test("tool calls, their results and tools stay where they are asked for", async () => {
    const row = {
      messages: [
        u,
        { role: "assistant", content: "", tool_calls: [{ function: { name: "f" } }] },
        { role: "tool", content: "1" },
        a,
      ],
      tools: [{ name: "f" }],
    };
    expect((await run("messages", [JSON.stringify(row)])).rows).toEqual([JSON.stringify({ messages: [u, a] })]);
    const kept = await run("messages", [JSON.stringify(row)], { min_messages: 2, keep_tools: true });
    expect(kept.rows).toEqual([JSON.stringify(row)]);
  });
});

const call = { role: "assistant", content: null, tool_calls: [{ id: "1", function: { name: "f", arguments: "{}" } }] };
describe("openai", () => {
  const response = { id: "x", choices: [{ index: 0, message: { ...a, refusal: null } }] };
  test.each([
    ["request with its answer inside", { model: "m", messages: [u, a] }, [[u, a]]],
    ["request and response", { request: { model: "m", messages: [u] }, response }, [[u, a]]],
    ["bodies", { request: { body: { messages: [u] } }, response: { status_code: 200, body: response } }, [[u, a]]],
    ["JSON text", { request: JSON.stringify({ messages: [u] }), response: JSON.stringify(response) }, [[u, a]]],
    ["input and output", { input: [u], output: a }, [[u, a]]],
    ["output text", { input: { messages: [u] }, output: "r" }, [[u, a]]],
    ["kwargs", { kwargs: { messages: [u] }, response }, [[u, a]]],
    ["messages beside choices", { messages: [u], choices: response.choices }, [[u, a]]],
    [
      "several choices",
      {
        messages: [u],
        choices: [
          { index: 1, message: { ...a, content: "s" } },
          { index: 0, message: a },
        ],
      },
      [[u, a]],
    ],
    [
      "tool turns go",
      { model: "m", messages: [u, call, { role: "tool", tool_call_id: "1", content: "9" }, a] },
      [[u, a]],
    ],
    ["null content goes", { model: "m", messages: [{ role: "system", content: null }, u, a] }, [[u, a]]],
    ["weight 0 is kept", { model: "m", messages: [u, { ...a, weight: 0 }, u, a] }, [[u, { ...a, weight: 0 }, u, a]]],
    [
      "a failed request",
      { request: { messages: [u] }, response: { status_code: 500, body: {} } },
      "the request failed",
    ],
    ["an error body", { request: { messages: [u] }, response: { error: { message: "no" } } }, "the request failed"],
    ["chunks", { messages: [u], response: [{ choices: [{ delta: { content: "r" } }] }] }, [[u, a]]],
    ["only a response", response, "fewer than 2 messages"],
    ["only a request", { model: "m", messages: [u, u] }, "does not end with an assistant turn"],
    ["something else", { a: 1 }, "neither messages nor choices"],
  ])("%s", async (_, value, expected) => {
    expect(await one("openai", value)).toEqual(expected);
  });
  test("tools may be kept", async () => {
    const value = {
      model: "m",
      messages: [u, call, { role: "tool", tool_call_id: "1", content: "9" }, a],
      tools: [{}],
    };
    const { rows } = await run("openai", [JSON.stringify(value)], { min_messages: 2, keep_tools: true });
    expect(JSON.parse(rows[0]!)).toMatchObject({
      messages: [u, { tool_calls: call.tool_calls }, { role: "tool" }, a],
      tools: [{}],
    });
  });
});

describe("auto", () => {
  test.each([
    ["messages", { messages: [u, a] }],
    ["messages", [u, a]],
    ["messages", { conversations: [{ from: "human", value: "q" }] }],
    ["openai", { model: "m", messages: [u] }],
    ["openai", { choices: [] }],
    ["openai", { request: { messages: [u] }, response: { choices: [] } }],
    ["openai", { input: [u], output: "x" }],
    ["openai", { custom_id: "1", body: { messages: [u] } }],
    [undefined, { prompt: "x" }],
    [undefined, 3],
  ])("%s: %j", (name, value) => {
    expect(detectFormat(value)?.name).toBe(name);
  });
  test("looks past damaged lines and says what it saw", async () => {
    const { rows, statistics } = await run("auto", [`oops\n${JSON.stringify({ messages: [u, a] })}\n`]);
    expect(rows).toHaveLength(1);
    expect(statistics).toMatchObject({ formats: { "f.jsonl": "messages" }, dropped: { "not a JSON object": 1 } });
  });
});

describe("lines", () => {
  const row = JSON.stringify({ messages: [u, a] });
  test("text is kept to the byte", async () => {
    const nasty =
      '{"messages":[{"role":"user","content":"\\ud800 \\u0000 \\ufeff é \\" \\\\ \u2028"},{"role":"assistant","content":" x\\n"}]}';
    const { rows } = await run("messages", [nasty]);
    expect(JSON.parse(rows[0]!)).toEqual(JSON.parse(nasty));
  });
  test("chunks may cut anywhere, also inside a character", async () => {
    const bytes = Buffer.from(`${JSON.stringify({ messages: [{ role: "user", content: "zürich 🏔" }, a] })}\n${row}`);
    for (const size of [1, 2, 3, 7]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      const { rows } = await run("messages", chunks);
      expect(rows.map((r) => (JSON.parse(r) as { messages: { content: string }[] }).messages[0]!.content)).toEqual([
        "zürich 🏔",
        "q",
      ]);
    }
  });
  test("BOM, CRLF and empty lines are nothing special", async () => {
    const { rows, statistics } = await run("messages", [`\ufeff${row}\r\n\r\n  \n${row}\r\n`]);
    expect(rows).toHaveLength(2);
    expect(statistics).toMatchObject({ lines: 2, rejected: [] });
  });
  test("every bad line is counted with its place", async () => {
    const { statistics } = await run("messages", [
      `${row}\n{"messages": [\n${row.slice(0, 20)}\n`,
      Buffer.from([0x22, 0xff, 0x22, 10]),
      `${"[".repeat(100_000)}\nnull\n`,
      `${"7\n".repeat(9)}`,
    ]);
    expect(statistics.rows).toBe(1);
    expect(statistics.rejected).toEqual([
      {
        kind: "damaged",
        reason: 'no list under "messages"',
        count: 10,
        places: [6, 7, 8, 9, 10].map((line) => `f.jsonl:${line}:1`),
        excerpts: ["null", "7", "7", "7", "7"],
      },
      {
        kind: "damaged",
        reason: "JSON breaks off",
        count: 3,
        places: ["f.jsonl:2:15", "f.jsonl:3:21", "f.jsonl:5:100001"],
        excerpts: ['{"messages": [', '{"messages":[{"role"', `…${"[".repeat(24)}`],
      },
      { kind: "damaged", reason: "not valid UTF-8", count: 1, places: ["f.jsonl:4:2"] },
    ]);
  });
  test("a row nested too deeply is a bad line", async () => {
    const deep = `{"messages":[{"role":"user","content":"q","x":${"[".repeat(200_000)}${"]".repeat(200_000)}},${JSON.stringify(a)}]}`;
    const { rows, statistics } = await run("messages", [`${row}\n${deep}\n${row}`]);
    expect(rows.length + statistics.rejected.reduce((n, r) => n + r.count, 0)).toBe(3);
  });
  test("limit stops early", async () => {
    const { rows, statistics } = await run("messages", [`${row}\n${row}\n${row}\n`], { min_messages: 2, limit: 2 });
    expect(rows).toHaveLength(2);
    expect(statistics.lines).toBe(2);
  });
});
