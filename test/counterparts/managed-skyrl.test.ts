/**
 * SkyRL as rlcli itself installs, starts, watches and stops it: the program from end to end on a real jax server. Slow, so only with
 * RLCLI_TEST_ALL, and only where `setup-skyrl` has found a package to install.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { rows, TestProject, until } from "../e2e/project.ts";
import { StandInHub } from "../hub/stand-in.ts";
import { WRITER } from "../hub/uploads.ts";
import { cache, openaiPython, runCommand } from "./environment.ts";

const environment = join(cache, "skyrl");
const packageFile = join(environment, "package");
const canRun =
  process.env.RLCLI_TEST_ALL === "1" && existsSync(join(environment, "complete")) && existsSync(packageFile);

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

const GRADER = `export function grade({ completion }) {
  return { reward: [...completion].reduce((sum, char) => sum + (char.codePointAt(0) % 97), 0) / 400 };
}
`;

const TASKS = Array.from(
  { length: 8 },
  (_, i) => `${JSON.stringify({ question: `${i}+1=`, answer: `${i + 1}` })}\n`,
).join("");

function newProject(): TestProject {
  const project = new TestProject({
    "rlcli.yaml": SPEC,
    "numbers.jsonl": rows(),
    "sums.jsonl": TASKS,
    "grade.mjs": GRADER,
  });
  cpSync(new URL("../fixtures/tiny-qwen3", import.meta.url), join(project.folder, "tiny"), { recursive: true });
  // The python that made the counterpart's environment is the one whose packages are known to be there.
  const python = join(environment, "bin/python");
  const version = execFileSync(python, ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], {
    encoding: "utf8",
  }).trim();
  const links = process.env.PIP_FIND_LINKS ? ["--find-links", process.env.PIP_FIND_LINKS] : [];
  const data = mkdtempSync(join(tmpdir(), "rlcli-data-"));
  Object.assign(project.env, {
    RLCLI_UV: join(environment, "bin/uv"),
    RLCLI_DATA: data,
    RLCLI_SKYRL_PACKAGE: readFileSync(packageFile, "utf8").trim(),
    RLCLI_SKYRL_PYTHON: version,
    RLCLI_SKYRL_ARGUMENTS: [...links, "torch==2.13.0", "tinker==0.24.1"].join(" "),
  });
  onTestFinished(async () => {
    project.run(["serve", "stop", "--force"]);
    await project.close();
    rmSync(data, { recursive: true, force: true });
  });
  return project;
}

/** Processes of the project's server, by the mark that they inherit. */
function processes(project: TestProject, module: string): readonly number[] {
  const mark = `RLCLI_SERVER=${join(project.folder, ".rlcli/servers/box")}\0`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const words = readFileSync(`/proc/${name}/cmdline`, "utf8");
        return (
          readFileSync(`/proc/${name}/environ`, "utf8").includes(mark) &&
          words.includes(module) &&
          !words.startsWith("uv")
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** A jax server compiles for half a minute before its first step. */
const SLOW = { timeoutMs: 600_000 };

/** Kills the Python process of a module, not the `uv run` that it was started under. */
function kill(project: TestProject, module: string): void {
  const [pid] = processes(project, module).filter(
    (pid) => !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("uv\0run"),
  );
  process.kill(pid!, "SIGKILL");
}

test.skipIf(!canRun)(
  "trains, survives its engine's death, and leaves nothing (needs SkyRL, RLCLI_TEST_ALL)",
  async () => {
    const project = newProject();
    const applying = project.start("apply", "--auto-approve");
    await until(() => existsSync(join(project.folder, ".rlcli/runs/count")), 600_000);
    await project.reachesStep(10, SLOW);
    kill(project, "skyrl.tinker.engine");
    const { code, err } = await applying.ended;
    expect(code, err).toBe(0);
    expect(project.record("run.count")).toMatchObject({ status: "ready", results: { step: 60 } });
    expect(project.record("run.agent")).toMatchObject({ status: "ready", results: { step: 2 } });
    const [server] = JSON.parse(project.ok("serve", "status", "--json")).servers;
    expect(server).toMatchObject({ state: "running", backend: "jax", restarts: 1 });
    expect(server.lastCrash.lines.join("\n")).toContain("crashed");
    expect(project.actions()).toEqual({});

    process.kill(server.pid, "SIGKILL");
    await until(() => processes(project, "").length === 0, 30_000);
    expect(project.actions()).toEqual({ "server.box": "restart" });
    project.ok("apply", "--auto-approve");
    project.ok("serve", "stop");
    expect(processes(project, "")).toEqual([]);
    expect(project.actions()).toEqual({});
  },
  1_800_000,
);

test.skipIf(!canRun)(
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
    kill(project, "skyrl.tinker.api");
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

test.skipIf(!canRun)(
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
