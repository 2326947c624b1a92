/** The contract of --json: every command that prints is run on a project, and what it prints is held against schemas/output.schema.json. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import { allCommands, pathOf } from "../../src/cli/teach.ts";
import { findDocker, HARBOR_FIXTURES } from "../support/docker.ts";
import type { TestProject } from "./project.ts";
import { rlProject } from "./rl-project.ts";

interface Command {
  readonly prints: "document" | "lines" | "text";
  readonly schema?: string;
  readonly orElse?: string;
}

const folder = new URL("../../schemas/", import.meta.url).pathname;
const schemas = readdirSync(folder).filter((name) => name.endsWith(".schema.json") && name !== "rlcli.schema.json");
const ajv = new Ajv2020.default({ strict: false, allErrors: true });
for (const name of schemas) ajv.addSchema(JSON.parse(readFileSync(join(folder, name), "utf8")), name);
const output = ajv.getSchema("output.schema.json")?.schema as { "x-commands": Record<string, Command> };
const commands = output["x-commands"];

const refOf = (schema: string): string => (schema.startsWith("#") ? `output.schema.json${schema}` : schema);

function faultsOf(value: unknown, refs: readonly string[]): string[] {
  const checks = refs.map((ref) => ajv.getSchema(refOf(ref)) ?? ajv.compile({ $ref: refOf(ref) }));
  if (checks.some((check) => check(value))) return [];
  return (checks[0]?.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

const harbor = ["--include", "hello-file"];
const docker = await findDocker();

/** How each command is run, in this order; `needs` names what may be missing on a machine. */
const RUNS: readonly { readonly path: string; readonly args: readonly string[]; readonly needs?: "docker" }[] = [
  { path: "init", args: ["made"] },
  { path: "validate", args: [] },
  { path: "lock", args: [] },
  { path: "status", args: [] },
  { path: "show", args: [] },
  { path: "output", args: [] },
  { path: "output", args: ["run.agent.checkpoint"] },
  { path: "logs", args: [] },
  { path: "logs", args: ["agent", "--since", "1h"] },
  { path: "stop", args: [] },
  { path: "checkpoint list", args: [] },
  { path: "state list", args: [] },
  { path: "state show", args: ["run.agent"] },
  { path: "eval", args: [] },
  { path: "rollouts", args: ["agent", "--limit", "2"] },
  { path: "regrade", args: ["agent"] },
  { path: "run list", args: [] },
  { path: "run info", args: ["agent"] },
  { path: "deployment list", args: [] },
  { path: "prune", args: ["--dry-run"] },
  { path: "render", args: ["--model", "builtin:tiny", "--messages", "chat.json"] },
  { path: "sample", args: ["agent", "--prompt", "hi", "--max-tokens", "2"] },
  { path: "serve start", args: [] },
  { path: "serve status", args: [] },
  { path: "serve list", args: [] },
  { path: "serve token", args: [] },
  { path: "serve logs", args: ["-n", "2"] },
  { path: "doctor", args: [] },
  { path: "support", args: [] },
  { path: "session list", args: [] },
  { path: "session export-trace", args: ["agent"] },
  { path: "bench", args: ["--length", "16", "--max-tokens", "4", "--concurrency", "2", "--repeat", "1"] },
  { path: "explain", args: ["run"] },
  { path: "explain", args: ["run.steps"] },
  { path: "explain", args: ["RL1101"] },
  { path: "explain", args: ["metrics"] },
  { path: "completion", args: ["zsh"] },
  { path: "env list", args: [HARBOR_FIXTURES, ...harbor] },
  { path: "env check", args: [HARBOR_FIXTURES, ...harbor], needs: "docker" },
  { path: "env run", args: [HARBOR_FIXTURES, ...harbor, "--task", "hello-file"], needs: "docker" },
  { path: "env gc", args: ["--dry-run"], needs: "docker" },
  { path: "train sl", args: ["--dataset", "chats.jsonl", "--model", "builtin:tiny", "--steps", "1"] },
  { path: "plan", args: ["--destroy"] },
  { path: "run finish", args: ["agent", "--at", "2"] },
  { path: "serve stop", args: [] },
  { path: "destroy", args: ["-y"] },
];

