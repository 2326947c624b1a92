// What must hold for any log: conversations survive every format that can express them; nothing ends the program; every line
// is a conversation or counted; threads, block borders and chunk sizes change nothing.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lineBlocks } from "../../src/datasets/blocks.ts";
import { convert, type ImportOptions } from "../../src/datasets/convert.ts";
import { jsonFault } from "../../src/datasets/fault.ts";
import { KeySet } from "../../src/datasets/keys.ts";
import { FORMATS, formatNamed } from "../../src/datasets/registry.ts";
import { Tally } from "../../src/datasets/tally.ts";

type Turn = { role: string; content: string };

async function* inChunks(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function run(
  format: string,
  input: Buffer | string,
  more: Partial<ImportOptions> = {},
  size = 1 << 16,
  threads = 0,
) {
  const tally = new Tally();
  const chunks: Buffer[] = [];
  const request = {
    format: format === "auto" ? undefined : formatNamed(format),
    options: { min_messages: 2, ...more },
    threads,
  };
  const bytes = typeof input === "string" ? Buffer.from(input) : input;
  for await (const lines of convert([{ name: "f", bytes: inChunks(bytes, size) }], request, tally)) chunks.push(lines);
  const statistics = tally.statistics();
  const text = Buffer.concat(chunks).toString();
  return {
    text,
    rows: text
      .split("\n")
      .filter((l) => l !== "")
      .map((l) => JSON.parse(l) as { messages: Turn[] }),
    statistics,
  };
}

const text = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom("a", " ", "\n", "\u0000", "é", "🙂", "\ud800", '"', "\\", "\u2028"),
      fc.string({ unit: "binary", minLength: 1, maxLength: 2 }),
    ),
    minLength: 1,
    maxLength: 30,
  })
  .filter((t) => t.trim() !== "");
const conversation = fc
  .tuple(fc.option(text, { nil: undefined }), fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 4 }))
  .map(([system, pairs]): Turn[] => [
    ...(system === undefined ? [] : [{ role: "system", content: system }]),
    ...pairs.flatMap(([q, r]) => [
      { role: "user", content: q },
      { role: "assistant", content: r },
    ]),
  ]);

const split = (turns: readonly Turn[]) => ({ prompt: turns.slice(0, -1), answer: turns.at(-1) as Turn });
const system = (turns: readonly Turn[]) => turns.filter((t) => t.role === "system").map((t) => t.content)[0];
const blocks = ({ role, content }: Turn) => ({ role, content: [{ type: "text", text: content }] });
const chain = ({ role, content }: Turn) => ({
  lc: 1,
  type: "constructor",
  id: [
    "langchain",
    "schema",
    "messages",
    { system: "SystemMessage", user: "HumanMessage", assistant: "AIMessage" }[role],
  ],
  kwargs: { content },
});

/** Each way to write a conversation down, by format. */
const WRITERS: readonly [string, string, (turns: Turn[]) => unknown][] = [
  ["messages", "rows", (turns) => ({ messages: turns })],
  ["messages", "a bare list", (turns) => turns],
  [
    "messages",
    "from and value",
    (turns) => ({ conversations: turns.map(({ role, content }) => ({ from: role, value: content })) }),
  ],
  ["openai", "one request", (turns) => ({ model: "m", messages: turns })],
  [
    "openai",
    "a pair",
    (turns) => ({
      request: { messages: split(turns).prompt },
      response: { choices: [{ message: split(turns).answer }] },
    }),
  ],
  [
    "openai",
    "a pair as text",
    (turns) => ({
      request: JSON.stringify({ messages: split(turns).prompt }),
      response: JSON.stringify({ choices: [{ message: split(turns).answer }] }),
    }),
  ],
  [
    "openai",
    "chunks",
    (turns) => ({
      request: { messages: split(turns).prompt },
      response: [...split(turns).answer.content].map((c) => ({ choices: [{ delta: { content: c } }] })),
    }),
  ],
  [
    "openai",
    "items",
    (turns) => ({
      model: "m",
      input: split(turns).prompt.map((t) => ({ type: "message", ...t })),
      output: [
        { type: "message", role: "assistant", content: [{ type: "output_text", text: split(turns).answer.content }] },
      ],
    }),
  ],
  [
    "anthropic",
    "one request",
    (turns) => ({ system: system(turns) ?? "", messages: turns.filter((t) => t.role !== "system").map(blocks) }),
  ],
  [
    "anthropic",
    "a pair",
    (turns) => ({
      request: { system: system(turns) ?? "", messages: split(turns).prompt.filter((t) => t.role !== "system") },
      response: { type: "message", ...blocks(split(turns).answer) },
    }),
  ],
  [
    "langsmith",
    "serialised",
    (turns) => ({
      run_type: "llm",
      inputs: { messages: [split(turns).prompt.map(chain)] },
      outputs: { generations: [[{ message: chain(split(turns).answer) }]] },
    }),
  ],
  [
    "litellm",
    "payload",
    (turns) => ({
      call_type: "completion",
      messages: split(turns).prompt,
      response: { choices: [{ message: split(turns).answer }] },
    }),
  ],
];

