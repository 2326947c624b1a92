// The short way must never differ from the long one: not in a byte, a count, or a place. Every line goes through both; the long
// way is forced by a condition on the messages that always holds.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { convert } from "../../src/datasets/convert.ts";
import { MarkedBytes } from "../../src/datasets/marks.ts";
import type { ImportOptions } from "../../src/datasets/options.ts";
import { formatNamed } from "../../src/datasets/registry.ts";
import { Scanner } from "../../src/datasets/scanner.ts";
import { Tally } from "../../src/datasets/tally.ts";
import { RlcliError } from "../../src/diagnostic.ts";

async function run(format: string, input: Buffer, isLong: boolean, rules: Partial<ImportOptions> = {}) {
  try {
    return await converted(format, input, isLong, rules);
  } catch (error) {
    if (error instanceof RlcliError) return String(error);
    throw error;
  }
}

async function converted(format: string, input: Buffer, isLong: boolean, rules: Partial<ImportOptions>) {
  const tally = new Tally();
  const where = [...(rules.where ?? []), ...(isLong ? ["messages.no-such-name!=x"] : [])];
  const options = { min_messages: 2, ...rules, ...(where.length > 0 ? { where } : {}) };
  async function* bytes() {
    yield input;
  }
  const chunks: Buffer[] = [];
  for await (const lines of convert(
    [{ name: "f", bytes: bytes() }],
    { format: formatNamed(format), options, threads: 0 },
    tally,
  ))
    chunks.push(lines);
  return { text: Buffer.concat(chunks).toString(), statistics: tally.statistics() };
}

