import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { composeGraders, lengthPenalty } from "../../src/environments/compose.ts";
import type { Grader } from "../../src/environments/grader.ts";
import { commandGrader } from "../../src/environments/graders/command.ts";
import { httpGrader } from "../../src/environments/graders/http.ts";
import { findJson, jsonSchemaGrader } from "../../src/environments/graders/json-schema.ts";
import { type JudgeOptions, judgeGrader } from "../../src/environments/graders/judge.ts";
import { lastChoice, type MatchOptions, matchGrader } from "../../src/environments/graders/match.ts";
import { moduleGrader } from "../../src/environments/graders/module.ts";
import { processIdentity } from "../../src/process.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-graders-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const never = new AbortController().signal;
const ask = (grader: Grader, completion: string, row: object = {}, signal = never) =>
  grader.grade({ prompt: [{ role: "user", content: "q" }], completion, row: row as never, signal });

describe("match", () => {
  const cases: readonly (readonly [string, MatchOptions, string, object, number])[] = [
    ["exact", { mode: "exact", answer: "a" }, " yes\n", { a: "yes" }, 1],
    ["exact minds case", { mode: "exact", answer: "a" }, "Yes", { a: "yes" }, 0],
    ["exact, case folded", { mode: "exact", answer: "a", ignore_case: true }, "Yes", { a: "yes" }, 1],
    ["exact, composed and decomposed", { mode: "exact", answer: "a" }, "e\u0301", { a: "\u00e9" }, 1],
    ["exact is not contains", { mode: "exact", answer: "a" }, "yes!", { a: "yes" }, 0],
    ["contains", { mode: "contains", answer: "a" }, "I say yes to that", { a: "yes" }, 1],
    ["contains not", { mode: "contains", answer: "a" }, "I say no", { a: "yes" }, 0],
    ["regex alone", { mode: "regex", pattern: "^ok\\b" }, "ok then", {}, 1],
    ["regex alone fails", { mode: "regex", pattern: "^ok\\b" }, "not ok", {}, 0],
    [
      "regex group, the last match wins",
      { mode: "regex", pattern: "A: (\\d+)", answer: "a" },
      "A: 1 no A: 2",
      { a: 2 },
      1,
    ],
    ["regex group differs", { mode: "regex", pattern: "A: (\\d+)", answer: "a" }, "A: 1", { a: 2 }, 0],
    ["regex without a match", { mode: "regex", pattern: "A: (\\d+)", answer: "a" }, "none", { a: 2 }, 0],
    ["choice", { mode: "choice", answer: "a" }, "The answer is (B).", { a: "B" }, 1],
    ["choice differs", { mode: "choice", answer: "a" }, "The answer is (B).", { a: "C" }, 0],
    ["choice, truth in brackets", { mode: "choice", answer: "a" }, "B", { a: "(B)" }, 1],
    ["no choice", { mode: "choice", answer: "a" }, "I cannot say", { a: "B" }, 0],
  ];
  test.each(cases)("%s", async (_, options, completion, row, reward) => {
    expect((await ask(matchGrader(options), completion, row)).reward).toBe(reward);
  });

  test.each<[string, string | undefined]>([
    ["\\boxed{C}", "C"],
    ["\\boxed{\\text{D}}", "D"],
    ["Option A is wrong, B is wrong; so the answer is: **C**", "C"],
    ["A) no\nB) no\nC) yes\nAnswer: C", "C"],
    ["It is d.", undefined],
    ["(d)", undefined],
    ["A cat sat. The choice is b", "B"],
    ["Because", undefined],
    ["", undefined],
  ])("choice of %j is %s", (text, letter) => {
    expect(lastChoice(text, "ABCD")).toBe(letter);
  });

  test("a pattern that explodes is an error in a second, not a hang", async () => {
    const grader = matchGrader({ mode: "regex", pattern: "^(a+)+$" });
    await expect(ask(grader, `${"a".repeat(40)}!`)).rejects.toThrow(/RL7103/);
  });

  test("mistakes in the options are said when the grader is made; a row without the field when it is met", async () => {
    expect(() => matchGrader({ mode: "regex", pattern: "(" })).toThrow(/RL7102/);
    expect(() => matchGrader({ mode: "regex" })).toThrow(/RL7102/);
    await expect(ask(matchGrader({ mode: "exact", answer: "a" }), "x", { b: 1 })).rejects.toThrow(/RL7101.*b/);
  });
});