/** The same, over lines of a session's file. */
const SESSIONS: readonly [string, (turns: readonly Turn[]) => readonly unknown[]][] = [
  [
    "claude-code",
    (turns) =>
      turns.map((turn, i) => ({
        type: turn.role,
        uuid: String(i),
        parentUuid: i === 0 ? null : String(i - 1),
        sessionId: "s",
        message: turn.role === "user" ? turn : { id: `m${i}`, ...blocks(turn) },
      })),
  ],
  [
    "codex",
    (turns) => [
      { type: "session_meta", payload: { id: "s" } },
      ...turns.map(({ role, content }) => ({
        type: "response_item",
        payload: { type: "message", role, content: [{ type: "input_text", text: content }] },
      })),
    ],
  ],
];

describe("a conversation survives", () => {
  test.each(SESSIONS)("the session of %s, whatever is asked anew", async (format, write) => {
    await fc.assert(
      fc.asyncProperty(conversation, fc.constantFrom(format, "auto"), text, async (all, named, anew) => {
        const turns = all.filter((t) => t.role !== "system");
        const lines = [...write(turns)];
        const last = turns.length - 2;
        // The last question once more, in another wording, after the same beginning.
        if (format === "codex")
          lines.push({ type: "event_msg", payload: { type: "thread_rolled_back", num_turns: 1 } });
        const again = write([...turns.slice(0, last), { role: "user", content: `?${anew}` }, turns.at(-1) as Turn]);
        const added = again.slice(-2).map((line) => JSON.parse(JSON.stringify(line)) as Record<string, unknown>);
        if (format === "claude-code") {
          added[0]!.uuid = "again";
          added[1] = {
            ...added[1],
            uuid: "answer",
            parentUuid: "again",
            message: { ...(added[1]!.message as object), id: "x" },
          };
        }
        const input = [...lines, ...added].map((line) => `${JSON.stringify(line)}\n`).join("");
        const { rows, statistics } = await run(named, input, { dedupe: "none" });
        expect(statistics.rejected).toEqual([]);
        const second = [...turns.slice(0, last), { role: "user", content: `?${anew}` }, turns.at(-1)];
        expect(rows).toEqual([{ messages: turns }, { messages: second }]);
        expect(Object.values(statistics.formats)).toEqual([format]);
      }),
      { numRuns: 60 },
    );
  });
  test.each(WRITERS)("%s: %s", async (format, _, write) => {
    await fc.assert(
      fc.asyncProperty(conversation, fc.constantFrom(format, "auto"), async (turns, named) => {
        const { rows, statistics } = await run(named, `${JSON.stringify(write(turns))}\n`);
        expect(statistics.rejected).toEqual([]);
        expect(rows).toEqual([{ messages: turns }]);
        expect(Object.values(statistics.formats)).toEqual([format]);
      }),
      { numRuns: 60 },
    );
  });
  test("what comes out goes in again as it is", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(conversation, { maxLength: 5 }), async (all) => {
        const once = await run("messages", all.map((messages) => `${JSON.stringify({ messages })}\n`).join(""));
        expect((await run("auto", once.text)).text).toBe(once.text);
      }),
      { numRuns: 50 },
    );
  });
});

