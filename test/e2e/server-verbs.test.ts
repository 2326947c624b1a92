/** `checkpoint`, `run` and `session` on a server of ours, by the spec and by --base-url. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TraceFile } from "../../src/trace.ts";
import { rows, SPEC, TestProject } from "./project.ts";

let project: TestProject;
beforeAll(() => {
  project = new TestProject({
    "rlcli.yaml": `${SPEC}deployments:\n  live: { checkpoint: count@4 }\n`,
    "numbers.jsonl": rows(),
  });
  project.ok("apply", "-y");
});
afterAll(() => project.close());

const lines = (text: string) => text.trim().split("\n").filter(Boolean);
const json = (...args: string[]) => JSON.parse(project.ok(...args, "--json"));
const where = () => {
  const { url } = JSON.parse(readFileSync(join(project.folder, ".rlcli/servers/default/runtime.json"), "utf8"));
  return url as string;
};

/** What Perfetto's importer of this format demands: known phases, whole times, spans of a track that nest. */
function readTrace(file: string): TraceFile {
  const trace = JSON.parse(readFileSync(join(project.folder, file), "utf8")) as TraceFile;
  const tracks = new Map<number, number>();
  const spans = trace.traceEvents.filter(({ ph }) => ph === "X").sort((a, b) => a.ts! - b.ts!);
  for (const { ts, dur, tid } of spans) {
    expect([Number.isSafeInteger(ts), Number.isSafeInteger(dur), dur! >= 0]).toEqual([true, true, true]);
    expect(ts).toBeGreaterThanOrEqual(tracks.get(tid!) ?? 0);
    tracks.set(tid!, ts! + dur!);
  }
  const named = new Set(trace.traceEvents.filter(({ name }) => name === "thread_name").map(({ tid }) => tid));
  for (const { ph, tid } of trace.traceEvents) {
    expect("MXiC").toContain(ph);
    if (ph === "X" || ph === "i") expect(named.has(tid)).toBe(true);
  }
  return trace;
}

describe("lists", () => {
  test("a table for people, paths for pipes, JSON for programs, and what the server itself keeps", () => {
    const table = project.ok("checkpoint", "list");
    expect(lines(table)[0]).toMatch(/^step +generation +checkpoint +is$/);
    expect(table).toMatch(/run\.count@4 .*deployment\.live/);
    const paths = lines(project.ok("checkpoint", "list", "-q"));
    expect(paths).toEqual(json("checkpoint", "list").checkpoints.map((row: any) => row.sampler ?? row.training));
    const kept = lines(project.ok("checkpoint", "list", "--server", "default", "--quiet"));
    expect(kept).toEqual(expect.arrayContaining(paths));
    expect(json("run", "list").runs[0].address).toBe("run.count");
    expect(project.ok("run", "list", "-q")).toBe("run.count\n");
    const [id] = lines(project.ok("run", "list", "--server", "default", "-q"));
    expect(json("run", "info", id!, "--server", "default")).toMatchObject({ runId: id, baseModel: "builtin:tiny" });
  });

  test("by --base-url, with the key from its variable or a refusal that names the server", () => {
    const ran = project.run(["checkpoint", "list", "--base-url", where(), "--model", "builtin:tiny", "-q"]);
    expect(ran.code).toBe(1);
    expect(ran.err).toContain("401");
    project.env.TINKER_API_KEY = project.ok("serve", "token").trim();
    const kept = project.ok("checkpoint", "list", "--base-url", where(), "-q");
    expect(kept).toBe(project.ok("checkpoint", "list", "--server", "default", "-q"));
    delete project.env.TINKER_API_KEY;
    expect(
      project.run(["session", "list", "--base-url", "http://127.0.0.1:1", "--model", "builtin:tiny"]).err,
    ).toContain("RL5013");
  });
});