describe("json_schema", () => {
  const schema = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  test.each<[string, number, object]>([
    ['{"n": 5}', 1, { parsed: 1, valid: 1 }],
    ['Here you are:\n```json\n{"n": 5}\n```\nDone.', 1, { parsed: 1, valid: 1 }],
    ['First {"n": "x"}, no: {"n": 6}', 1, { parsed: 1, valid: 1 }],
    ['{"n": "five"}', 0, { parsed: 1, valid: 0 }],
    ["no json", 0, { parsed: 0, valid: 0 }],
    ['{"n": 5', 0, { parsed: 0, valid: 0 }],
  ])("%j → %d", async (completion, reward, metrics) => {
    expect(await ask(await jsonSchemaGrader({ schema }), completion)).toMatchObject({ reward, metrics });
  });

  test("with the right value, order of keys apart", async () => {
    const grader = await jsonSchemaGrader({ schema: {}, answer: "want" });
    expect((await ask(grader, '{"b": 2, "a": 1}', { want: { a: 1, b: 2 } })).reward).toBe(1);
    expect((await ask(grader, '{"b": 2, "a": 1}', { want: { a: 1, b: 3 } })).reward).toBe(0);
  });

  test("a schema that is none, and texts of brackets", async () => {
    await expect(jsonSchemaGrader({ schema: { type: "nonsense" } })).rejects.toThrow(/RL7102/);
    expect(findJson("{".repeat(20_000))).toBeUndefined();
    expect(findJson("}".repeat(20_000))).toBeUndefined();
    expect(findJson("{}".repeat(10_000))?.value).toEqual({});
  });
});