/** Why a command is not among them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  apply: "run first, below",
  "state push": "recovery.test.ts: needs a disk that refused",
  rollback: "rl.test.ts: needs two deployments",
  "serve install": "downloads",
  "serve openai": "goes on until interrupted",
  "train rl": "prints what apply does",
  "train harbor": "prints what apply does",
  "checkpoint info": "server-verbs.test.ts",
  "checkpoint delete": "server-verbs.test.ts",
  "checkpoint publish": "server-verbs.test.ts",
  "checkpoint unpublish": "server-verbs.test.ts",
  "checkpoint set-ttl": "server-verbs.test.ts",
  "checkpoint download": "server-verbs.test.ts",
  "checkpoint push-hf": "needs a hub",
  import: "text",
  "env play": "text",
};

describe("--json", () => {
  let project: TestProject;
  let applied: string;
  beforeAll(() => {
    project = rlProject();
    const chat = {
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: "hello" },
      ],
    };
    project.write("chat.json", JSON.stringify(chat));
    project.write("chats.jsonl", `${JSON.stringify(chat)}\n`.repeat(8));
    applied = project.ok("apply", "-y", "--json");
  });
  afterAll(() => project.close());

  /** Checks what was printed by the contract of its command. */
  function check(path: string, out: string): void {
    const { prints, schema, orElse } = commands[path] as Command;
    const refs = [schema, orElse].filter((ref) => ref !== undefined);
    const values = prints === "lines" ? out.trim().split("\n") : [out];
    expect(values.length).toBeGreaterThan(0);
    for (const value of values) expect([value, faultsOf(JSON.parse(value), refs)]).toEqual([value, []]);
  }

  test("apply prints events", () => check("apply", applied));

  test.each(RUNS.filter(({ needs }) => needs === undefined || docker !== undefined))(
    "$path $args",
    ({ path, args }) => {
      const { out, err } = project.run([...path.split(" "), ...args, "--json"]);
      if (path === "output" && args.length > 0) expect(JSON.parse(out)).toMatch(/^tinker:/);
      else check(path, out);
      // People's words do not stray in.
      expect(err).not.toContain("\u001b");
    },
  );

  test.each([
    ["a command that is not there", ["bogus"]],
    ["a fault of the spec", ["plan", "-f", "nowhere.yaml"]],
    ["something that is not there", ["logs", "nobody"]],
  ])("%s is told as diagnostics on stdout, and nothing on stderr", (_, args) => {
    const { code, out, err } = project.run([...args, "--json"]);
    expect(code).toBe(1);
    expect(err).toBe("");
    expect(faultsOf(JSON.parse(out), ["diagnostics.schema.json"])).toEqual([]);
  });
});

test("every command has a form, and is run above or elsewhere", () => {
  const leaves = allCommands(createProgram(async () => {}))
    .filter((command) => command.commands.length === 0 && !command.name().startsWith("__"))
    .map(pathOf);
  expect(Object.keys(commands).sort()).toEqual([...leaves].sort());
  const ran = new Set([...RUNS.map(({ path }) => path), ...Object.keys(ELSEWHERE)]);
  expect(leaves.filter((leaf) => !ran.has(leaf))).toEqual([]);
});

test("the schema refuses what is not in the contract", () => {
  expect(faultsOf({ formatVersion: 2, resources: [], leases: [] }, ["#/$defs/status"])).not.toEqual([]);
  expect(faultsOf({ formatVersion: 1, resources: [{ address: "x" }], leases: [] }, ["#/$defs/status"])).not.toEqual([]);
});
