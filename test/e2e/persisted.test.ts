/** Everything that is written for others to read keeps to its schema in schemas/, members exactly. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { metricNamed } from "../../src/training/rl/metrics.ts";
import { TestProject } from "./project.ts";
import { rlProject } from "./rl-project.ts";

const folder = new URL("../../schemas/", import.meta.url).pathname;
const ajv = new Ajv2020({ strict: false });
for (const name of ["state", "plan", "journal", "run-record", "event"]) {
  ajv.addSchema(JSON.parse(readFileSync(join(folder, `${name}.schema.json`), "utf8")));
}

function check(ref: string, value: unknown): void {
  const validate = ajv.getSchema(ref) as ValidateFunction;
  expect(validate, ref).toBeDefined();
  if (!validate(value)) throw new Error(`${ref}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`);
}

const lines = (text: string): unknown[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("what rlcli writes", () => {
  let project: TestProject;
  let events: string;
  let early: string;
  beforeAll(async () => {
    project = new TestProject();
    project.edit("rlcli.yaml", "steps: 6", "steps: 6, test_size: 2, eval_every: 3");
    project.ok("plan", "-o", "create.plan");
    early = project.ok("plan", "--json");
    events = project.ok("apply", "-y", "--json");
    project.edit("rlcli.yaml", "3e-3", "1e-3");
    project.ok("plan", "-o", "replace.plan");
  });
  afterAll(() => project.close());

  const read = (path: string) => readFileSync(join(project.folder, path), "utf8");
  const inRun = (name: string) => readFileSync(join(project.runFolder("count"), name), "utf8");

  test("plans", () => {
    for (const name of ["create.plan", "replace.plan"]) check("plan.schema.json#/$defs/saved", JSON.parse(read(name)));
    for (const text of [early, project.ok("plan", "--json")]) check("plan.schema.json#/$defs/output", JSON.parse(text));
  });

  test("events, on stdout and kept", () => {
    const [file] = readdirSync(join(project.folder, ".rlcli/applies"));
    const [header, ...kept] = lines(read(`.rlcli/applies/${file}`));
    expect(header).toEqual({ formatVersion: 1 });
    expect(lines(events).length).toBeGreaterThan(kept.length);
    for (const event of [...lines(events), ...kept]) check("event.schema.json", event);
  });

  test("state records and leases", () => {
    for (const [place, ref] of [
      ["records", "record"],
      ["leases", "lease"],
    ] as const) {
      const names = readdirSync(join(project.folder, ".rlcli/state", place));
      expect(names.length).toBeGreaterThan(2);
      for (const name of names)
        check(`state.schema.json#/$defs/${ref}`, JSON.parse(read(`.rlcli/state/${place}/${name}`)).value);
    }
  });

  test.each([
    ["journal.jsonl", "journal.schema.json"],
    ["metrics.jsonl", "run-record.schema.json#/$defs/metrics"],
    ["checkpoints.jsonl", "run-record.schema.json#/$defs/checkpoint"],
    ["events.jsonl", "run-record.schema.json#/$defs/event"],
    ["wire.jsonl", "run-record.schema.json#/$defs/wire"],
  ])("a run's %s", (name, ref) => {
    const [header, ...values] = lines(inRun(name));
    expect(header).toEqual({ formatVersion: ref.endsWith("/rollout") ? 2 : 1 });
    expect(values.length).toBeGreaterThan(1);
    for (const value of values) check(ref, value);
  });

  test("a run's order and worker", () => {
    check("run-record.schema.json#/$defs/order", JSON.parse(inRun("spec.json")));
    check("run-record.schema.json#/$defs/worker", JSON.parse(inRun("worker.json")));
  });
});

describe("what a run of reinforcement learning writes", () => {
  let project: TestProject;
  let events: string;
  beforeAll(() => {
    project = rlProject();
    events = project.ok("apply", "-y", "--json");
    project.ok("run", "finish", "agent", "--at", "3");
  });
  afterAll(() => project.close());

  const inRun = (name: string) => readFileSync(join(project.runFolder("agent"), name), "utf8");

  test("events and records", () => {
    for (const event of lines(events)) check("event.schema.json", event);
    const records = join(project.folder, ".rlcli/state/records");
    for (const name of readdirSync(records))
      check("state.schema.json#/$defs/record", JSON.parse(readFileSync(join(records, name), "utf8")).value);
  });

  test.each([
    ["journal.jsonl", "journal.schema.json"],
    ["metrics.jsonl", "run-record.schema.json#/$defs/metrics"],
    ["checkpoints.jsonl", "run-record.schema.json#/$defs/checkpoint"],
    ["events.jsonl", "run-record.schema.json#/$defs/event"],
    ["wire.jsonl", "run-record.schema.json#/$defs/wire"],
    ["rollouts/000001.jsonl", "run-record.schema.json#/$defs/rollout"],
    ["evals.jsonl", "run-record.schema.json#/$defs/eval"],
    ["evals/held/000002.jsonl", "run-record.schema.json#/$defs/rollout"],
  ])("its %s", (name, ref) => {
    const [header, ...values] = lines(inRun(name));
    expect(header).toEqual({ formatVersion: ref.endsWith("/rollout") ? 2 : 1 });
    expect(values.length).toBeGreaterThan(1);
    for (const value of values) check(ref, value);
  });

  test("every metric is one that is explained", () => {
    const measured = lines(inRun("metrics.jsonl").replace(/^.*\n/, "")) as { values: Record<string, number> }[];
    const evaluated = lines(inRun("evals.jsonl").replace(/^.*\n/, "")) as { metrics: Record<string, number> }[];
    const names = new Set([
      ...measured.flatMap((l) => Object.keys(l.values)),
      ...evaluated.flatMap((l) => Object.keys(l.metrics)),
    ]);
    expect(names.size).toBeGreaterThan(20);
    expect([...names].filter((name) => metricNamed(name) === undefined)).toEqual([]);
  });

  test("its order, and its plans", () => {
    check("run-record.schema.json#/$defs/order", JSON.parse(inRun("spec.json")));
    check("plan.schema.json#/$defs/output", JSON.parse(project.ok("plan", "--json")));
  });
});
