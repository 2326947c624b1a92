/** Calls, rewards, versions, places, ignore files and output: what needs no daemon. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { commandOf } from "../../../src/environments/harbor/calls.ts";
import { chooseDataset, compareVersions, parseDatasetName } from "../../../src/environments/harbor/registry.ts";
import {
  combineRewards,
  meets,
  parseRewardJson,
  parseRewardText,
  scalarOf,
} from "../../../src/environments/harbor/reward.ts";
import { Budget } from "../../../src/environments/sandbox/budget.ts";
import { openDocker } from "../../../src/environments/sandbox/docker.ts";
import { dockerIgnore, gitIgnore } from "../../../src/environments/sandbox/ignore.ts";
import { DEADLINE, OWNER, ownOwner, verdictOn } from "../../../src/environments/sandbox/labels.ts";
import { SandboxMeter } from "../../../src/environments/sandbox/meter.ts";
import { FrameReader, HeadTail, MarkedStream } from "../../../src/environments/sandbox/output.ts";
import { parseCalls, type ToolFormat } from "../../../src/tokens/calls.ts";
import { cpuMs } from "../../support/cpu.ts";

describe("tool calls", () => {
  const commands = (text: string, format: ToolFormat = "auto") => {
    const { calls, faults } = parseCalls(text, format);
    return [...calls.map((call) => commandOf(call)), ...faults];
  };
  const hermes = (body: string) => `<tool_call>\n${body}\n</tool_call>`;

  test.each<[string, string, unknown[]]>([
    ["no call", "All done.", []],
    ["Hermes", `I look.\n${hermes('{"name": "bash", "arguments": {"command": "ls"}}')}`, [{ command: "ls" }]],
    [
      "two calls in order",
      hermes('{"name":"bash","arguments":{"command":"a"}}') + hermes('{"name":"bash","arguments":{"command":"b"}}'),
      [{ command: "a" }, { command: "b" }],
    ],
    [
      "Qwen XML, the command as it stands",
      "<tool_call>\n<function=bash>\n<parameter=command>\necho 1\n[ 2 ]\n</parameter>\n</function>\n</tool_call>",
      [{ command: "echo 1\n[ 2 ]" }],
    ],
    ["Llama", '{"name": "bash", "parameters": {"command": "ls"}}', [{ command: "ls" }]],
    ["Llama with its tag", '<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}', [{ command: "ls" }]],
    ["a block at the end", "I look.\n```bash\nls -la\n```\n", [{ command: "ls -la\n" }]],
    ["a block that is only shown", "I ran\n```bash\nls\n```\nand was done.", []],
    ["a block that is not closed", "```bash\nls\n", ["A block of bash is not closed by ```."]],
    [
      "two blocks",
      "```bash\na\n```\n```sh\nb\n```",
      ["There is more than one block of bash. Write one command at a time."],
    ],
    [
      "a fence within a block, or a block behind it",
      "```bash\ncat <<E\n```\nE\n```",
      ["Behind the block of bash stands another ```. Nothing may follow it, and no line in it may be ``` alone."],
    ],
    ["an empty block", "```bash\n```", [{ command: "" }]],
    [
      "two parameters, the second not closed",
      "<tool_call><function=bash><parameter=command>ls</parameter><parameter=x></function></tool_call>",
      ["In the call of bash stands something that is no <parameter=…>…</parameter>."],
    ],
    ["what is only thought", `<think>${hermes("{}")}</think>Done.`, []],
    ["thinking without an end", "<think>```bash\nls\n```", []],
    ["not closed", '<tool_call>\n{"name": "bash"', ["A <tool_call> is not closed by </tool_call>."]],
    [
      "a list of arguments",
      hermes('{"name":"bash","arguments":[]}'),
      ['The "arguments" of the call of bash must be a JSON object.'],
    ],
    ["no name", hermes('{"arguments":{}}'), ['A tool call must be a JSON object with a "name".']],
    [
      "another tool",
      hermes('{"name":"python","arguments":{}}'),
      [{ error: "There is no tool python. There is bash." }],
    ],
    ["no command", hermes('{"name":"bash","arguments":{}}'), [{ error: 'bash needs "command", a text.' }]],
    [
      "another parameter",
      hermes('{"name":"bash","arguments":{"command":"a","timeout":1}}'),
      [{ error: 'bash has no parameter "timeout". It has "command".' }],
    ],
    [
      "NUL",
      hermes('{"name":"bash","arguments":{"command":"a\\u0000"}}'),
      [{ error: "A command must not contain a NUL character." }],
    ],
  ])("%s", (_, text, expected) => expect(commands(text)).toEqual(expected));

  test("no JSON is told with the parser's words", () => {
    expect(commands(hermes("{name: bash}"))).toEqual([expect.stringMatching(/^A tool call is no JSON: /)]);
  });

  test("a form that is not the model's is a fault", () => {
    const xml = "<tool_call><function=bash><parameter=command>ls</parameter></function></tool_call>";
    expect(commands(xml, "hermes")).toEqual(["A call has another form than this model's (hermes)."]);
    expect(commands(xml, "qwen_xml")).toEqual([{ command: "ls" }]);
    expect(commands("```bash\nls\n```", "hermes")).toEqual([]);
  });
});

describe("whatever a model says", () => {
  const commands = fc.string({
    unit: fc.constantFrom(..."ab\n\"'\\$`<>&{} é\u{1F600}\t"),
    minLength: 1,
    maxLength: 40,
  });
  const parse = (text: string, format: ToolFormat) => parseCalls(text, format).calls.map((call) => commandOf(call));

  test("a command that is written in a form is read from it as it was (property)", () => {
    fc.assert(
      fc.property(commands, (command) => {
        const given = { name: "bash", arguments: { command } };
        const expected = [{ command }];
        expect(parse(`Well.\n<tool_call>\n${JSON.stringify(given)}\n</tool_call>`, "hermes")).toEqual(expected);
        expect(parse(JSON.stringify({ name: "bash", parameters: { command } }), "llama")).toEqual(expected);
        const xml = `<tool_call>\n<function=bash>\n<parameter=command>\n${command}\n</parameter>\n</function>\n</tool_call>`;
        expect(parse(xml, "qwen_xml")).toEqual(expected);
        if (!command.split("\n").some((line) => line.startsWith("```")))
          expect(parse(`Well.\n\`\`\`bash\n${command}\n\`\`\`\n`, "bash_block")).toEqual([{ command: `${command}\n` }]);
      }),
    );
  });

  const pieces = [
    "<tool_call>",
    "</tool_call>",
    "<function=bash>",
    "</function>",
    "<parameter=command>",
    "</parameter>",
    "<think>",
    "</think>",
    '{"name": "bash", ',
    '"arguments": {"command": "ls"}}',
    '"parameters": {',
    "}",
    "```bash\n",
    "```",
    "\n",
    "ls",
    "\0",
    " ",
  ];
  test("pieces of calls in any order are calls or faults, never an error, and nothing that is said gets lost (property)", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...pieces), { maxLength: 30 }),
        fc.constantFrom<ToolFormat>("auto", "hermes", "qwen_xml", "llama", "bash_block"),
        (parts, format) => {
          const { calls, faults, said } = parseCalls(parts.join(""), format);
          for (const call of calls) expect(Object.keys(commandOf(call))).toHaveLength(1);
          for (const fault of faults) expect(fault).toMatch(/\.$/);
          expect(parts.join("")).toEqual(expect.stringContaining(said.split("\n")[0] as string));
        },
      ),
    );
  });

  test.each([
    ["openings of blocks", "```bash\n".repeat(30_000)],
    ["white space behind a block", `\`\`\`bash\nls\n\`\`\`${" ".repeat(200_000)}x`],
    [
      "openings of parameters",
      `<tool_call><function=bash>${"<parameter=command>".repeat(20_000)}</function></tool_call>`,
    ],
    ["openings of calls", "<tool_call>".repeat(30_000)],
    ["empty calls", "<tool_call></tool_call>".repeat(10_000)],
    ["openings of thoughts", "<think>".repeat(50_000)],
  ])("%s without end are read in no time", (_, text) => {
    expect(cpuMs(() => void parseCalls(text, "auto"))).toBeLessThan(2000);
  });
});

describe("rewards", () => {
  test.each([
    ["1\n", 1],
    [" 0.5 ", 0.5],
    ["-2", -2],
    ["1e-3", 0.001],
    ["-0", 0],
  ])("reward.txt %j", (text, reward) => {
    expect(parseRewardText(text)).toEqual({ reward });
  });
  test.each(["\n", "abc", "true", "1\n0\n", "1,5", "nan", "inf", "1e309", "\uFEFF1", "0x10", "1_000"])(
    "reward.txt %j is none",
    (text) => {
      expect(() => parseRewardText(text)).toThrow(/RL7305/);
    },
  );
  test.each([
    '{"reward": true}',
    "[1]",
    "null",
    '"1"',
    "1",
    '{"a": "1"}',
    '{"a": null}',
    '{"a": {}}',
    '{"a": NaN}',
    '{"a": 1e999}',
    "{",
    "\uFEFF{}",
  ])("reward.json %j is none", (text) => expect(() => parseRewardJson(text)).toThrow(/RL7305/));
  test("the number to train on", () => {
    expect(scalarOf(parseRewardJson('{"a": 0.1, "reward": 2}'))).toBe(2);
    expect(scalarOf({ only: 3 })).toBe(3);
    expect(scalarOf({ a: 1, b: 2 }, "b")).toBe(2);
    expect(() => scalarOf({ a: 1, b: 2 })).toThrow(/the tests gave a, b/);
    expect(() => scalarOf({})).toThrow(/without a number/);
    expect(() => scalarOf({ a: 1 }, "b")).toThrow(/no `b`/);
  });
  test("over steps", () => {
    expect(combineRewards([{ reward: 1, a: 1 }, { reward: 0.5 }], "mean")).toEqual({ reward: 0.75, a: 0.5 });
    expect(combineRewards([{ reward: 1 }, { reward: 0.5 }], "final")).toEqual({ reward: 0.5 });
    expect(meets({ reward: 0.5 }, 0.5)).toBe(true);
    expect(meets({ other: 1 }, 0)).toBe(false);
    expect(meets({ reward: 1, a: 0 }, { reward: 1, a: 0.1 })).toBe(false);
    expect(meets({}, undefined)).toBe(true);
  });
});

describe("datasets by name", () => {
  const all = ["0.9", "0.10", "1.0rc1", "1.0"].map((version) => ({ name: "set", version, tasks: [] }));
  test("the highest version, `head` first, by number and not by text", () => {
    expect(chooseDataset(all, parseDatasetName("set"), "r").version).toBe("1.0");
    expect(chooseDataset([...all, { name: "set", version: "head", tasks: [] }], { name: "set" }, "r").version).toBe(
      "head",
    );
    expect(["1.0", "0.10", "0.9", "1.0rc1", "x"].sort(compareVersions)).toEqual(["x", "0.9", "0.10", "1.0rc1", "1.0"]);
  });
  test("what is not there", () => {
    expect(() => chooseDataset(all, { name: "sets" }, "r")).toThrow(/no dataset `sets`\. Did you mean `set`\?/);
    expect(() => chooseDataset(all, { name: "set", version: "2" }, "r")).toThrow(/no version `2` of set\. It has/);
    expect(() => parseDatasetName("org/name@1")).toThrow(/RL7206/);
    expect(() => parseDatasetName("set@")).toThrow(/RL7206/);
  });
});

describe("ignore files", () => {
  test.each([
    ["node_modules", "node_modules/a/b", true],
    ["node_modules", "a/node_modules", false],
    ["**/node_modules", "a/node_modules/x", true],
    ["*.md\n!README.md", "README.md", false],
    ["*.md\n!README.md", "a.md", true],
    ["*.md", "a/b.md", false],
    ["docs/**/*.txt", "docs/a/b/c.txt", true],
    ["/abs", "abs", true],
    ["# no\n\n", "# no", false],
  ])(".dockerignore %j and %s", (text, path, expected) => expect(dockerIgnore(text).ignores(path)).toBe(expected));
  test.each([
    ["*.pyc", "a/b.pyc", true],
    ["__pycache__/", "a/__pycache__/x", true],
    ["/top", "a/top", false],
    ["a/b", "x/a/b", false],
    ["*.log\n!keep.log", "x/keep.log", false],
  ])(".gitignore %j and %s", (text, path, expected) => expect(gitIgnore(text).ignores(path)).toBe(expected));
});