describe("command", () => {
  const program = (name: string, code: string): readonly string[] => {
    writeFileSync(join(folder, name), code);
    return [process.execPath, join(folder, name)];
  };
  const LINES = `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {`;
  const newGrader = (
    command: readonly string[],
    options: { timeoutMs?: number; concurrency?: number } = {},
  ): Grader => {
    const grader = commandGrader({
      command,
      cwd: folder,
      env: process.env,
      concurrency: 1,
      timeoutMs: 60_000,
      ...options,
    });
    onTestFinished(() => grader.close());
    return grader;
  };

  test("is asked line by line, one program for many questions", async () => {
    const grader = newGrader(
      program(
        "a.cjs",
        `let n = 0; ${LINES} const { completion, row } = JSON.parse(line); n += 1; console.log(JSON.stringify({ reward: completion === row.a ? 1 : 0, metrics: { n }, note: completion })); });`,
      ),
    );
    expect(await ask(grader, "x", { a: "x" })).toEqual({ reward: 1, metrics: { n: 1 }, note: "x" });
    expect(await ask(grader, "line\nbreak \u2028 ok", { a: "x" })).toMatchObject({
      reward: 0,
      metrics: { n: 2 },
      note: "line\nbreak \u2028 ok",
    });
  });

  test("a bare number will do; as many at once as asked for", async () => {
    const grader = newGrader(program("b.cjs", `${LINES} setTimeout(() => console.log(process.pid), 150); });`), {
      concurrency: 3,
    });
    const pids = await Promise.all([1, 2, 3, 4, 5].map(() => ask(grader, "x")));
    expect(new Set(pids.map((grade) => grade.reward)).size).toBe(3);
  });

  test("one that hangs is killed with its children, and another takes the next question", async () => {
    const code = `const { spawn } = require("node:child_process"); const fs = require("node:fs");
      ${LINES} const { completion } = JSON.parse(line);
      if (completion === "hang") { const c = spawn("sleep", ["60"]); fs.writeFileSync("child.pid", String(c.pid)); } else console.log(1); });`;
    const grader = newGrader(program("c.cjs", code), { timeoutMs: 4000 });
    await expect(ask(grader, "hang")).rejects.toThrow(/RL7103.*4 s/);
    const child = Number(readFileSync(join(folder, "child.pid"), "utf8"));
    await expect.poll(() => processIdentity(child)).toBeUndefined();
    expect((await ask(grader, "fine")).reward).toBe(1);
  });

  test("one that dies says why; nonsense and silence are errors, never 0", async () => {
    const dies = newGrader(program("d.cjs", `console.error("out of luck"); process.exit(3);`));
    await expect(ask(dies, "x")).rejects.toThrow(/RL7103.*exit code 3.*out of luck/s);
    for (const answer of [
      `"hello"`,
      `{"reward":"1"}`,
      `{"reward":null}`,
      `1e999`,
      `-1e10`,
      `not json`,
      `{"reward":1,"metrics":{"a":"b"}}`,
      `[1]`,
    ]) {
      const grader = newGrader(program("e.cjs", `${LINES} console.log(${JSON.stringify(answer)}); });`));
      await expect(ask(grader, "x"), answer).rejects.toThrow(/RL7103/);
    }
  });

  test("a second line beside the answer is an error, not the answer to the next question", async () => {
    const both = newGrader(program("f.cjs", `${LINES} process.stdout.write("0.25\\n1\\n"); });`));
    await expect(ask(both, "x")).rejects.toThrow(/RL7103.*printed `1` beside its answer/);
    // Says more once there is a file: not before its answer has been read.
    const code = `const fs = require("node:fs"); fs.writeFileSync("late.pid", String(process.pid)); let n = 0;
      ${LINES} console.log(n++); setInterval(() => fs.existsSync("more") && console.log(9), 10); });`;
    const late = newGrader(program("g.cjs", code));
    expect((await ask(late, "x")).reward).toBe(0);
    const pid = Number(readFileSync(join(folder, "late.pid"), "utf8"));
    writeFileSync(join(folder, "more"), "");
    await expect.poll(() => processIdentity(pid)).toBeUndefined();
    rmSync(join(folder, "more"));
    // Another program by now, which counts from 0.
    expect((await ask(late, "x")).reward).toBe(0);
  });

  test("a program that is not there", async () => {
    await expect(ask(newGrader(["/no/such/program"]), "x")).rejects.toThrow(/RL7102/);
    const path = join(folder, "plain.txt");
    writeFileSync(path, "");
    chmodSync(path, 0o644);
    await expect(ask(newGrader([path]), "x")).rejects.toThrow(/RL7102/);
  });

  test("an abort ends the wait", async () => {
    const grader = newGrader(program("f.cjs", `${LINES} });`), { timeoutMs: 60_000 });
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 200);
    await expect(ask(grader, "x", {}, abort.signal)).rejects.toThrow(/interrupted/);
  });
});

