/** The contract of --json: every command that prints is run on a project, and what it prints is held against schemas/output.schema.json. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import { allCommands, pathOf } from "../../src/cli/teach.ts";
import { StandInHub } from "../hub/stand-in.ts";
import { WRITER } from "../hub/uploads.ts";
import { findDocker, HARBOR_FIXTURES } from "../support/docker.ts";
import { type Ran, rows, type TestProject, until } from "./project.ts";
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

/** Of a model that has learned nothing yet: what is printed is looked at, not what was learned. */
const BRIEF = ["--model", "builtin:tiny", "--steps", "1", "--group-size", "2", "--max-tokens", "4"];

interface CommandRun {
  readonly path: string;
  readonly args: readonly string[];
  /** What may be missing on a machine. */
  readonly needs?: "docker";
  /** Makes what the command is about. */
  readonly before?: (project: TestProject) => void;
  /** It goes on until it is interrupted. */
  readonly isEndless?: true;
}

/** How each command is run, in this order. */
const RUNS: readonly CommandRun[] = [
  { path: "init", args: ["made"] },
  { path: "validate", args: [] },
  { path: "lock", args: [] },
  { path: "status", args: [] },
  { path: "show", args: [] },
  { path: "output", args: [] },
  { path: "output", args: ["run.agent.checkpoint"] },
  { path: "logs", args: ["adapter"] },
  { path: "logs", args: ["agent", "--since", "1h"] },
  { path: "stop", args: [] },
  { path: "checkpoint list", args: [] },
  { path: "state list", args: [] },
  { path: "state show", args: ["run.agent"] },
  { path: "state push", args: ["recovery.json"], before: writeRecovery },
  { path: "state taint", args: ["run.agent"] },
  { path: "state untaint", args: ["run.agent"] },
  { path: "checkpoint info", args: ["agent"] },
  { path: "checkpoint set-ttl", args: ["agent@3", "--ttl", "7d"] },
  { path: "checkpoint publish", args: ["agent@3"] },
  { path: "checkpoint unpublish", args: ["agent@3"] },
  { path: "checkpoint download", args: ["agent", "-o", "weights"] },
  { path: "checkpoint push-hf", args: ["adapter", "--repo", "org/adapter"] },
  { path: "checkpoint delete", args: ["agent@1", "-y"] },
  { path: "eval", args: [] },
  { path: "rollouts", args: ["agent", "--limit", "2"] },
  { path: "regrade", args: ["agent"] },
  { path: "run list", args: [] },
  { path: "run info", args: ["agent"] },
  { path: "deployment list", args: [] },
  { path: "rollback", args: ["live", "-y"], before: moveDeployment },
  { path: "prune", args: ["--dry-run"] },
  { path: "render", args: ["--model", "builtin:tiny", "--messages", "chat.json"] },
  { path: "sample", args: ["agent", "--prompt", "hi", "--max-tokens", "2"] },
  { path: "serve start", args: [] },
  { path: "serve status", args: [] },
  { path: "serve list", args: [] },
  { path: "serve token", args: [] },
  { path: "serve logs", args: ["-n", "2"] },
  { path: "serve openai", args: ["--port", "0"], isEndless: true },
  { path: "serve install", args: ["--backend", "jax", "--base-model", "some/model"] },
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
  { path: "train rl", args: ["--dataset", "sums.jsonl", "--env", "match", "--mode", "contains", ...BRIEF] },
  { path: "train harbor", args: ["--dataset", HARBOR_FIXTURES, ...harbor, ...BRIEF], needs: "docker" },
  { path: "plan", args: ["--destroy"] },
  { path: "run finish", args: ["agent", "--at", "2"] },
  { path: "serve stop", args: [] },
  { path: "destroy", args: ["-y"] },
];

/** Why a command is not among them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  apply: "run first, below",
  import: "text",
  "env play": "text",
};

/** What an apply leaves that could not store the record of a run. */
function writeRecovery(project: TestProject): void {
  const { formatVersion, version, updatedAt, fence, ...draft } = JSON.parse(
    project.ok("state", "show", "run.agent", "--json"),
  );
  project.write("recovery.json", JSON.stringify({ formatVersion: 1, expect: version, draft }));
}

function moveDeployment(project: TestProject): void {
  project.edit("rlcli.yaml", "live: { checkpoint: agent, requires: [held] }", "live: { checkpoint: agent@3 }");
  project.ok("apply", "-y");
}

async function runOf(project: TestProject, { path, args, isEndless }: CommandRun): Promise<Ran> {
  const child = project.start(...path.split(" "), ...args, "--json");
  if (!isEndless) return child.ended;
  let said = "";
  child.stdout?.on("data", (text) => {
    said += text;
  });
  await until(() => said.endsWith("\n"));
  child.kill("SIGINT");
  return child.ended;
}

describe("--json", () => {
  let project: TestProject;
  let hub: StandInHub;
  let applied: string;
  beforeAll(async () => {
    project = rlProject();
    hub = await StandInHub.start();
    Object.assign(project.env, { HF_ENDPOINT: hub.endpoint, HF_TOKEN: WRITER, HF_HUB_OFFLINE: undefined });
    // Stands in for uv, which would download.
    const uv = new URL("../servers/skyrl/fake-uv.mjs", import.meta.url).pathname;
    Object.assign(project.env, {
      RLCLI_UV: uv,
      RLCLI_DATA: join(project.folder, "data"),
      FAKE_PYTHON: process.execPath,
    });
    project.edit("rlcli.yaml", "datasets:\n", "datasets:\n  numbers: { source: numbers.jsonl }\n");
    project.edit("rlcli.yaml", "runs:\n", "runs:\n  adapter: { type: sl, dataset: numbers, steps: 1, lora_rank: 4 }\n");
    project.edit("rlcli.yaml", "save_every: 1\n", "save_every: 1\n    keep_last: 9\n");
    project.write("numbers.jsonl", rows());
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
  afterAll(async () => {
    await project.close();
    await hub.close();
  });

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
    async ({ before, ...command }) => {
      const { path, args } = command;
      before?.(project);
      const { out, err } = await runOf(project, command);
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
