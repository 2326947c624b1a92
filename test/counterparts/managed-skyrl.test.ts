/**
 * SkyRL as rlcli itself installs, starts, watches and stops it: the program from end to end on a real jax server. Slow, so only with
 * RLCLI_TEST_ALL, and only where `setup-skyrl` has found a package to install.
 */
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type TestProject, until } from "../e2e/project.ts";
import { StandInHub } from "../hub/stand-in.ts";
import { WRITER } from "../hub/uploads.ts";
import { openaiPython, runCommand } from "./environment.ts";
import { canManage, killModule, newManagedProject, processesOf, SLOW } from "./managed.ts";

const SPEC = `rlcli: 1
project: skyrl
servers:
  box: { backend: jax, model: ./tiny, port: 0, gpus: 0, slots: 3, max_lora_rank: 8, auth: token }
datasets:
  numbers: { source: numbers.jsonl }
  sums: { source: sums.jsonl }
environments:
  sums: { type: module, dataset: sums, module: grade.mjs }
losses:
  twice: { type: gspo, strategy: two_pass }
runs:
  count: { type: sl, server: box, dataset: numbers, steps: 60, batch_size: 4, learning_rate: 1e-3, lora_rank: 8, save_every: 5 }
  agent: { type: rl, server: box, environment: sums, loss: twice, steps: 2, group_size: 4, groups_per_batch: 2, max_tokens: 4, learning_rate: 1e-3, lora_rank: 8 }
`;

const newProject = (): TestProject => newManagedProject(SPEC);

test.skipIf(!canManage)(
  "trains, survives its engine's death, and leaves nothing (needs SkyRL, RLCLI_TEST_ALL)",
  async () => {
    const project = newProject();
    const applying = project.start("apply", "--auto-approve");
    await until(() => existsSync(join(project.folder, ".rlcli/runs/count")), 600_000);
    await project.reachesStep(10, SLOW);
    killModule(project, "skyrl.tinker.engine");
    const { code, err } = await applying.ended;
    expect(code, err).toBe(0);
    expect(project.record("run.count")).toMatchObject({ status: "ready", results: { step: 60 } });
    expect(project.record("run.agent")).toMatchObject({ status: "ready", results: { step: 2 } });
    const [server] = JSON.parse(project.ok("serve", "status", "--json")).servers;
    expect(server).toMatchObject({ state: "running", backend: "jax", restarts: 1 });
    expect(server.lastCrash.lines.join("\n")).toContain("crashed");
    expect(project.actions()).toEqual({});

    process.kill(server.pid, "SIGKILL");
    await until(() => processesOf(project, "").length === 0, 30_000);
    expect(project.actions()).toEqual({ "server.box": "restart" });
    project.ok("apply", "--auto-approve");
    project.ok("serve", "stop");
    expect(processesOf(project, "")).toEqual([]);
    expect(project.actions()).toEqual({});
  },
  1_800_000,
);

test.skipIf(!canManage)(
  "rlcli, its worker and the API killed in turn; then the run moves to another server (needs SkyRL, RLCLI_TEST_ALL)",
  async () => {
    const project = newProject();
    const applying = project.start("apply", "--auto-approve", "--target", "run.count");
    await until(() => existsSync(join(project.folder, ".rlcli/runs/count")), 600_000);
    await project.reachesStep(6, SLOW);
    applying.kill("SIGKILL");
    await applying.ended;
    // The worker goes on without it, and nobody starts a second one.
    await project.reachesStep(12, SLOW);
    expect(project.ok("plan", "--target", "run.count")).toContain("in progress");

    process.kill(project.pid(), "SIGKILL");
    await until(() => project.actions("--target", "run.count")["run.count"] === "resume");
    const again = project.start("apply", "--auto-approve", "--target", "run.count");
    await project.reachesStep(20, SLOW);
    killModule(project, "skyrl.tinker.api");
    const { code, err } = await again.ended;
    expect(code, err).toBe(0);
    expect(project.record("run.count")).toMatchObject({ status: "ready", incarnation: 1, results: { step: 60 } });
    const steps = project.metrics().map(({ step }) => step);
    expect(steps).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));

    project.ok("serve", "stop");
    project.edit(
      "rlcli.yaml",
      "  box: {",
      "  other: { backend: jax, model: ./tiny, port: 0, gpus: 0, max_lora_rank: 8 }\n  box: {",
    );
    project.edit("rlcli.yaml", "count: { type: sl, server: box", "count: { type: sl, server: other");
    project.edit("rlcli.yaml", "steps: 60", "steps: 64");
    expect(project.ok("plan", "--target", "run.count")).toContain(
      "its checkpoints move from server.box to server.other",
    );
    project.ok("apply", "--auto-approve", "--target", "run.count");
    expect(project.record("run.count")).toMatchObject({ status: "ready", incarnation: 1, results: { step: 64 } });
    expect(project.ok("sample", "count", "--prompt", "one", "--max-tokens", "4")).toBeTypeOf("string");
    project.ok("serve", "stop", "other");
  },
  1_800_000,
);

test.skipIf(!canManage)(
  "its checkpoints: asked through OpenAI's client, downloaded, pushed to a hub (needs SkyRL, RLCLI_TEST_ALL)",
  async () => {
    const project = newProject();
    const hub = await StandInHub.start();
    onTestFinished(() => hub.close());
    Object.assign(project.env, { HF_ENDPOINT: hub.endpoint, HF_TOKEN: WRITER, HF_HUB_OFFLINE: undefined });
    project.edit("rlcli.yaml", "steps: 60", "steps: 10");
    // Not in this process' own thread: the hub answers from it.
    const ok = async (...args: string[]): Promise<string> => {
      const { code, out, err } = await project.start(...args).ended;
      expect(code, `${args.join(" ")}\n${out}\n${err}`).toBe(0);
      return out;
    };
    await ok("apply", "--auto-approve", "--target", "run.count");

    await ok("checkpoint", "download", "count", "--output", "adapter");
    const adapter = (name: string) => readFileSync(join(project.folder, "adapter", name));
    expect(JSON.parse(adapter("adapter_config.json").toString())).toMatchObject({ peft_type: "LORA", r: 8 });
    await ok("checkpoint", "push-hf", "count", "--repo", "org/count");
    const { files } = hub.uploads.repositories.get("org/count")!;
    expect(files.get("adapter_model.safetensors")?.equals(adapter("adapter_model.safetensors"))).toBe(true);
    expect(files.get("README.md")!.toString()).toContain("| Trained | LoRA adapter of rank 8 |");

    if (openaiPython === undefined) return;
    const serving = project.start("serve", "openai", "--port", "0", "--json");
    onTestFinished(() => void serving.kill("SIGKILL"));
    const [started] = await once(serving.stdout!, "data");
    const { url } = JSON.parse(String(started));
    const script = new URL("openai_model.py", import.meta.url).pathname;
    const asked = await runCommand(openaiPython, [script, url, "count"], { timeoutMs: 300_000 });
    expect(asked.code, asked.stderr).toBe(0);
    serving.kill("SIGINT");
    expect((await serving.ended).code).toBe(0);
  },
  1_800_000,
);