describe("module", () => {
  const file = (name: string, code: string): string => {
    writeFileSync(join(folder, name), code);
    return join(folder, name);
  };
  const newGrader = (path: string, timeoutMs = 60_000): Grader => {
    const grader = moduleGrader({ path, concurrency: 1, timeoutMs });
    onTestFinished(() => grader.close());
    return grader;
  };

  test("a default function, a named one, a promise", async () => {
    expect(
      (await ask(newGrader(file("a.mjs", "export default ({ completion }) => completion.length")), "four")).reward,
    ).toBe(4);
    const named = newGrader(
      file("b.mjs", "export async function grade({ row }) { return { reward: row.x / 2, metrics: { ok: true } } }"),
    );
    expect(await ask(named, "", { x: 1 })).toEqual({ reward: 0.5, metrics: { ok: 1 } });
    expect((await ask(newGrader(file("c.cjs", "module.exports = () => 3")), "")).reward).toBe(3);
  });

  test("one that never returns is ended, and the next question has a new thread", async () => {
    const grader = newGrader(
      file("d.mjs", "export default ({ completion }) => { if (completion === 'loop') for (;;); return 1 }"),
      3000,
    );
    await expect(ask(grader, "loop")).rejects.toThrow(/RL7103.*3 s/);
    expect((await ask(grader, "fine")).reward).toBe(1);
  });

  test("one that ends its thread after an answer is replaced before the next question", async () => {
    const code = "export default () => { setImmediate(() => process.exit()); return 1 }";
    const grader = newGrader(file("i.mjs", code));
    const thread = once(process, "worker") as Promise<[Worker]>;
    const first = ask(grader, "one");
    const [worker] = await thread;
    const gone = once(worker, "exit");
    expect((await first).reward).toBe(1);
    await gone;
    expect((await ask(grader, "two")).reward).toBe(1);
  });

  test("what it throws, what does not load, what is not there", async () => {
    await expect(
      ask(newGrader(file("e.mjs", "export default () => { throw new Error('bad row') }")), ""),
    ).rejects.toThrow(/RL7103.*bad row/);
    await expect(ask(newGrader(file("f.mjs", "export const x = 1")), "")).rejects.toThrow(/RL7102/);
    await expect(ask(newGrader(file("g.mjs", "syntax error here")), "")).rejects.toThrow(/RL7102/);
    await expect(ask(newGrader(file("h.mjs", "export default () => {}")), "")).rejects.toThrow(/RL7103.*null/);
    expect(() => moduleGrader({ path: join(folder, "none.mjs"), concurrency: 1, timeoutMs: 1 })).toThrow(/RL7102/);
  });
});

type Answer = (body: { [key: string]: unknown }, request: IncomingMessage, response: ServerResponse) => void;