/** A value of the shape of a log line in which anything may be anything. */
const odd = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1, 1e308, "", "user", "assistant", "data: {}", '{"messages":[]}', "[]"),
    tie("list"),
    tie("map"),
  ),
  list: fc.array(tie("value"), { maxLength: 4 }),
  map: fc.dictionary(
    fc.constantFrom(
      ...[
        "messages",
        "role",
        "content",
        "choices",
        "message",
        "delta",
        "type",
        "text",
        "input",
        "output",
        "request",
        "response",
        "system",
        "custom_id",
        "body",
        "params",
        "result",
        "inputs",
        "outputs",
        "run_type",
        "generations",
        "feedback_stats",
        "call_type",
        "standard_logging_object",
        "tool_calls",
        "function",
        "chunks",
        "conversations",
        "from",
        "value",
        "weight",
        "kwargs",
        "payload",
        "uuid",
        "parentUuid",
        "sessionId",
        "id",
        "__proto__",
        "length",
      ],
    ),
    tie("value"),
    { maxKeys: 5 },
  ),
})).value;

const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((a, b) => a + b, 0);

describe("nothing ends the program", () => {
  test.each(["auto", ...FORMATS.map((f) => f.name)])("odd values: %s", async (format) => {
    await fc.assert(
      fc.asyncProperty(fc.array(odd, { minLength: 1, maxLength: 4 }), fc.boolean(), async (values, keep) => {
        const input = values.map((v) => `${JSON.stringify(v)}\n`).join("");
        const { rows, statistics } = await run(
          format,
          `0\n${input}`,
          keep ? { keep_tools: true, keep_thinking: true, redact: {} } : {},
        );
        // Many lines of a session make one conversation.
        const seen = Object.values(statistics.formats);
        if (FORMATS.some((f) => f.session && (f.name === format || seen.includes(f.name)))) return;
        expect(rows.length + sum(statistics.dropped)).toBeGreaterThanOrEqual(statistics.lines - batchHalves(values));
      }),
      { numRuns: 150 },
    );
  });
  test("random bytes, in chunks of any size", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), fc.integer({ min: 1, max: 50 }), async (bytes, size) => {
        const whole = await run("auto", Buffer.from(bytes));
        expect(await run("auto", Buffer.from(bytes), {}, size)).toEqual(whole);
      }),
      { numRuns: 400 },
    );
  });
  test("mutated logs: a line is a conversation or counted, and the others are untouched", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(conversation, { minLength: 3, maxLength: 5 }),
        fc.nat(),
        fc.uint8Array({ minLength: 1, maxLength: 3 }),
        async (all, where, junk) => {
          const lines = all.map((messages) => Buffer.from(JSON.stringify({ messages })));
          const middle = Buffer.from(lines[1]!);
          const clean = Buffer.from(junk.map((b) => (b === 10 ? 11 : b)));
          clean.copy(middle, where % middle.length);
          const input = Buffer.concat([lines[0]!, middle, ...lines.slice(2)].flatMap((l) => [l, Buffer.from("\n")]));
          const { rows, statistics } = await run("messages", input);
          expect(rows.length + sum(statistics.dropped)).toBe(all.length);
          expect(statistics.lines).toBe(all.length);
          expect(rows[0]).toEqual({ messages: all[0] });
          expect(rows.at(-1)).toEqual({ messages: all.at(-1) });
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** Lines that wait for another: counted once at the end if it never comes, not at all if it gives a row. */
const batchHalves = (values: readonly unknown[]): number =>
  values.filter((v) => JSON.stringify(v).includes("custom_id")).length;

describe("layouts", () => {
  test("lines, an array, and indented values give the same rows", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(conversation, { minLength: 2, maxLength: 5 }),
        fc.integer({ min: 1, max: 64 }),
        async (all, size) => {
          const values = all.map((messages) => ({ messages }));
          const lines = await run("messages", values.map((v) => `${JSON.stringify(v)}\n`).join(""));
          for (const input of [
            JSON.stringify(values),
            JSON.stringify(values, null, 2),
            values.map((v) => JSON.stringify(v, null, 1)).join("\n"),
            values.map((v) => JSON.stringify(v)).join(""),
          ])
            expect((await run("auto", input, {}, size)).text).toBe(lines.text);
        },
      ),
      { numRuns: 60 },
    );
  });
});

