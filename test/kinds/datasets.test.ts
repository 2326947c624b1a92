// Datasets as the planner meets them: tasks from files and from a hub, and what the lock has to do with it.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Address } from "../../src/address.ts";
import type { DatasetFacts } from "../../src/kinds/dataset.ts";
import { kinds } from "../../src/kinds/registry.ts";
import { Lock, type LockMode } from "../../src/lock.ts";
import type { Spec, SpecNode } from "../../src/spec.ts";
import { StandInHub } from "../hub/stand-in.ts";
import { World } from "./world.ts";

const SPEC = `rlcli: 1
project: test
server: { backend: embedded, model: builtin:tiny }
datasets:
  sums: { source: tasks.jsonl }
environments:
  math: { type: math, dataset: sums }
runs:
  agent: { type: rl, environment: math, steps: 4 }
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-kinds-"));
  writeFileSync(join(folder, "rlcli.yaml"), SPEC);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
const lockPath = () => join(folder, "rlcli.lock");

interface Surroundings {
  readonly env?: Record<string, string>;
  readonly mode?: LockMode;
}

/** What a kind resolves for a block. */
async function resolved(spec: Spec, address: Address, { env = {}, mode = "add" }: Surroundings = {}) {
  const node = spec.nodes.get(address) as SpecNode;
  const project = {
    project: "test",
    folder,
    dataFolder: join(folder, ".rlcli"),
    cacheFolder: join(folder, "cache"),
    env,
    lock: new Lock(lockPath(), mode),
  };
  return kinds.get(node.kind)!.resolve!(node, project, new AbortController().signal);
}

async function load(text = SPEC): Promise<Spec> {
  write("rlcli.yaml", text);
  return new World().load(join(folder, "rlcli.yaml"));
}

const digestOf = async (text: string, address: Address = "dataset.sums") =>
  ((await resolved(await load(text), address)).facts as DatasetFacts).digest;

describe("tasks", () => {
  test("a changed line replaces the run that learns from them, and says why", async () => {
    const world = new World();
    const spec = await load();
    const facts = async () => {
      const addresses: Address[] = ["dataset.sums", "environment.math"];
      const found = addresses.map(async (address) => [address, (await resolved(spec, address)).facts] as const);
      return new Map(await Promise.all(found));
    };
    write("tasks.jsonl", '{"question":"1+1?","answer":"2"}\n{"question":"2+2?","answer":"4"}\n');
    const first = world.plan(spec, { facts: await facts() });
    expect(first.changes.find(({ address }) => address === "run.agent")).toMatchObject({ action: "create" });
    world.apply(spec, first);
    const again = world.plan(spec, { facts: await facts() });
    expect(again.changes.filter(({ action }) => ["create", "replace", "update"].includes(action))).toEqual([]);

    write("tasks.jsonl", '{"question":"1+1?","answer":"2"}\n{"question":"2+2?","answer":"five"}\n');
    const { changes } = world.plan(spec, { facts: await facts() });
    const run = changes.find(({ address }) => address === "run.agent");
    expect(run).toMatchObject({ action: "replace" });
    expect(run?.reasons.join()).toContain("dataset.sums");
    expect(changes.find(({ address }) => address === "dataset.sums")).toMatchObject({ action: "update" });
  });

  test("are what an environment uses, or what is said to be; the same file as conversations is another dataset", async () => {
    write("tasks.jsonl", '{"messages":[]}\n');
    const used = await digestOf(SPEC);
    const said = SPEC.replace("tasks.jsonl }", "tasks.jsonl, rows: tasks }");
    const alone = "rlcli: 1\nproject: test\ndatasets: { sums: { source: tasks.jsonl } }\n";
    expect(await digestOf(said)).toBe(used);
    expect(await digestOf(alone)).not.toBe(used);
  });

  test.each([
    [
      "few are an error",
      3,
      [{ code: "RL6004", severity: "error", address: "dataset.sums", range: { start: { line: 3 } } }],
    ],
    ["more than were looked at a warning", 101, [{ code: "RL6004", severity: "warning" }]],
  ])("that nothing uses are taken for conversations, which they are not: %s", async (_, count, found) => {
    write("tasks.jsonl", '{"question":"1+1?","answer":"2"}\n'.repeat(count));
    const alone = "rlcli: 1\nproject: test\ndatasets: { sums: { source: tasks.jsonl } }\n";
    const { diagnostics } = await resolved(await load(alone), "dataset.sums");
    expect(diagnostics).toMatchObject(found);
    expect(diagnostics?.[0]?.detail).toMatch(/they have `question` and `answer`.*`rows: tasks`/);
    write("tasks.jsonl", '{"request":{"messages":[{"role":"user","content":"x"}]},"response":{"choices":[]}}\n');
    const [logs] = (await resolved(await load(alone), "dataset.sums")).diagnostics ?? [];
    expect(logs?.detail).toContain("`import: { format: openai, from: tasks.jsonl }`");
    for (const line of ['{"messages":[{"role":"user","content":"x"}]}\n', "{\n", ""]) {
      write("tasks.jsonl", line);
      expect((await resolved(await load(alone), "dataset.sums")).diagnostics).toEqual([]);
    }
  });

  test("an import makes none: RL6015 at its place", async () => {
    const text = SPEC.replace("source: tasks.jsonl", "import: { from: tasks.jsonl }");
    const spec = await load(text);
    await expect(resolved(spec, "dataset.sums")).rejects.toMatchObject({
      diagnostics: [{ code: "RL6015", address: "dataset.sums", range: { start: { line: 5 } } }],
    });
  });
});

describe("hf://", () => {
  const NAME = "hf://openai/gsm8k/main/train";
  const HUB = SPEC.replace("tasks.jsonl", NAME);
  let hub: StandInHub;
  let env: Record<string, string>;
  let commit: string;
  const files = (text: string) => ({
    "main/train-00000-of-00001.parquet": text,
    "README.md": "---\nconfigs:\n- config_name: main\n  data_files:\n  - {split: train, path: main/train-*}\n---\n",
  });

  beforeEach(async () => {
    hub = await StandInHub.start();
    env = { HF_ENDPOINT: hub.endpoint };
    commit = hub.push("openai/gsm8k", files("PAR1"));
  });
  afterEach(() => hub.close());

  test("is asked once; then the lock answers, also where nothing may be added, and no file is read", async () => {
    const spec = await load(HUB);
    const first = await resolved(spec, "dataset.sums", { env });
    expect(new Lock(lockPath(), "locked").get(NAME)).toMatchObject({ commit, split: "train" });
    expect(hub.takeSeen()).toHaveLength(2);
    hub.push("openai/gsm8k", files("another"));
    const second = await resolved(spec, "dataset.sums", { env, mode: "locked" });
    expect(second).toEqual(first);
    expect(hub.takeSeen()).toEqual([]);
    const { sources } = first.facts as DatasetFacts & { sources: { name: string }[] };
    expect(sources[0]?.name).toBe(`hf://openai/gsm8k@${commit.slice(0, 12)}/main/train-00000-of-00001.parquet`);
  });

  /** What the plan says of the fields that `math` needs. */
  const checked = async (text: string) => {
    const world = new World();
    const spec = await load(text);
    const addresses: Address[] = ["dataset.sums", "environment.math"];
    const facts = new Map<Address, unknown>();
    for (const address of addresses) facts.set(address, (await resolved(spec, address, { env })).facts);
    return world.plan(spec, { facts }).diagnostics;
  };

  const withColumns = (...names: readonly string[]) => {
    const features = names.map((name) => `    - { name: ${name}, dtype: string }\n`).join("");
    const info = `dataset_info:\n- config_name: other\n  features: [{ name: x }]\n- config_name: main\n  features:\n${features}`;
    return { ...files("PAR1"), "README.md": files("")["README.md"].replace(/---\n$/, `${info}---\n`) };
  };

  test("a field that its rows do not have is told before they are downloaded, also by the lock alone", async () => {
    hub.push("openai/gsm8k", withColumns("question", "solution"));
    for (const asked of ["README.md", "nothing"]) {
      expect(await checked(HUB)).toMatchObject([{ code: "RL7101", severity: "error", address: "environment.math" }]);
      expect(
        hub.takeSeen().some((one) => one.endsWith("README.md")),
        asked,
      ).toBe(asked === "README.md");
    }
    expect(new Lock(lockPath(), "locked").get(NAME)).toMatchObject({ columns: ["question", "solution"] });
    const [fault] = await checked(HUB.replace("dataset: sums }", "dataset: sums, answer: solutoin }"));
    expect(fault?.detail).toMatch(/field `solutoin`.*rows have question, solution\. Did you mean `solution`/);
    expect(await checked(HUB.replace("dataset: sums }", "dataset: sums, answer: solution }"))).toEqual([]);
  });

  test("tasks that nothing uses are told before they are downloaded", async () => {
    const alone = `rlcli: 1\nproject: test\ndatasets: { sums: { source: "${NAME}" } }\n`;
    for (const [names, codes] of [
      [["question", "answer"], ["RL6004"]],
      [["messages", "source"], []],
    ] as const) {
      rmSync(lockPath(), { force: true });
      hub.push("openai/gsm8k", withColumns(...names));
      const { diagnostics } = await resolved(await load(alone), "dataset.sums", { env });
      expect(diagnostics?.map(({ code }) => code)).toEqual(codes);
    }
  });

  test("rows that are in the cache already are looked at", async () => {
    // Small files are fetched for their digest.
    hub.push("openai/gsm8k", { "train.jsonl": '{"question":"1+1?","result":"2"}\n' });
    const found = await checked(HUB.replace("/main/train", "/default/train"));
    expect(found).toMatchObject([{ code: "RL7101", severity: "error" }]);
  });

  test("a new commit with the same files is the same dataset", async () => {
    const spec = await load(HUB);
    const first = await resolved(spec, "dataset.sums", { env });
    const newer = hub.push("openai/gsm8k", { ...files("PAR1"), "NEWS.md": "hello" });
    rmSync(lockPath());
    const second = await resolved(spec, "dataset.sums", { env });
    expect(new Lock(lockPath(), "locked").get(NAME)).toMatchObject({ commit: newer });
    expect((second.facts as DatasetFacts).digest).toBe((first.facts as DatasetFacts).digest);
  });

  test("locked: a missing name is RL2006 at its place, and the hub is not asked", async () => {
    const spec = await load(HUB);
    await expect(resolved(spec, "dataset.sums", { env, mode: "locked" })).rejects.toMatchObject({
      diagnostics: [{ code: "RL2006", address: "dataset.sums", range: { start: { line: 5 } } }],
    });
    expect(hub.takeSeen()).toEqual([]);
  });

  test("a hub that is not there is RL6020 at its place", async () => {
    const spec = await load(HUB);
    const gone = { HF_ENDPOINT: "http://127.0.0.1:1", HF_HUB_OFFLINE: "1" };
    await expect(resolved(spec, "dataset.sums", { env: gone })).rejects.toMatchObject({
      diagnostics: [{ code: "RL6020", address: "dataset.sums", range: { start: { line: 5 } } }],
    });
  });

  test("offline with the lock but without the files: the plan says so, not apply", async () => {
    const spec = await load(HUB);
    await resolved(spec, "dataset.sums", { env });
    const offline = resolved(spec, "dataset.sums", { env: { ...env, HF_HUB_OFFLINE: "1" } });
    await expect(offline).rejects.toThrow(/RL6020.*files of openai\/gsm8k/);
  });

  test("an entry that is none of ours is RL2005 and says what mends it", async () => {
    const text = JSON.stringify({ formatVersion: 1, entries: { [NAME]: { type: "hub-dataset", commit: "x" } } });
    write("rlcli.lock", text);
    const before = statSync(lockPath()).mtimeMs;
    await expect(resolved(await load(HUB), "dataset.sums", { env })).rejects.toThrow(/RL2005.*--upgrade dataset\.sums/);
    expect(statSync(lockPath()).mtimeMs).toBe(before);
    expect(readFileSync(lockPath(), "utf8")).toBe(text);
  });
});