describe("output", () => {
  const frame = (stream: number, text: string) => {
    const header = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
    header.writeUInt32BE(Buffer.byteLength(text), 4);
    return Buffer.concat([header, Buffer.from(text)]);
  };
  test("frames that are cut anywhere are put together", () => {
    const bytes = Buffer.concat([frame(1, "out"), frame(2, ""), frame(2, "errör"), frame(1, "more")]);
    for (let size = 1; size <= bytes.length; size += 1) {
      const got: Record<number, string> = { 1: "", 2: "" };
      const parts: Record<1 | 2, Buffer[]> = { 1: [], 2: [] };
      const reader = new FrameReader((stream, part) => parts[stream].push(Buffer.from(part)));
      for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
      for (const stream of [1, 2] as const) got[stream] = Buffer.concat(parts[stream]).toString();
      expect(got).toEqual({ 1: "outmore", 2: "errör" });
    }
  });
  test("the beginning and the end are kept, characters whole, and the rest counted", () => {
    const kept = new HeadTail(8);
    for (const piece of ["ab", "cé", "x".repeat(1000), "ü", "xyz"]) kept.push(Buffer.from(piece));
    expect(kept.output()).toEqual({
      text: "abc\n[… 1002 bytes left out …]\nxyz",
      totalBytes: 1010,
      droppedBytes: 1002,
    });
  });
  test("a mark is found wherever it is cut, and what looks like one is not", () => {
    const text = "some <ma\u0001 out<mark> of it\u0001mark 42 7\nafter";
    for (let size = 1; size <= text.length; size += 1) {
      const out = new HeadTail(1000);
      const stream = new MarkedStream("\u0001mark ", out);
      for (let at = 0; at < text.length; at += size) stream.push(Buffer.from(text.slice(at, at + size)));
      expect([stream.values, out.output().text]).toEqual([[42, 7], "some <ma\u0001 out<mark> of it"]);
    }
  });
});