const content = fc.oneof(
  fc
    .array(
      fc.constantFrom(
        "mail ada@example.org",
        "+44 20 7946 0958",
        "10.1.2.3",
        "646.555.1234",
        "2001:db8::1:2",
        "the words go on and on ".repeat(8),
        "version ",
        'password: "hunter22"',
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        " ",
        "\n",
        "é",
        '"',
      ),
      { minLength: 1, maxLength: 8 },
    )
    .map((parts) => parts.join("")),
  fc.string({
    unit: fc.constantFrom("a", " ", "\n", "\u0000", "é", "🙂", "\ud800", '"', "\\", "/", "\u007f", "\u2028"),
    maxLength: 12,
  }),
  fc.constantFrom(null, 7, ["x"], [{ type: "text", text: "p" }], {}),
);
const message = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      role: fc.constantFrom("user", "assistant", "system"),
      content: fc.string({ minLength: 1 }),
    }),
  },
  fc.record(
    {
      role: fc.constantFrom("user", "assistant", "system", "developer", "tool", "function", "human", "AI", "x", 3),
      content,
      refusal: fc.constantFrom(null, "no"),
      weight: fc.constantFrom(null, 0, 1, -1, "1"),
      tool_calls: fc.constantFrom(null, [], [{ id: "1", function: { name: "f", arguments: "{}" } }]),
      name: fc.constant("n"),
      reasoning_content: fc.constantFrom(null, "hm"),
      from: fc.constantFrom(null, "user"),
      value: fc.constantFrom(null, "v"),
    },
    { requiredKeys: [] },
  ),
);
/** Calls of tools and what they gave back, as APIs write them and otherwise. */
const toolMessage = fc.oneof(
  fc.record(
    {
      role: fc.constantFrom("assistant", "user"),
      content,
      tool_calls: fc.array(
        fc.record(
          {
            id: fc.constantFrom<unknown>("c1", 7),
            type: fc.constant("function"),
            function: fc.record({ name: fc.constant("mail"), arguments: content }),
            "an ada key": fc.constant(1.5),
            extra: fc.constantFrom<unknown>({ 2: "b", 1: "a" }, [1e3, -0, null, true], "10.1.2.3"),
          },
          { requiredKeys: ["function"] },
        ),
        { maxLength: 2 },
      ),
      function_call: fc.constantFrom<unknown>(null, { name: "f", arguments: "mail ada@example.org" }),
      weight: fc.constantFrom(null, null, 1),
    },
    { requiredKeys: ["role"] },
  ),
  fc.record(
    {
      role: fc.constantFrom("tool", "function"),
      content,
      tool_call_id: fc.constantFrom<unknown>("c1", 7, "ghp_0123456789abcdefghijklmnopqrstuvwxyz"),
      tool_use_id: fc.constant("c2"),
      name: fc.constantFrom<unknown>("mail", null),
    },
    { requiredKeys: ["role"] },
  ),
  fc.record({
    role: fc.constantFrom("user", "assistant"),
    content: fc.array(
      fc.constantFrom<unknown>(
        { type: "text", text: "call +44 20 7946 0958" },
        { type: "text", text: " " },
        { type: "tool_result", tool_use_id: "c3", content: "ada@example.org" },
        { type: "tool_use", id: "c3", name: "f", input: { to: "ada@example.org" } },
        { type: "thinking", thinking: "hm" },
        { type: "image_url" },
        "bare",
      ),
      { maxLength: 3 },
    ),
  }),
);
const list = fc.oneof(
  { weight: 5, arbitrary: fc.array(fc.oneof({ weight: 3, arbitrary: message }, toolMessage), { maxLength: 6 }) },
  { weight: 8, arbitrary: fc.array(message, { maxLength: 5 }) },
  { weight: 1, arbitrary: fc.constantFrom(null, "[]", {}, 3, []) },
);
const choices = fc.oneof(
  { weight: 2, arbitrary: toolMessage.map((m) => [{ index: 0, message: m }]) },
  { weight: 5, arbitrary: message.map((m) => [{ index: 0, message: m }]) },
  fc.array(
    fc.record(
      { index: fc.nat(2), message, delta: fc.constantFrom({ content: "d" }), text: fc.constant("t") },
      { requiredKeys: [] },
    ),
    { maxLength: 2 },
  ),
  fc.constantFrom<unknown>(null, {}, "x"),
);
const tools = fc.constantFrom<unknown>(
  null,
  [],
  {},
  [{ type: "function", function: { name: "f" } }],
  [
    {
      type: "function",
      function: { name: "f", description: "mails ada@example.org", parameters: { 10: 1, 9: { x: 1e2 } } },
    },
  ],
);
const response = fc.oneof(
  fc.record(
    {
      choices,
      error: fc.constantFrom(null, {}, "e"),
      status_code: fc.constantFrom(null, 200, 500),
      id: fc.constant("i"),
    },
    { requiredKeys: ["choices"] },
  ),
  fc.constantFrom<unknown>(null, "text", []),
);
const line = fc.record(
  {
    id: fc.constantFrom<unknown>("a", 1.5e3, -0, [[1], {}], true),
    model: fc.constant("m"),
    messages: list,
    choices,
    request: fc.oneof(
      fc.record(
        {
          messages: list,
          model: fc.constant("m"),
          metadata: fc.constantFrom<unknown>({ env: "prod" }, null),
          tools,
          functions: fc.constantFrom<unknown>(null, [{ name: "f" }]),
        },
        { requiredKeys: [] },
      ),
      fc.constantFrom<unknown>(null, "x"),
    ),
    response,
    error: fc.constantFrom<unknown>(null, {}, "e"),
    system: fc.constantFrom(null, "s"),
    weight: fc.constantFrom(null, 0.5),
    custom_id: fc.constantFrom(null, "c"),
    output: fc.constantFrom<unknown>(null, "o"),
    input: fc.constantFrom<unknown>(null, "i"),
    conversations: list,
    env: fc.constantFrom<unknown>("prod", "test", 3, null, ["prod"], { x: "prod" }),
    metadata: fc.constantFrom<unknown>(
      { env: "prod" },
      { env: "test" },
      '{"env":"prod"}',
      null,
      {},
      { "env.x": "prod" },
    ),
    "metadata.env": fc.constant("prod"),
    tools,
  },
  { requiredKeys: [] },
);