async function serve(answer: Answer): Promise<{ url: string; asked: () => number }> {
  let asked = 0;
  const server: Server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      asked += 1;
      answer(JSON.parse(text), request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}

describe("http", () => {
  const options = { headers: {}, timeoutMs: 20_000, tries: 3 };

  test("posts the question and reads the grade, with headers", async () => {
    const { url } = await serve((body, request, response) =>
      response.end(JSON.stringify({ reward: (body.row as { r: number }).r, note: String(request.headers["x-key"]) })),
    );
    expect(await ask(httpGrader({ ...options, url, headers: { "x-key": "k" } }), "", { r: 0.25 })).toEqual({
      reward: 0.25,
      metrics: {},
      note: "k",
    });
  });

  test("tries again where that may help", async () => {
    let n = 0;
    const { url, asked } = await serve((_, __, response) => {
      n += 1;
      if (n === 1) response.writeHead(503, { "retry-after": "0.01" }).end();
      else if (n === 2) response.destroy();
      else response.end("1");
    });
    expect((await ask(httpGrader({ ...options, url }), "")).reward).toBe(1);
    expect(asked()).toBe(3);
  });

  test("gives up at once on a 4xx, after its tries on silence, and says which", async () => {
    const refusing = await serve((_, __, response) => response.writeHead(400).end("no such task"));
    await expect(ask(httpGrader({ ...options, url: refusing.url }), "")).rejects.toThrow(/RL7103.*400.*no such task/);
    expect(refusing.asked()).toBe(1);
    const silent = await serve(() => {});
    await expect(ask(httpGrader({ ...options, url: silent.url, timeoutMs: 1000, tries: 2 }), "")).rejects.toThrow(
      /RL7103.*1 s/,
    );
    await expect.poll(silent.asked).toBe(2);
    await expect(ask(httpGrader({ ...options, url: "http://127.0.0.1:1", tries: 1 }), "")).rejects.toThrow(
      /RL7103.*cannot be reached/,
    );
  });
});

describe("judge", () => {
  const reply = (content: string) => JSON.stringify({ choices: [{ message: { role: "assistant", content } }] });
  const judge = (url: string, more: Partial<JudgeOptions> = {}): Grader =>
    judgeGrader({
      url: `${url}/v1`,
      model: "m",
      apiKey: "secret-key",
      rubric: "The right answer is {answer}.",
      scale: { min: 1, max: 5 },
      timeoutMs: 20_000,
      tries: 2,
      ...more,
    });

  test("asks with rubric, question and answer; the score is put on 0 to 1; a second time it is remembered", async () => {
    let seen: { messages?: { content: string }[]; model?: unknown } = {};
    let auth: string | undefined;
    const { url, asked } = await serve((body, request, response) => {
      seen = body;
      auth = request.headers.authorization;
      response.end(reply("Looks fine. SCORE: 2\nOn second thought\nSCORE: 4"));
    });
    const grader = judge(url, { cacheFolder: join(folder, "cache") });
    expect(await ask(grader, "my answer", { answer: "42" })).toMatchObject({
      reward: 0.75,
      metrics: { judge_score: 4, judge_cached: 0 },
    });
    expect(seen.model).toBe("m");
    expect(seen.messages?.[0]?.content).toContain("The right answer is 42.");
    expect(seen.messages?.[1]?.content).toContain("<answer>\nmy answer\n</answer>");
    expect(auth).toBe("Bearer secret-key");
    expect(await ask(grader, "my answer", { answer: "42" })).toMatchObject({
      reward: 0.75,
      metrics: { judge_cached: 1 },
    });
    await ask(grader, "my answer", { answer: "43" });
    expect(asked()).toBe(2);
  });

  test.each(["I cannot judge this", "SCORE: 9", "SCORE: five", ""])(
    "no usable score in %j is an error, not a 0",
    async (content) => {
      const { url } = await serve((_, __, response) => response.end(reply(content)));
      await expect(ask(judge(url), "x")).rejects.toThrow(/RL7103/);
    },
  );

  test("the key is in no message", async () => {
    const { url } = await serve((_, __, response) => response.writeHead(401).end("bad key"));
    const error = await ask(judge(url), "x").catch((caught: Error) => caught.message);
    expect(error).toContain("401");
    expect(error).not.toContain("secret-key");
  });
});

describe("several as one", () => {
  const fixed = (reward: number): Grader => ({
    grade: async () => ({ reward, metrics: { m: reward } }),
    close: async () => {},
  });

  test("a weighted sum with a price for length", async () => {
    const grader = composeGraders(
      [
        { name: "right", weight: 1, grader: fixed(1) },
        { name: "form", weight: 0.2, grader: fixed(0.5) },
      ],
      { free: 10, full: 20, penalty: 0.4 },
    );
    const grade = await ask(grader, "x".repeat(15));
    expect(grade.reward).toBeCloseTo(1 + 0.1 - 0.2, 12);
    expect(grade.metrics).toEqual({
      "reward/right": 1,
      "reward/form": 0.5,
      "right/m": 1,
      "form/m": 0.5,
      "reward/length": -0.2,
    });
  });

  test("if a part cannot judge, the whole cannot", async () => {
    const broken: Grader = { grade: async () => Promise.reject(new Error("no")), close: async () => {} };
    await expect(
      ask(
        composeGraders([
          { name: "a", weight: 1, grader: fixed(1) },
          { name: "b", weight: 1, grader: broken },
        ]),
        "",
      ),
    ).rejects.toThrow("no");
  });

  test.each([
    [0, 0],
    [10, 0],
    [15, 0.5],
    [20, 1],
    [1000, 1],
  ])("%d characters cost %d", (characters, cost) => {
    expect(lengthPenalty(characters, { free: 10, full: 20, penalty: 1 })).toBeCloseTo(cost, 12);
  });
});