test("places and memory are given in order of asking, and a large one is not passed by", async () => {
  const budget = new Budget(3, 100);
  const order: string[] = [];
  const take = async (name: string, bytes: number) => {
    const release = await budget.take(bytes);
    order.push(name);
    return release;
  };
  const first = await take("a", 60);
  const large = take("large", 90);
  const small = take("small", 10);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(order).toEqual(["a"]);
  first();
  first();
  (await large)();
  (await small)();
  expect(order).toEqual(["a", "large", "small"]);
  const stop = new AbortController();
  const held = await budget.take(100);
  const waiting = budget.take(1, stop.signal);
  stop.abort();
  await expect(waiting).rejects.toThrow();
  held();
  (await budget.take(500))();
});

test("a meter counts what is taken over several daemons, and the most at once since it was asked", async () => {
  const meter = new SandboxMeter();
  const [first, second] = [2, 3].map((places) => new Budget(places, Number.POSITIVE_INFINITY, () => {}, meter));
  expect([meter.inUse, meter.places]).toEqual([0, 5]);
  const a = first!.tryTake(1);
  const b = await second!.take(1);
  a?.();
  a?.();
  expect([meter.inUse, meter.takeMost(), meter.takeMost()]).toEqual([1, 2, 1]);
  const held = [first!.tryTake(1), first!.tryTake(1)];
  const waiting = first!.take(1);
  expect(meter.inUse).toBe(3);
  held[0]?.();
  (await waiting)();
  expect([meter.inUse, meter.takeMost()]).toEqual([2, 3]);
  b();
  held[1]?.();
  expect(meter.inUse).toBe(0);
});

