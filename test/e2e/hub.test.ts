/** Datasets of a hub with the real program against a stand-in of the hub: plan, lock, apply, and a hub that has gone. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openTasks } from "../../src/environments/tasks.ts";
import { StandInHub } from "../hub/stand-in.ts";
import { type Ran, TestProject } from "./project.ts";

const NAME = "hf://openai/gsm8k/main/train";
const SPEC = `rlcli: 1
project: test
datasets:
  sums: { source: ${NAME}, rows: tasks }
`;
const fixture = (name: string) => readFileSync(new URL(`../fixtures/tasks/${name}`, import.meta.url));
const README = "---\nconfigs:\n- config_name: main\n  data_files: [{split: train, path: main/train-*}]\n---\n";
const files = (parquet: string) => ({ "README.md": README, "main/train-00000-of-00001.parquet": fixture(parquet) });

let hub: StandInHub;
let project: TestProject;

beforeEach(async () => {
  hub = await StandInHub.start();
  hub.push("openai/gsm8k", files("types.zstd.parquet"));
  project = new TestProject({ "rlcli.yaml": SPEC });
  Object.assign(project.env, { HF_ENDPOINT: hub.endpoint, RLCLI_CACHE: join(project.folder, "cache"), CI: undefined });
});
afterEach(async () => {
  await hub.close();
  rmSync(project.folder, { recursive: true, force: true });
});

const run = (...args: string[]): Promise<Ran> => project.start(...args).ended;
const lockFile = () => join(project.folder, "rlcli.lock");

async function rows(): Promise<unknown[]> {
  const datasets = join(project.folder, ".rlcli/datasets");
  const tasks = await openTasks(join(datasets, readdirSync(datasets)[0]!, "rows.jsonl"));
  const read = Array.from({ length: tasks.count }, (_, i) => tasks.read(i));
  tasks.close();
  return read;
}

test("plan asks and locks, apply downloads and imports, and then nobody asks any more", async () => {
  expect(await run("plan")).toMatchObject({ code: 0, out: expect.stringContaining("+ dataset.sums") });
  expect(existsSync(lockFile())).toBe(true);
  expect(hub.takeSeen().filter((seen) => seen.startsWith("store"))).toEqual([]);
  const { code, err } = await run("apply", "--auto-approve");
  expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("7 rows") });
  expect(await rows()).toHaveLength(7);
  expect((await rows())[0]).toMatchObject({
    question: "What is 0 + 0?",
    answer: "0",
    unsigned: "18446744073709551615",
  });

  await hub.close();
  Object.assign(project.env, { CI: "true" });
  expect(await run("plan", "--detailed-exitcode")).toMatchObject({ code: 0 });
  // A saved plan is of what was locked then.
  rmSync(join(project.folder, ".rlcli/datasets"), { recursive: true });
  expect(await run("plan", "-o", "plan.bin")).toMatchObject({
    code: 0,
    out: expect.stringContaining("~ dataset.sums"),
  });
  expect(await run("apply", "plan.bin")).toMatchObject({ code: 0 });
  expect(await rows()).toHaveLength(7);
});

test("a field that its rows lack is told before anything is trained, and by the next plan", async () => {
  project.write(
    "rlcli.yaml",
    `${SPEC.replace(", rows: tasks", "")}server: { backend: embedded, model: builtin:tiny }
environments:
  sums: { type: match, mode: contains, dataset: sums, question: question, answer: anwser }
runs:
  agent: { type: rl, environment: sums, loss: gspo, steps: 1, group_size: 2, groups_per_batch: 2, max_tokens: 2 }
`,
  );
  expect(await run("plan")).toMatchObject({ code: 0 });
  const applied = await run("apply", "-y");
  expect(applied).toMatchObject({ code: 1, err: expect.stringMatching(/error\[RL7101\][\s\S]*rlcli\.yaml:7:/) });
  expect(applied.err).toContain("anwser");
  expect(existsSync(join(project.folder, ".rlcli/runs"))).toBe(false);
  expect(await run("plan")).toMatchObject({ code: 1, err: expect.stringContaining("error[RL7101]") });
});

test("where CI is set nothing is locked on the way, unless that is wanted", async () => {
  Object.assign(project.env, { CI: "1" });
  const refused = await run("plan");
  expect(refused).toMatchObject({ code: 1, out: "", err: expect.stringContaining("error[RL2006]") });
  expect(refused.err).toContain("rlcli.yaml:4:");
  expect(existsSync(lockFile())).toBe(false);
  expect((await run("plan", "--no-locked")).code).toBe(0);
  rmSync(lockFile());
  Object.assign(project.env, { CI: undefined });
  expect((await run("apply", "--locked", "--auto-approve")).code).toBe(1);
});

describe("rlcli lock", () => {
  test("writes what is missing, moves what is told to, and leaves out what nothing needs", async () => {
    const first = await run("lock");
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^\+ hf:.*, 1 file, 1\d\.\d kB\n/) });
    expect((await run("lock")).out).toBe("rlcli.lock is up to date: 1 name.\n");

    const before = readFileSync(lockFile(), "utf8");
    const commit = hub.push("openai/gsm8k", files("types.gzip.parquet"));
    expect((await run("lock")).out).toContain("up to date");
    const moved = await run("lock", "--upgrade", "dataset.sums");
    expect(moved.out).toMatch(new RegExp(`^~ ${NAME}  [0-9a-f]{12} → ${commit.slice(0, 12)}\n`));
    expect(readFileSync(lockFile(), "utf8")).not.toBe(before);

    project.edit("rlcli.yaml", NAME, "local.jsonl");
    project.write("local.jsonl", "{}\n");
    const { changes } = JSON.parse((await run("lock", "--json")).out) as { changes: unknown };
    expect(changes).toMatchObject([{ name: NAME, after: null }]);
  });

  test("an upgrade that fails keeps what was there", async () => {
    await run("lock");
    const before = readFileSync(lockFile(), "utf8");
    await hub.close();
    const failed = await run("lock", "--upgrade");
    expect(failed).toMatchObject({ code: 1, err: expect.stringContaining("error[RL6020]") });
    expect(readFileSync(lockFile(), "utf8")).toBe(before);
  });

  test("what it cannot do it says", async () => {
    expect(await run("lock", "dataset.sums")).toMatchObject({
      code: 1,
      err: expect.stringContaining("lock --upgrade"),
    });
    const absent = await run("lock", "--upgrade", "dataset.absent");
    expect(absent).toMatchObject({ code: 1, err: expect.stringContaining("error[RL9009]") });
  });
});