/** JSON in one of the ways that people write it. */
const written = fc
  .tuple(line, fc.constantFrom("plain", "spaced", "ascii", "slashes", "doubled"))
  .map(([value, style]) => {
    const text = JSON.stringify(value);
    if (style === "spaced") return JSON.stringify(value, null, 1).replace(/\n/g, " \t");
    if (style === "ascii")
      return text.replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    if (style === "slashes") return text.replaceAll("/", "\\/").replaceAll("user", "\\u0075ser");
    return style === "doubled"
      ? text.replace(/^\{/, '{"messages":[],').replace('"role":', '"role":"system","role":')
      : text;
  });

const rules = fc.record(
  {
    dedupe: fc.constantFrom("none" as const, "exact" as const, "prefix" as const),
    redact: fc.constantFrom({}, { names: ["ada"] }),
    split: fc.constantFrom("train" as const, "test" as const),
    test_share: fc.constant(0.5),
    where: fc.constantFrom(
      ["env=prod"],
      ["metadata.env=prod"],
      ["env.x=prod"],
      ["env!=test", "id!=a"],
      ["request.model=m"],
    ),
    keep_tools: fc.constant(true),
    keep_thinking: fc.constant(true),
    choices: fc.constant("all" as const),
    sample: fc.constant(2),
  },
  { requiredKeys: [] },
);

describe.each(["openai", "messages"])("%s", (format) => {
  test("any lines, by any rules", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(written, { minLength: 1, maxLength: 4 }), rules, async (lines, given) => {
        const input = Buffer.from(`0\n${lines.join("\n")}\n`);
        expect(await run(format, input, false, given)).toEqual(await run(format, input, true, given));
      }),
      { numRuns: 1500 },
    );
  }, 240_000);
  test("mutated lines", async () => {
    await fc.assert(
      fc.asyncProperty(
        written,
        fc.array(
          fc.tuple(
            fc.nat(),
            fc.constantFrom('"', "\\", "{", "}", "[", "]", ",", ":", "0", "-", "e", " ", "\u0001", "u", "n", "\xff"),
          ),
          { minLength: 1, maxLength: 2 },
        ),
        async (text, edits) => {
          const bytes = Buffer.from(text);
          for (const [at, byte] of edits) bytes[at % bytes.length] = byte.charCodeAt(0);
          const input = Buffer.concat([Buffer.from("0\n"), bytes, Buffer.from("\n")]);
          expect(await run(format, input, false)).toEqual(await run(format, input, true));
        },
      ),
      { numRuns: 1500 },
    );
  }, 240_000);
});

test("the scanner accepts only what JSON.parse accepts, and all of it that is not deep", () => {
  const parses = (text: string) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  const scans = (text: string) => {
    const scanner = new Scanner();
    const marked = new MarkedBytes();
    marked.take(Buffer.from(text));
    scanner.begin(marked, 0, marked.length);
    return scanner.skip() && scanner.isDone();
  };
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 5 }),
      fc.nat(),
      fc.constantFrom("", '"', "\\", "}", "]", ",", "0", ".", "e+", "-", "\t", "\u0001", "nul", "\\u12", "é"),
      fc.boolean(),
      (json, where, junk, cut) => {
        const at = where % (json.length + 1);
        const text = json.slice(0, at) + junk + json.slice(cut ? Math.min(json.length, at + 1) : at);
        // A key in another spelling is legal JSON that the scanner leaves alone.
        fc.pre(!/\\[/u]/.test(text) || !parses(text));
        expect(scans(Buffer.from(text).toString())).toBe(parses(Buffer.from(text).toString()));
      },
    ),
    { numRuns: 5000 },
  );
});