test("whose a container is", () => {
  const own = ownOwner();
  const labels = (owner: object, deadline = Date.now() + 1000) => ({
    [OWNER]: JSON.stringify({ ...own, ...owner }),
    [DEADLINE]: String(deadline),
  });
  expect(verdictOn(labels({}))).toBe("ours");
  expect(verdictOn(labels({}, Date.now() - 1))).toBe("dead");
  expect(verdictOn(labels({ startTime: "1" }))).toBe("dead");
  expect(verdictOn(labels({ pid: 2 ** 22 + 1 }))).toBe("dead");
  expect(verdictOn(labels({ boot: "another" }))).toBe("dead");
  expect(verdictOn(labels({ host: "another", boot: "another" }))).toBe("unknown");
  expect(verdictOn(labels({ namespace: "another" }))).toBe("unknown");
  expect(verdictOn({})).toBe("unknown");
});

test("a daemon that is too old, or none, is told before anything", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-daemon-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const socket = join(folder, "docker.sock");
  const open = () =>
    openDocker({ host: `unix://${socket}`, env: {}, cacheFolder: folder, project: "p", run: "r", concurrency: 1 });
  await expect(open()).rejects.toThrow(/RL7301.*does not answer/);
  const daemon = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(request.url?.includes("version") ? JSON.stringify({ ApiVersion: "1.30" }) : "OK");
  });
  await new Promise<void>((resolve) => daemon.listen(socket, resolve));
  onTestFinished(() => void daemon.close());
  await expect(open()).rejects.toThrow(/RL7301.*speaks API 1\.30/);
});