describe("one checkpoint", () => {
  test("is described, kept for a time, published, and taken back", () => {
    const [training, sampler] = json("checkpoint", "info", "count").checkpoints;
    expect(training).toMatchObject({ type: "training", baseModel: "builtin:tiny", loraRank: 0, isPublic: false });
    expect(sampler.tinkerPath).toContain("/sampler_weights/");
    project.ok("checkpoint", "set-ttl", sampler.tinkerPath, "--ttl", "7d");
    const { expiresAt } = json("checkpoint", "info", sampler.tinkerPath).checkpoints[0];
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
    project.ok("checkpoint", "set-ttl", sampler.tinkerPath, "--never");
    project.ok("checkpoint", "publish", sampler.tinkerPath);
    expect(json("checkpoint", "info", sampler.tinkerPath).checkpoints[0]).toMatchObject({ isPublic: true });
    project.ok("checkpoint", "unpublish", sampler.tinkerPath);
    const after = json("checkpoint", "info", sampler.tinkerPath).checkpoints[0];
    expect(after.isPublic).toBe(false);
    expect(after).not.toHaveProperty("expiresAt");
    expect(project.run(["checkpoint", "set-ttl", "count", "--ttl", "soon"]).err).toContain("RL9003");
  });

  test("is downloaded whole, or not at all, and never over something", () => {
    project.ok("checkpoint", "download", "count", "-o", "weights");
    expect(readdirSync(join(project.folder, "weights"))).toEqual(
      expect.arrayContaining(["config.json", "model.safetensors", "tokenizer.json"]),
    );
    mkdirSync(join(project.folder, "mine"));
    expect(project.run(["checkpoint", "download", "count", "-o", "mine"]).err).toContain("RL9004");
    project.ok("checkpoint", "download", "count", "--training", "--archive", "-o", "state.tar");
    expect(readFileSync(join(project.folder, "state.tar")).subarray(257, 262).toString()).toBe("ustar");
    const absent = "tinker://nobody:train:0/weights/x";
    const { code, err } = project.run(["checkpoint", "download", absent, "-o", "absent"]);
    expect(code, err).toBe(1);
    expect(existsSync(join(project.folder, "absent"))).toBe(false);
    expect(project.run(["checkpoint", "info", absent]).err).toContain("RL9009");
    expect(project.run(["checkpoint", "info", "cuont"]).err).toContain("Did you mean `run.count`?");
  });

  test("is deleted when asked for, not when something stands on it", () => {
    for (const needed of ["count", "deployment.live", "count@4"])
      expect(project.run(["checkpoint", "delete", needed, "-y"]).err).toContain("RL9022");
    expect(project.run(["checkpoint", "delete", "count@2"]).err).toContain("RL9008");
    const [two] = json("checkpoint", "list").checkpoints.filter(({ step }: { step: number }) => step === 2);
    expect(project.ok("checkpoint", "delete", "count@2", "-y")).toBe("Deleted 1.\n");
    expect(project.ok("checkpoint", "delete", two.training, "-y")).toContain("1 were gone already");
    expect(json("checkpoint", "list").checkpoints.map(({ step }: { step: number }) => step)).toEqual([4, 6]);
    expect(project.actions()).toEqual({});
  });
});

test("`@best` of a run that nothing judged says why there is none, and what would tell", () => {
  const { code, err } = project.run(["sample", "count@best", "--prompt", "one"]);
  const said = err.replaceAll(/\s+/g, " ");
  expect(code).toBe(1);
  expect(said).toContain("count@best has no checkpoint. Nothing tells which of its");
  expect(said).toContain("it held out no rows while it trained. Give it `test_size`");
  expect(said).toContain("`count@last`");
});

describe("session export-trace", () => {
  test("of a run: its phases, steps, saves and curves", () => {
    project.ok("session", "export-trace", "count", "-o", "run.json");
    const { traceEvents } = readTrace("run.json");
    const spans = traceEvents
      .filter(({ ph }) => ph === "X")
      .map(({ cat, name }) => `${cat?.replace(/ \(\d\)/, "")}/${name}`);
    expect(spans).toEqual(expect.arrayContaining(["phases/training", "steps/step 1", "steps/step 6", "saves/step 6"]));
    expect(traceEvents.filter(({ ph, name }) => ph === "C" && name === "loss")).toHaveLength(6);
    writeFileSync(join(project.folder, "taken.json"), "mine");
    expect(project.run(["session", "export-trace", "count", "-o", "taken.json"]).err).toContain("RL9004");
  });

  test("of a session: its requests, as the embedded server saw them", () => {
    project.ok("sample", "count", "--prompt", "one", "--max-tokens", "4", "-n", "3");
    const sessions = json("session", "list").sessions;
    expect(sessions[0]).toMatchObject({ samplers: 1 });
    expect(lines(project.ok("session", "list", "-q"))).toEqual(sessions.map(({ id }: { id: string }) => id));
    project.ok("session", "export-trace", sessions[0].id, "-o", "session.json");
    const spans = readTrace("session.json").traceEvents.filter(({ ph }) => ph === "X");
    expect(spans.map(({ name }) => name)).toEqual(["asample", "asample", "asample"]);
    expect(spans.every(({ args }) => args!.outcome === "done")).toBe(true);
    expect(project.run(["session", "export-trace", "session_none"]).err).toContain("RL5013");
  });
});
