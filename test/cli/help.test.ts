/** What help teaches: every command shows how it is used, in lines that the program itself accepts; every failure says what to type next. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CommanderError } from "commander";
import { describe, expect, test } from "vitest";
import { EXIT } from "../../src/cli/context.ts";
import { EXAMPLE_PATHS, examplesOf } from "../../src/cli/examples.ts";
import { helpArguments } from "../../src/cli/help.ts";
import { type Page, pageNamed } from "../../src/cli/pages.ts";
import { createProgram } from "../../src/cli/program.ts";
import { allCommands, pathOf } from "../../src/cli/teach.ts";
import { nextCommand } from "../../src/cli/views/diagnostic.ts";
import { CODES } from "../../src/codes.ts";
import { diagnostic } from "../../src/diagnostic.ts";

const program = createProgram(async () => {});
const leaves = allCommands(program).filter(
  (command) => command.commands.length === 0 && !command.name().startsWith("__"),
);

/** The words of each `rlcli` in a line of shell; quotes hold words together, pipes and semicolons end a command. */
function commandsIn(line: string): string[][] {
  const words = line.match(/'[^']*'|"[^"]*"|[^\s'"]+/g) ?? [];
  const commands: string[][] = [[]];
  for (const word of words) {
    if (["|", ";", "&&", ">"].includes(word)) commands.push([]);
    else commands.at(-1)?.push(word.replace(/^(['"])(.*)\1$/, "$2"));
  }
  return commands.filter(([name]) => name === "rlcli").map(([, ...args]) => args);
}

async function parses(args: readonly string[]): Promise<string | undefined> {
  const reached: string[] = [];
  const fresh = createProgram(async () => void reached.push("run"));
  try {
    await fresh.parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) return error.message;
    throw error;
  }
  return reached.length === 1 ? undefined : "it runs nothing";
}

describe("examples", () => {
  test.each(leaves.map(pathOf))("%s has one to three, of its own", async (path) => {
    const examples = examplesOf(path);
    expect(examples.length).toBeGreaterThanOrEqual(1);
    expect(examples.length).toBeLessThanOrEqual(3);
    for (const { line, about } of examples) {
      expect(line).toContain(`rlcli ${path}`);
      expect(line.length).toBeLessThanOrEqual(118);
      expect(about).not.toMatch(/\.$/);
      for (const args of commandsIn(line)) expect([line, await parses(args)]).toEqual([line, undefined]);
    }
  });

  test("none is of a command that is gone", () => {
    expect(EXAMPLE_PATHS.filter((path) => !leaves.some((command) => pathOf(command) === path))).toEqual([]);
  });

  test("an example that the grammar refuses would be found", async () => {
    expect(await parses(["plan", "--bogus"])).toContain("unknown option");
    expect(await parses(["rollouts"])).toContain("missing required argument");
  });
});

function rlcli(...args: string[]) {
  const bin = new URL("../../bin/rlcli.js", import.meta.url).pathname;
  const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined } as NodeJS.ProcessEnv;
  return spawnSync(process.execPath, [bin, ...args], { encoding: "utf8", cwd: "/", env });
}

describe("help", () => {
  test("commands stand in groups, none without one", () => {
    const { stdout } = rlcli("--help");
    expect(stdout).toContain("Begin:\n  init");
    expect(stdout).toContain("More:\n  completion <shell>");
    expect(stdout).not.toContain("\nCommands:");
    const ungrouped = program.commands.filter((command) => command.helpGroup() === "More:").map((c) => c.name());
    expect(ungrouped).toEqual(["completion", "__complete"]);
  });

  test("`help COMMAND` and `COMMAND --help` are the same, with examples", () => {
    const { stdout } = rlcli("help", "plan");
    expect(stdout).toBe(rlcli("plan", "--help").stdout);
    expect(stdout).toContain("Examples:\n  rlcli plan\n      what an apply would do, and why");
  });
});

const IMPERATIVE =
  /^(Accept|Add|Apply|Begin|Change|Check|Choose|Correct|Declare|Download|Give|Install|Keep|Leave|Let|Look|Lower|Make|Mend|Name|Plan|Put|Raise|Read|Remove|Rename|Replace|Restore|Run|Save|See|Set|Shorten|Start|Stop|Take|Try|Use|Wait|Write) .*\.$/;
const isFileName = (text: string): boolean => /\.(yaml|mjs|lock|toml|jinja|jsonl)$/.test(text);
/** In advice: values of fields, members of a line of questions, and topics of `explain`. */
const VALUES = new Set([
  "continue",
  "replace",
  "gspo",
  "prompt",
  "messages",
  "id",
  "tools",
  "run",
  "run.learning_rate",
]);

/** Names of every field that the spec has anywhere. */
const FIELDS = new Set<string>();
JSON.parse(readFileSync(new URL("../../schemas/rlcli.schema.json", import.meta.url), "utf8"), (_, value) => {
  for (const name of Object.keys(value?.properties ?? {})) FIELDS.add(name);
  return value;
});

describe("the next command", () => {
  test.each([
    ["of the command line", ["render"], "`rlcli render --help` says more."],
    ["of a file", ["plan", "-f", "/proc/version"], "`rlcli explain RL1"],
  ])("after a fault %s", (_, args, words) => {
    const { status, stderr } = rlcli(...args);
    expect(status).toBe(1);
    expect(stderr).toContain(words);
  });

  test("is not said twice where the message has one, nor for warnings", () => {
    expect(nextCommand([diagnostic("RL9009", "It is not there. `rlcli apply` makes it.")])).toBeUndefined();
    expect(nextCommand([diagnostic("RL1305", "The variable x is not used.")])).toBeUndefined();
    expect(nextCommand([])).toBeUndefined();
  });

  test.each(Object.entries(CODES))(
    "%s leads to a page that says more than its summary, and what to do",
    async (_, info) => {
      expect(info.explanation.length).toBeGreaterThan(info.summary.length);
      expect(info.next).toMatch(IMPERATIVE);
      const named = [...info.next.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
      // Something to type or to change, not good wishes.
      expect(named.length).toBeGreaterThan(0);
      for (const line of named.filter((code) => code.startsWith("rlcli ") && !code.endsWith(" --help")))
        for (const args of commandsIn(line)) expect([line, await parses(args)]).toEqual([line, undefined]);
      for (const code of named.filter(
        (text) => /^[a-z_]+(\.[a-z_]+)*$/.test(text) && !isFileName(text) && !VALUES.has(text),
      ))
        for (const part of code.split(".")) expect([code, FIELDS.has(part)]).toEqual([code, true]);
    },
  );
});

describe("help on topics", () => {
  test.each([
    [
      ["help", "serve", "start"],
      ["serve", "start", "--help"],
    ],
    [
      ["--no-color", "help", "plan"],
      ["--no-color", "plan", "--help"],
    ],
    [
      ["help", "losses"],
      ["explain", "losses"],
    ],
    [
      ["help", "environment", "variables"],
      ["explain", "environment", "variables"],
    ],
    [
      ["help", "rl1101", "--json"],
      ["--json", "explain", "rl1101"],
    ],
    [["help"], ["help"]],
    [
      ["plan", "--json"],
      ["plan", "--json"],
    ],
    [
      ["-C", "help", "plan"],
      ["-C", "help", "plan"],
    ],
    [
      ["-C", "x", "help", "plan"],
      ["-C", "x", "plan", "--help"],
    ],
  ])("%j is %j", (argv, meant) => {
    expect(helpArguments(program, argv)).toEqual(meant);
  });

  test("what is neither a command nor a topic is said to be neither", () => {
    const { status, stderr } = rlcli("help", "adresses");
    const said = stderr.replaceAll(/\s+/g, " ");
    expect([status, said]).toEqual([1, expect.stringContaining("Did you mean `addresses`?")]);
  });

  test("every exit code is on its page", () => {
    const listed = pageNamed("exit codes")!.rows.map(({ term }) => Number(term));
    expect(listed).toEqual(Object.values(EXIT).sort((a, b) => a - b));
  });

  test.each(["addresses", "environment variables", "exit codes"])("%s is a page, and one for programs", (name) => {
    const { rows } = pageNamed(name) as Page;
    const { stdout } = rlcli("help", ...name.split(" "));
    for (const { term } of rows) expect(stdout).toContain(`  ${term}`);
    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(JSON.parse(rlcli("explain", ...name.split(" "), "--json").stdout)).toMatchObject({ rows });
  });

  test("every variable that the sources read is on its page", () => {
    const folder = fileURLToPath(new URL("../../src", import.meta.url));
    const listed = pageNamed("environment-variables")!
      .rows.flatMap(({ term, about }) => [term, about])
      .join(" ");
    // Of every program, or examples in texts.
    const others = new Set(["HOME", "PATH", "NAME", "X"]);
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".ts") || name.endsWith(".gen.ts")) continue;
      const text = readFileSync(join(folder, name), "utf8");
      for (const [, variable = ""] of text.matchAll(/\benv\.([A-Z][A-Z0-9_]*)/g))
        if (!others.has(variable)) expect([name, variable, listed.includes(variable)]).toEqual([name, variable, true]);
    }
  });
});

describe("explain", () => {
  test("a loss: formula, options with defaults, where it is fused, an example that the schema takes", () => {
    const { stdout } = rlcli("explain", "gspo");
    for (const words of [
      "formula    −min(s·A",
      "clip_low_threshold",
      "(default 0.8)",
      "on jax with `strategy: two_pass`",
    ])
      expect(stdout).toContain(words);
    expect(JSON.parse(rlcli("explain", "loss", "gspo", "--json").stdout)).toMatchObject({ name: "gspo", runs: ["rl"] });
    expect(rlcli("explain", "gsppo").stderr).toContain("Did you mean `gspo`?");
    expect(rlcli("explain", "environment.judge").stderr.replace(/\s+/g, " ")).toContain(
      "a value of `environment.type`",
    );
    expect(rlcli("explain", "losses").stdout).toContain("ppo_critic");
  });
});
