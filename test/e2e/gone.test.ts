/** Files of checkpoints and records that somebody deleted: the plan says so, an apply mends what can be mended. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { rows, TestProject } from "./project.ts";
import { rlProject } from "./rl-project.ts";

const SPEC = `rlcli: 1
project: test
server: { backend: embedded, model: builtin:tiny }
datasets:
  numbers: { source: numbers.jsonl }
runs:
  count: { type: sl, dataset: numbers, steps: 2, batch_size: 4, learning_rate: 3e-3, save_every: 1 }
deployments:
  live: { checkpoint: count }
`;

function newProject(): TestProject {
  const project = new TestProject({ "rlcli.yaml": SPEC, "numbers.jsonl": rows() });
  onTestFinished(() => project.close());
  project.ok("apply", "-y");
  return project;
}

/** Deletes checkpoints of a kind by the end of their name; tells how many. */
function remove(project: TestProject, kind: "weights" | "sampler_weights", suffix: string): number {
  const folder = join(project.folder, ".rlcli/servers/default/checkpoints");
  const found = readdirSync(folder).flatMap((run) => {
    const inner = join(folder, run, kind);
    return existsSync(inner) ? readdirSync(inner).map((name) => join(inner, name)) : [];
  });
  const gone = found.filter((path) => path.endsWith(suffix));
  for (const path of gone) rmSync(path, { recursive: true });
  return gone.length;
}

const place = (project: TestProject) => project.record("deployment.live").results as { sampler: string; at: string };

test("sampler weights of the final step: saved again from its training state, and the deployment points there", () => {
  const project = newProject();
  const [before, weights] = [place(project), project.weights()];
  expect(remove(project, "sampler_weights", "-1-2")).toBe(1);
  const plan = project.ok("plan");
  expect(plan).toContain("resumed because its weights for sampling at step 2 are gone");
  expect(plan).toContain("drift: the checkpoint it points at, step 2 of run.count");
  expect(project.actions()).toEqual({ "run.count": "resume", "deployment.live": "update" });

  project.ok("apply", "-y");
  expect(project.actions()).toEqual({});
  expect(project.weights().equals(weights)).toBe(true);
  expect(place(project)).toMatchObject({ at: before.at, history: [] });
  expect(place(project).sampler).toBe(project.record("run.count").results.sampler);
  project.ok("sample", "deployment.live", "--prompt", "one", "--max-tokens", "2");
});

test("the final step whole: trained again, and the deployment points there", () => {
  const project = newProject();
  const weights = project.weights();
  expect(remove(project, "weights", "-1-2") + remove(project, "sampler_weights", "-1-2")).toBe(2);
  expect(project.actions()).toEqual({ "run.count": "resume", "deployment.live": "update" });
  project.ok("apply", "-y");
  expect(project.actions()).toEqual({});
  expect(project.weights().equals(weights)).toBe(true);
  expect(place(project).sampler).toBe(project.record("run.count").results.sampler);
});

test("what a deployment was left at: nothing can bring it back, and the plan says that it is gone", () => {
  const project = newProject();
  project.edit("rlcli.yaml", "learning_rate: 3e-3", "learning_rate: 1e-3");
  project.ok("apply", "-y");
  const places = project.ok("deployment", "list").match(/run\.count at step 2 \([0-9a-f]{12}\/1\)/g);
  expect(new Set(places).size, "the places of a history are told apart").toBe(2);
  project.ok("rollback", "live", "-y");
  const { sampler } = place(project);
  const [, run] = /^tinker:\/\/([^/]+)\//.exec(sampler) as RegExpExecArray;
  rmSync(join(project.folder, ".rlcli/servers/default/checkpoints", (run as string).replaceAll(":", "_")), {
    recursive: true,
  });
  expect(project.actions()).toEqual({});
  expect(project.ok("plan")).toContain(`drift: the checkpoint it points at, step 2 of run.count (${sampler}), is gone`);
});

test("a run record and an eval's results: both are told, neither is mistaken for something else", () => {
  const project = rlProject();
  onTestFinished(() => project.close());
  project.ok("apply", "-y");
  rmSync(join(project.folder, ".rlcli/evals"), { recursive: true });
  expect(project.ok("plan")).toContain("+ eval.held  its result is not there any more");
  rmSync(join(project.folder, ".rlcli/runs/agent"), { recursive: true });
  for (const command of ["rollouts", "regrade"]) {
    const { code, err } = project.run([command, "agent"]);
    expect(code).toBe(1);
    expect(err.replaceAll(/\s+/g, " ")).toContain("The run record of run.agent is gone");
  }
  expect(project.ok("plan")).toContain("run.agent  replaced because its run record is gone from .rlcli/runs");
  expect(project.ok("destroy", "-y")).toMatch(/\nDestroy complete: \d+ done\.\n$/);
});

test("a run finished at another step between plan and apply: the saved plan is refused, nothing is mixed up", () => {
  const project = newProject();
  project.edit(
    "rlcli.yaml",
    "deployments:",
    "  child: { type: sl, dataset: numbers, from: count, steps: 1, batch_size: 4 }\ndeployments:",
  );
  project.ok("plan", "-o", "plan.bin");
  expect(project.ok("run", "finish", "count", "--at", "1")).toContain(
    "Step 1 is now the last of run.count (instead of 2 steps)",
  );
  expect(project.ok("run", "finish", "count", "--at", "1")).toBe("Step 1 was already the last of run.count.\n");
  const refused = project.run(["apply", "plan.bin"]);
  expect(refused.code).toBe(1);
  expect(refused.err.replaceAll(/\s+/g, " ")).toContain("what run.child is to be; what deployment.live is to be.");
});
