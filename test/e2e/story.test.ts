/** The main job as a user meets it: apply, nothing left, then what each edit means. One project, in order. */
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rows, SPEC, TestProject } from "./project.ts";

describe("the story of a spec", () => {
  let project: TestProject;
  beforeAll(() => {
    project = new TestProject();
  });
  afterAll(() => project.close());

  test("plan shows three things to create and exits 2", () => {
    const { code, out } = project.run(["plan", "--detailed-exitcode"]);
    expect(code).toBe(2);
    expect(out).toContain("Plan: 3 to create.");
    expect(readdirSync(project.folder).sort()).toEqual(["numbers.jsonl", "rlcli.yaml"]);
  });

  test("without a terminal apply wants to be told, and changes nothing", () => {
    const { code, err } = project.run(["apply"]);
    expect(code).toBe(1);
    expect(err).toContain("RL9008");
    expect(project.actions()).toEqual({
      "server.default": "create",
      "dataset.numbers": "create",
      "run.count": "create",
    });
  });

  test("apply trains", () => {
    const out = project.ok("apply", "-y");
    expect(out).toContain("Apply complete: 3 done.");
    expect(project.record("run.count")).toMatchObject({ status: "ready", results: { step: 6 } });
  });

  test("then nothing is left to do", () => {
    const { code, out } = project.run(["plan", "--detailed-exitcode"]);
    expect(out).toContain("No changes.");
    expect(code).toBe(0);
    expect(project.ok("apply", "-y")).toContain("No changes.");
  });

  test("a learning rate replaces the run only; the old generation comes back without training", () => {
    project.edit("rlcli.yaml", "3e-3", "1e-3");
    expect(project.actions()).toEqual({ "run.count": "replace" });
    const before = project.weights();
    project.ok("apply", "-y");
    expect(project.weights().equals(before)).toBe(false);
    project.edit("rlcli.yaml", "1e-3", "3e-3");
    expect(project.actions()).toEqual({ "run.count": "restore" });
    // Nothing is trained, so no curve is drawn.
    expect(project.ok("apply", "-y")).not.toContain("loss of run.count");
    expect(project.weights().equals(before)).toBe(true);
    expect(project.actions()).toEqual({});
  });

  test("more steps extend, and a straight run ends with the same weights", async () => {
    project.edit("rlcli.yaml", "steps: 6", "steps: 9");
    expect(project.actions()).toEqual({ "run.count": "extend" });
    project.ok("apply", "-y");
    const straight = new TestProject({ "rlcli.yaml": SPEC.replace("steps: 6", "steps: 9"), "numbers.jsonl": rows() });
    try {
      straight.ok("apply", "-y");
      expect(project.weights().equals(straight.weights())).toBe(true);
    } finally {
      await straight.close();
    }
  });

  test("fewer steps go back to a kept checkpoint", () => {
    project.edit("rlcli.yaml", "steps: 9", "steps: 6");
    expect(project.actions()).toEqual({ "run.count": "restore" });
    project.ok("apply", "-y");
    expect(project.actions()).toEqual({});
  });

  test("a changed line of the dataset replaces the run and the plan names the dataset", () => {
    project.write("numbers.jsonl", rows().replace("one", "uno"));
    const { out } = project.run(["plan"]);
    expect(out).toContain("replaced because dataset.numbers changed");
    expect(project.actions()).toEqual({ "dataset.numbers": "update", "run.count": "replace" });
    project.write("numbers.jsonl", rows());
    expect(project.actions()).toEqual({});
  });

  test("a killed server is drift, and apply mends it; a stopped one is no change", () => {
    project.ok("serve", "start");
    process.kill(project.serverPid(), "SIGKILL");
    const { out } = project.run(["plan"]);
    expect(out).toContain("died without a clean stop");
    expect(project.actions()).toEqual({ "server.default": "restart" });
    project.ok("apply", "-y");
    expect(project.actions()).toEqual({});
    project.ok("serve", "stop");
    expect(project.actions()).toEqual({});
  });

  test("a server can be stopped though its spec is broken or has it no more", () => {
    for (const [spec, words] of [
      ["rlcli: 1\nproject: [", []],
      [SPEC.replace(/server:.*\n/, ""), ["default"]],
    ] as const) {
      project.write("rlcli.yaml", SPEC);
      project.ok("serve", "start");
      project.write("rlcli.yaml", spec);
      expect(project.ok("serve", "stop", ...words)).toContain("server.default has stopped");
      expect(project.run(["serve", "stop", ...words]).err).toMatch(/error\[RL/);
    }
    project.write("rlcli.yaml", SPEC);
    expect(project.actions()).toEqual({});
  });

  test("other commands say what is there", () => {
    expect(project.ok("status")).toMatch(/run\.count\s+ready\s+step 6/);
    expect(project.ok("state", "list").split("\n")).toEqual(["dataset.numbers", "run.count", "server.default", ""]);
    expect(project.ok("output", "run.count.checkpoint")).toMatch(/^tinker:\/\/\S+\/sampler_weights\/\S+\n$/);
    expect(project.ok("checkpoint", "list")).toContain("run.count@6");
    expect(project.ok("logs", "count")).toContain("complete at step");
    expect(project.ok("show", "run.count")).toContain("learning_rate");
    expect(project.ok("sample", "count", "--prompt", "one", "--max-tokens", "4", "--temperature", "0")).toMatch(/\n$/);
  });

  test("what is remembered is found beside the spec from anywhere, though it does not load", () => {
    const spec = join(project.folder, "rlcli.yaml");
    const elsewhere = (...args: string[]) => project.run(["-C", tmpdir(), ...args, "-f", spec]);
    const known = project.ok("state", "list");
    project.write("rlcli.yaml", "rlcli: 1\nproject: [");
    expect(elsewhere("state", "list")).toMatchObject({ code: 0, out: known });
    expect(elsewhere("output", "run.count.step").out).toBe("6\n");
    expect(elsewhere("serve", "stop").out).toContain("server.default has stopped");
    expect(elsewhere("serve", "stop").err).toContain("RL1003");
    project.write("rlcli.yaml", SPEC);
    expect(elsewhere("state", "list").out).toBe(known);
    const misspelt = project.run(["-C", tmpdir(), "state", "list", "-f", "no-such-folder/rlcli.yaml"]);
    expect(misspelt.err).toContain("RL1001");
    expect(misspelt.code).toBe(1);
  });

  test("a saved plan is applied as it is, and refused once an input has changed", () => {
    project.edit("rlcli.yaml", "steps: 6", "steps: 8");
    project.ok("plan", "-o", "plan.bin");
    project.write("numbers.jsonl", rows(["other"]));
    const stale = project.run(["apply", "plan.bin"]);
    expect(stale.code).toBe(1);
    expect(stale.err).toContain("RL2002");
    expect(stale.err).toContain("numbers.jsonl");
    project.write("numbers.jsonl", rows());
    project.ok("apply", "plan.bin");
    expect(project.record("run.count").results.step).toBe(8);
    const again = project.run(["apply", "plan.bin"]);
    expect(again.err.replaceAll(/\s+/g, " ")).toContain("the record of run.count");
  });

  test("--replace trains it again from the beginning", () => {
    expect(project.actions("--replace", "run.count")).toEqual({ "run.count": "replace" });
    project.ok("apply", "-y", "--replace", "run.count");
    expect(project.record("run.count")).toMatchObject({ incarnation: 2, results: { step: 8 } });
  });

  test("a taint has the next apply train it again, once, and can be taken back", () => {
    project.ok("state", "taint", "run.count");
    expect(project.ok("show", "run.count")).toMatch(/status +ready, tainted/);
    expect(project.ok("plan")).toContain("replaced because it is tainted");
    project.ok("state", "untaint", "run.count");
    expect(project.actions()).toEqual({});
    project.ok("state", "taint", "run.count");
    project.ok("apply", "-y");
    expect(project.record("run.count")).toMatchObject({ incarnation: 3, results: { step: 8 } });
    expect(project.actions()).toEqual({});
    expect(project.run(["state", "taint", "run.cont"]).err).toContain("run.count");
  });

  test("prune says what and how much, and takes only that", () => {
    const dry = project.ok("prune", "--dry-run", "--keep-generations", "0");
    expect(dry).toMatch(/\d+ to delete, [\d.]+ [kM]B/);
    project.ok("prune", "-y", "--keep-generations", "0");
    expect(project.ok("prune", "--dry-run", "--keep-generations", "0")).toContain("Nothing to prune.");
    expect(project.actions()).toEqual({});
  });

  test("a run that left the spec is forgotten and its weights are kept", () => {
    project.write("rlcli.yaml", SPEC.slice(0, SPEC.indexOf("runs:")));
    expect(project.actions()).toEqual({ "run.count": "forget" });
    project.ok("apply", "-y");
    expect(project.ok("checkpoint", "list", "count")).toContain("forgotten");
    expect(project.ok("prune", "--dry-run")).not.toContain("run.count");
    expect(project.ok("prune", "--dry-run", "--forgotten")).toMatch(
      /run\.count@6 .* [1-9][\d.]* [kM]B {2}its run is forgotten/,
    );
    project.write("rlcli.yaml", SPEC.replace("steps: 6", "steps: 8"));
    expect(project.actions()).toEqual({ "run.count": "restore" });
    project.ok("apply", "-y");
  });

  test("destroy stops the server and forgets everything; with --weights nothing of the run is left", () => {
    project.ok("serve", "start");
    project.ok("destroy", "-y", "--weights");
    expect(project.ok("state", "list")).toBe("");
    expect(project.run(["serve", "status"]).out).toContain("stopped");
    expect(readdirSync(join(project.folder, ".rlcli/runs"))).toEqual([]);
  });

  test("nothing secret is on disk beyond the runtime file", () => {
    project.ok("serve", "start");
    const { token } = JSON.parse(readFileSync(join(project.folder, ".rlcli/servers/default/runtime.json"), "utf8"));
    const holders = readdirSync(join(project.folder, ".rlcli"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(token))
      .map((entry) => entry.name);
    expect(holders).toEqual(["runtime.json"]);
  });
});
