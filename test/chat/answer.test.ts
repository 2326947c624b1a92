/** Answers in pieces: the same text and tokens as in one, whatever the pieces are, and never half a character. */
import { rmSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChatModel } from "../../src/chat/answer.ts";
import { promptOf, wholeAnswer } from "../../src/chat/answer.ts";
import { findStop, settledLength } from "../../src/chat/text.ts";
import { TinkerClient } from "../../src/tinker/client.ts";
import { startTestServer, type TestServer, TOKEN } from "../servers/embedded/server.ts";
import { bytesOf, collect, scriptedModel, tinyRenderer } from "./model.ts";

const PROMPT = Int32Array.from(bytesOf("question"));
const never = new AbortController().signal;

async function scripted(text: string, stop?: readonly string[], isStreamed = true, end: readonly number[] = []) {
  const { model, server, close } = await scriptedModel([...bytesOf(text), ...end], PROMPT.length);
  try {
    const wishes = { maxTokens: 500, temperature: 1, isStreamed, ...(stop ? { stop } : {}) };
    return { ...(await collect(model, PROMPT, wishes)), requests: server.count("/asample") };
  } finally {
    await close();
  }
}

describe("pieces of an answer", () => {
  test("hold whole characters, and are the text together", async () => {
    const text = "é日本語🙂 and 👩‍👩‍👧 then 𝒳 ".repeat(8);
    const { texts, tokens, reason, requests } = await scripted(text);
    expect(texts.join("")).toBe(text);
    expect(texts.every((piece) => !piece.includes("\uFFFD"))).toBe(true);
    expect(tokens.map(({ id }) => id)).toEqual(bytesOf(text));
    expect(tokens[2]!.logprob).toBeCloseTo(-0.03);
    expect(reason).toBe("stop");
    // The prompt is read again seldom: 8, 12, 18, 27, 41, 62, 64, … tokens.
    expect(requests).toBeLessThan(12);
    expect(texts.length).toBeGreaterThan(3);
  });

  test("of bytes that are no text end all the same", async () => {
    const { model, close } = await scriptedModel([0xff, 0x80, 0xe2, 0x82, 0x41, 0xf0, 0x9f], PROMPT.length);
    const { texts, reason } = await collect(model, PROMPT, { maxTokens: 7, temperature: 1, isStreamed: true });
    expect(texts.join("")).toBe(model.renderer.tokenizer.decode([0xff, 0x80, 0xe2, 0x82, 0x41, 0xf0, 0x9f]));
    expect(reason).toBe("stop");
    await close();
  });

  test("the token that ends a turn is counted and not shown", async () => {
    const end = (await tinyRenderer()).stopTokens()[0] as number;
    const { texts, tokens, reason } = await scripted("yes", undefined, true, [end]);
    expect(texts.join("")).toBe("yes");
    expect(tokens.map(({ id }) => id)).toEqual([...bytesOf("yes"), end]);
    expect(reason).toBe("stop");
  });

  test("a limit ends them with its reason", async () => {
    const { model, close } = await scriptedModel(bytesOf("abcdefghijklmnop"), PROMPT.length);
    const wishes = { maxTokens: 10, temperature: 1, isStreamed: true };
    expect(await collect(model, PROMPT, wishes)).toMatchObject({ reason: "length" });
    const small: ChatModel = { ...model, contextLength: PROMPT.length + 5 };
    expect((await collect(small, PROMPT, wishes)).texts.join("")).toBe("abcde");
    await close();
  });
});

describe("stop strings", () => {
  test.each([true, false])("end the answer before them, wherever they fall (streamed: %s)", async (isStreamed) => {
    const text = `${"x".repeat(19)}é STOP never said`;
    const { texts, tokens, reason } = await scripted(text, ["STOP", "absent"], isStreamed);
    expect(texts.join("")).toBe(`${"x".repeat(19)}é `);
    expect(tokens.map(({ id }) => id)).toEqual(bytesOf(`${"x".repeat(19)}é STOP`));
    expect(reason).toBe("stop");
  });

  test("what only begins like one is said", async () => {
    const { texts } = await scripted("a ST b STO", ["STOP"]);
    expect(texts.join("")).toBe("a ST b STO");
  });

  test("any text in any pieces is cut as it is whole", () => {
    const word = fc.array(fc.constantFrom("a", "b", "ab", "🙂"), { minLength: 1, maxLength: 4 }).map((p) => p.join(""));
    fc.assert(
      fc.property(fc.array(word, { maxLength: 8 }), fc.array(word, { minLength: 1, maxLength: 3 }), (pieces, stops) => {
        const whole = pieces.join("");
        const expected = whole.slice(0, findStop(whole, stops) ?? whole.length);
        let shown = 0;
        let text = "";
        for (const piece of pieces) {
          text += piece;
          const cut = findStop(text, stops, shown);
          if (cut !== undefined) return text.slice(0, cut) === expected;
          const settled = settledLength(text, stops);
          expect(settled).toBeGreaterThanOrEqual(shown);
          expect(expected.startsWith(text.slice(0, settled))).toBe(true);
          shown = settled;
        }
        return text === expected;
      }),
    );
  });
});

describe("on the embedded server", () => {
  let server: TestServer;
  let client: TinkerClient;
  let model: ChatModel;
  beforeAll(async () => {
    server = await startTestServer();
    client = new TinkerClient({ baseUrl: server.server.url, apiKey: TOKEN });
    const session = await client.createSession();
    const sampler = await session.createSampler({ baseModel: "builtin:tiny" });
    model = { sampler, renderer: await tinyRenderer(), contextLength: undefined, seedsGoOn: true };
  });
  afterAll(async () => {
    await client.close();
    await server.server.close();
    rmSync(server.folder, { recursive: true, force: true });
  });

  test.each([
    { temperature: 0 },
    { temperature: 1, seed: 7 },
    { temperature: 0.7, seed: 2 ** 40, topP: 0.9 },
    { temperature: 1.5, seed: 1, topK: 5 },
  ])("an answer in pieces is the answer in one: %j", async (sampling) => {
    const prompt = promptOf(model, { messages: [{ role: "user", content: "Say something." }] }, {});
    const wishes = { ...sampling, maxTokens: 100 };
    const whole = await wholeAnswer(model, prompt, wishes, never);
    const { texts, tokens } = await collect(model, prompt, { ...wishes, isStreamed: true });
    expect(tokens).toEqual(whole.tokens);
    expect(texts.join("")).toBe(whole.text);
    expect(texts.length).toBeGreaterThan(1);
  });
});
