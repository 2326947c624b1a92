/** Runs that are given to another server: checkpoints go along, and the result is what it would have been. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { rows, TestProject } from "./project.ts";

const SPEC = `rlcli: 1
project: test
servers:
  a: { backend: embedded, model: builtin:tiny, port: 0 }
  b: { backend: embedded, model: builtin:tiny, port: 0 }
datasets:
  numbers: { source: numbers.jsonl }
runs:
  count: { type: sl, server: a, dataset: numbers, steps: 4, batch_size: 4, learning_rate: 3e-3, save_every: 2 }
`;

function newProject(): TestProject {
  const project = new TestProject({ "rlcli.yaml": SPEC, "numbers.jsonl": rows() });
  onTestFinished(() => project.close());
  return project;
}

/** Names of checkpoints of a kind in a server's folder. */
function checkpointsOn(project: TestProject, server: string, kind: string): readonly string[] {
  const folder = join(project.folder, ".rlcli/servers", server, "checkpoints");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((run) => {
    const inner = join(folder, run, kind);
    return existsSync(inner) ? readdirSync(inner) : [];
  });
}

test("a finished run moves with its checkpoints, goes on there as it would have, and can be sampled", () => {
  const project = newProject();
  project.ok("apply", "--auto-approve");
  const kept = checkpointsOn(project, "a", "weights");
  expect(kept.length).toBeGreaterThan(0);

  project.edit("rlcli.yaml", "server: a", "server: b");
  expect(project.ok("plan")).toContain("its checkpoints move from server.a to server.b");
  expect(project.actions()).toEqual({ "run.count": "update" });
  project.ok("apply", "--auto-approve");
  expect(checkpointsOn(project, "b", "weights")).toEqual(kept);
  expect(checkpointsOn(project, "a", "weights")).toEqual([]);
  expect(project.actions()).toEqual({});
  expect(project.ok("sample", "count", "--prompt", "one", "--temperature", "0", "--max-tokens", "4")).toBeTypeOf(
    "string",
  );

  project.edit("rlcli.yaml", "steps: 4", "steps: 8");
  expect(project.actions()).toEqual({ "run.count": "extend" });
  project.ok("apply", "--auto-approve");
  const straight = newProject();
  straight.edit("rlcli.yaml", "steps: 4", "steps: 8");
  straight.ok("apply", "--auto-approve");
  expect(project.weights("run.count", "b").equals(straight.weights("run.count", "a"))).toBe(true);
});

test("what a deployment may go back to moves with its run, also of an earlier generation", () => {
  const project = newProject();
  project.write("rlcli.yaml", `${SPEC.replace("steps: 4", "steps: 1")}deployments:\n  live: { checkpoint: count }\n`);
  project.ok("apply", "--auto-approve");
  project.edit("rlcli.yaml", "learning_rate: 3e-3", "learning_rate: 1e-3");
  project.ok("apply", "--auto-approve");
  const kept = checkpointsOn(project, "a", "sampler_weights");
  expect(kept.length).toBe(2);
  project.edit("rlcli.yaml", "server: a", "server: b");
  project.ok("apply", "--auto-approve");
  expect(project.actions()).toEqual({});
  expect([...checkpointsOn(project, "b", "sampler_weights")].sort()).toEqual([...kept].sort());
  project.ok("rollback", "live", "--auto-approve");
  project.ok("sample", "deployment.live", "--prompt", "one", "--max-tokens", "2");
});

test("a run starts from a checkpoint that another server keeps", () => {
  const project = newProject();
  project.edit(
    "rlcli.yaml",
    "save_every: 2 }",
    "save_every: 2 }\n  more: { type: sl, server: b, from: count, dataset: numbers, steps: 2, batch_size: 4 }",
  );
  project.ok("apply", "--auto-approve");
  expect(project.record("run.more")).toMatchObject({ status: "ready", results: { step: 2 } });
  expect(checkpointsOn(project, "a", "weights").length).toBeGreaterThan(0);
});
