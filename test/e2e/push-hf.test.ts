/** `rlcli checkpoint push-hf` against a stand-in of the hub: what arrives, what the card says and what it must not, and what goes wrong. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { StandInHub } from "../hub/stand-in.ts";
import { WRITER } from "../hub/uploads.ts";
import { type Ran, rows, TestProject } from "./project.ts";

const SPEC = `rlcli: 1
project: counting
server: { backend: embedded, model: builtin:tiny }
datasets:
  numbers: { source: numbers.jsonl }
runs:
  count: { type: sl, dataset: numbers, steps: 2, batch_size: 4, learning_rate: 3e-3, lora_rank: 4, save_every: 2 }
`;

let project: TestProject;
let hub: StandInHub;
beforeAll(async () => {
  project = new TestProject({ "rlcli.yaml": SPEC, "numbers.jsonl": rows() });
  hub = await StandInHub.start();
  Object.assign(project.env, { HF_ENDPOINT: hub.endpoint, HF_TOKEN: WRITER, HF_HUB_OFFLINE: undefined });
  project.ok("apply", "-y");
});
afterEach(() => {
  hub.fault = () => undefined;
  project.env.HF_TOKEN = WRITER;
});
afterAll(async () => {
  await project.close();
  await hub.close();
});

/** Not in this process' own thread: the hub answers from it. */
const push = (...args: string[]): Promise<Ran> => project.start("checkpoint", "push-hf", ...args).ended;

test("an adapter arrives whole, in a private repository, with a card that tells how it was made and nothing else", async () => {
  const { code, out, err } = await push("count", "--repo", "org/count-lora", "--json");
  expect(code, err).toBe(0);
  const told = JSON.parse(out);
  expect(told).toMatchObject({ repository: "org/count-lora", commit: expect.stringMatching(/^[0-9a-f]{40}$/) });
  const { isPrivate, files, messages } = hub.uploads.repositories.get("org/count-lora")!;
  expect(isPrivate).toBe(true);
  expect(messages).toEqual(["Upload run.count at step 2"]);
  expect([...files.keys()].sort()).toEqual([...told.files].sort());
  expect([...files.keys()]).toEqual(
    expect.arrayContaining(["README.md", "adapter_config.json", "adapter_model.safetensors"]),
  );
  expect(files.has("checkpoint.json")).toBe(false);
  const card = files.get("README.md")!.toString();
  expect(card).toMatch(/^---\nlibrary_name: peft\n/);
  expect(card).toContain("| Trained | LoRA adapter of rank 4 |");
  expect(card).toContain("| Method | supervised fine-tuning |");
  expect(card).toContain("| Steps | 2 |");
  expect(card).toMatch(/\| Dataset \| dataset\.numbers, `sha256:[0-9a-f]{64}` \|/);
  // Neither a row of the data, nor a path of this machine, nor the token.
  const config = JSON.parse(files.get("adapter_config.json")!.toString());
  expect(config.base_model_name_or_path).not.toContain("/");
  for (const [name, bytes] of files)
    for (const secret of [project.folder, WRITER, "/tmp/", '"one"'])
      if (!name.startsWith("tokenizer"))
        expect(bytes.toString("latin1").includes(secret), `${name}: ${secret}`).toBe(false);
  expect(hub.uploads.sentBytes).toBe(told.sentBytes);
});

test("what the hub has already is not sent again; a pull request; a repository's own card stays", async () => {
  const before = hub.uploads.sentBytes;
  hub.uploads.repositories.get("org/count-lora")!.files.set("README.md", Buffer.from("mine"));
  const { code, out, err } = await push("count", "-r", "org/count-lora", "--create-pr", "--no-card", "--quiet");
  expect(code, err).toBe(0);
  expect(out).toBe("https://hub.example/pr/1\n");
  expect(hub.uploads.sentBytes).toBe(before);
  expect(hub.uploads.repositories.get("org/count-lora")!.files.get("README.md")!.toString()).toBe("mine");
});

test("a training state by its path, in parts where it is long, through a hub that stumbles", async () => {
  const [{ training }] = JSON.parse(project.ok("checkpoint", "list", "--json")).checkpoints;
  let stumbles = 0;
  hub.fault = () => (++stumbles % 3 === 0 ? { status: 503 } : undefined);
  const { code, err } = await push(training, "--repo", "org/state", "--public");
  expect(code, err).toBe(0);
  expect(err).toContain("training state");
  const { isPrivate, files } = hub.uploads.repositories.get("org/state")!;
  expect(isPrivate).toBe(false);
  expect([...files.values()].some((bytes) => bytes.length > 20_000)).toBe(true);
});

test("without a token, with one that may not write, and with a hub that is not there, nothing is half done", async () => {
  project.env.HF_TOKEN = undefined;
  expect((await push("count", "--repo", "org/other")).err).toContain("HF_TOKEN is not set");
  project.env.HF_TOKEN = "hf_reader";
  const refused = await push("count", "--repo", "org/other");
  expect(refused.code).toBe(1);
  expect(refused.err).toMatch(/RL9024[\s\S]*may not\s+write/);
  expect(refused.err).not.toContain("hf_reader");
  expect(hub.uploads.repositories.has("org/other")).toBe(false);
  expect((await push("count", "--repo", "no-organisation")).err).toContain("RL9003");
});