test("a fault is found wherever JSON.parse finds one, at a place within the text", () => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 4 }),
      fc.nat(),
      fc.constantFrom("", "x", '"', "}", "[", ",", "\\", "\n"),
      fc.boolean(),
      (json, where, junk, cut) => {
        const at = where % (json.length + 1);
        const broken = `{"a":${cut ? json.slice(0, at) + junk : json.slice(0, at) + junk + json.slice(at)}}`;
        let parses = true;
        try {
          JSON.parse(broken);
        } catch {
          parses = false;
        }
        fc.pre(!parses);
        const fault = jsonFault(broken);
        expect(fault.at).toBeGreaterThanOrEqual(0);
        expect(fault.at).toBeLessThanOrEqual(broken.length);
        // What stands before the fault is no fault itself: cut there, the text only breaks off.
        if (fault.at > 0 && fault.reason === "not valid JSON")
          expect(jsonFault(broken.slice(0, fault.at)).reason).not.toBe("text after the JSON value");
      },
    ),
    { numRuns: 2000 },
  );
});

test("blocks hold whole lines, whatever the chunks", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ maxLength: 40 }), { maxLength: 20 }),
      fc.integer({ min: 1, max: 30 }),
      fc.integer({ min: 1, max: 60 }),
      async (parts, size, block) => {
        const bytes = Buffer.from(parts.join("\n"));
        const out: Buffer[] = [];
        for await (const { bytes: found } of lineBlocks(inChunks(bytes, size), 1 << 20, block)) {
          if (out.length > 0) expect(out.at(-1)?.at(-1)).toBe(10);
          out.push(found);
        }
        expect(Buffer.concat(out)).toEqual(bytes);
      },
    ),
  );
});

test("a set of keys is a set", () => {
  fc.assert(
    fc.property(fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 200 }), (keys) => {
      const ours = new KeySet();
      const theirs = new Set<bigint>();
      for (const key of [...keys, ...keys, 0n, 0n]) {
        expect(ours.has(key)).toBe(theirs.has(key));
        expect(ours.add(key)).toBe(!theirs.has(key));
        theirs.add(key);
      }
    }),
  );
});

test("threads change neither rows nor their order nor the places of bad lines", async () => {
  const lines: string[] = [];
  for (let i = 0; i < 30_000; i += 1) {
    lines.push(
      i % 5000 === 4999
        ? `{"broken": ${i}`
        : JSON.stringify({
            messages: [
              { role: "user", content: `${i} ${"é".repeat(100)}` },
              { role: "assistant", content: `${i % 7}`.repeat(50) },
            ],
          }),
    );
  }
  const input = Buffer.from(`${lines.join("\n")}\n`);
  for (const more of [{}, { dedupe: "prefix" as const }, { redact: {} }]) {
    const here = await run("auto", input, more, 1 << 18, 0);
    const there = await run("auto", input, more, 1 << 18, 2);
    expect(there.text === here.text).toBe(true);
    expect(there.statistics).toEqual(here.statistics);
    expect(here.statistics.rejected[0]).toMatchObject({
      count: 6,
      places: [5000, 10000, 15000, 20000, 25000].map((line) => `f:${line}:${12 + String(line - 1).length}`),
    });
  }
});
