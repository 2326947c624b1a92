/** A conversation, through the same loop that a terminal has, with keys and answers written here. */
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { LineScreen, type Screen } from "../../../src/cli/chat/screen.ts";
import { Talk } from "../../../src/cli/chat/talk.ts";
import { createStyle } from "../../../src/cli/views/style.ts";
import { TinkerClient } from "../../../src/tinker/client.ts";
import { tinyCodec, tinyRenderer } from "../../chat/model.ts";
import { startPolicyServer } from "../../support/policy-server.ts";

/** Answers with the question in capitals; a prompt for "long" never ends. */
async function voiceOf(answer: (prompt: string) => string) {
  const policy = await startPolicyServer({
    answer: (text) => {
      const asked = text.lastIndexOf("<|im_start|>assistant");
      // Asked for the rest of an answer: what came stands behind the question.
      const begun = text.slice(text.indexOf("\n", asked) + 1);
      return answer(text).slice(begun.length);
    },
    codec: await tinyCodec(),
  });
  const client = new TinkerClient({ baseUrl: policy.url });
  const session = await client.createSession();
  const sampler = await session.createSampler({ baseModel: "builtin:tiny" });
  onTestFinished(async () => {
    await client.close();
    await policy.stop();
  });
  const model = { sampler, renderer: await tinyRenderer(), contextLength: undefined, seedsGoOn: false };
  return { voice: { name: "agent", weightsName: "w", model, close: async () => {} }, prompts: policy.prompts };
}

class TypedScreen implements Screen {
  readonly #lines: string[];
  written = "";
  onWrite: (text: string) => void = () => {};
  constructor(lines: readonly string[]) {
    this.#lines = [...lines];
  }
  async line(prompt: string) {
    const line = this.#lines.shift();
    this.written += `${prompt}${line ?? ""}\n`;
    return line;
  }
  more = (prompt: string) => this.line(prompt);
  write(text: string) {
    this.written += text;
    this.onWrite(text);
  }
  working = new AbortController();
  async interruptible<T>(work: (signal: AbortSignal) => Promise<T>) {
    this.working = new AbortController();
    return work(this.working.signal);
  }
  close() {}
}

async function talk(
  lines: readonly string[],
  answer: (prompt: string) => string,
  prepare?: (screen: TypedScreen) => void,
) {
  const { voice, prompts } = await voiceOf(answer);
  const screen = new TypedScreen(lines);
  prepare?.(screen);
  const saved = new Map<string, string>();
  await new Talk(screen, {
    voices: [voice],
    wishes: { temperature: 0, maxTokens: 400 },
    system: undefined,
    style: createStyle(false),
    save: (path, text) => void saved.set(path, text),
  }).run();
  return { written: screen.written, prompts, saved };
}

test("what was said before is part of the next question, and a system message from when it is given", async () => {
  const { written, prompts, saved } = await talk(
    ["first", "/system Be brief.", "second", "/save talk.jsonl", "/exit"],
    (prompt) => (prompt.includes("second") ? "B" : "A"),
  );
  expect(written).toContain("> first\nA\n");
  expect(written).toContain("> second\nB\n");
  expect(prompts.at(-1)).toMatch(/system\nBe brief\.[\s\S]*user\nfirst[\s\S]*assistant\nA[\s\S]*user\nsecond/);
  expect(JSON.parse(saved.get("talk.jsonl")!)).toEqual({
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "first" },
      { role: "assistant", content: "A" },
      { role: "user", content: "second" },
      { role: "assistant", content: "B" },
    ],
  });
});

test("/retry asks the same again without the answer, /clear forgets", async () => {
  let asked = 0;
  const { written, prompts } = await talk(["one", "/retry", "/clear", "/retry", "two"], () => `answer ${++asked}`);
  expect(written).toContain("answer 1\n");
  expect(written).toContain("> /retry\nanswer 2\n");
  expect(prompts[1]).toBe(prompts[0]);
  expect(written).toContain("Nothing has been asked.");
  expect(prompts[2]).not.toContain("one");
});

test("Ctrl-C ends an answer and not the conversation; what was said stays", async () => {
  const long = "word ".repeat(80);
  const { written, prompts } = await talk(
    ["tell me", "go on"],
    (prompt) => (prompt.includes("go on") ? "ok" : long),
    (screen) => {
      screen.onWrite = (text) => {
        if (text.startsWith("word")) screen.working.abort();
      };
    },
  );
  expect(written).toMatch(/word[\s\S]*\(ended\)\n> go on\nok\n/);
  expect(written).not.toContain(long);
  expect(prompts.at(-1)).toContain("tell me");
  expect(prompts.at(-1)).toContain("word");
});

test("a text of several lines, an unknown command, and control characters of an answer", async () => {
  const { written, prompts } = await talk(['"""first line', 'second line"""', "/reply"], () => "a\u001b[2Jb");
  expect(prompts[0]).toContain("user\nfirst line\nsecond line");
  expect(written).toContain("There is no /reply. Did you mean `/retry`?");
  expect(written).toContain("a\uFFFD[2Jb");
});

test("a text of several lines is a question also where it begins with a slash; of nothing said nothing is saved", async () => {
  const { written, prompts, saved } = await talk(["/save empty.jsonl", '"""/etc/hosts is what?', '"""'], () => "ok");
  expect(written).toContain("Nothing has been said.");
  expect(saved.size).toBe(0);
  expect(prompts[0]).toContain("user\n/etc/hosts is what?");
});

test("lines, Ctrl-C and the end of the input, as readline gives them", async () => {
  const input = new PassThrough();
  const output = new PassThrough();
  output.resume();
  const screen = new LineScreen({ input, output, isTerminal: false });
  input.write("one\ntwo\n");
  expect(await screen.line("> ")).toBe("one");
  // Typed ahead.
  expect(await screen.line("> ")).toBe("two");
  const seen = vi.fn();
  await screen.interruptible(async (signal) => {
    signal.addEventListener("abort", seen);
    screen.interrupt();
  });
  expect(seen).toHaveBeenCalledOnce();
  input.end();
  expect(await screen.line("> ")).toBeUndefined();
});
