/**
 * A SkyRL server over an existing Ray cluster: `ray start --head` on this machine, two jax processes. One of them is killed while a run
 * trains, then the cluster itself. Slow, so only with RLCLI_TEST_ALL, and only where `setup-skyrl` has found a package to install.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../src/servers/ports.ts";
import { until } from "../e2e/project.ts";
import { canManage, newManagedProject, pidsWhere, SLOW } from "./managed.ts";

const spec = (port: number) => `rlcli: 1
project: ray
servers:
  box: { backend: jax, model: ./tiny, port: 0, gpus: 0, nodes: 2, slots: 3, max_lora_rank: 8, ray: { address: "127.0.0.1:${port}" } }
datasets:
  numbers: { source: numbers.jsonl }
  sums: { source: sums.jsonl }
environments:
  sums: { type: module, dataset: sums, module: grade.mjs }
losses:
  twice: { type: gspo, strategy: two_pass }
runs:
  count: { type: sl, server: box, dataset: numbers, steps: 40, batch_size: 4, learning_rate: 1e-3, lora_rank: 8, save_every: 5 }
  agent: { type: rl, server: box, environment: sums, loss: twice, steps: 2, group_size: 4, groups_per_batch: 2, max_tokens: 4, learning_rate: 1e-3, lora_rank: 8 }
`;

test.skipIf(!canManage)(
  "goes on after the death of a worker, and says what is wrong when the cluster is gone (needs SkyRL, RLCLI_TEST_ALL)",
  async () => {
    const port = await freePort();
    const project = newManagedProject(spec(port));
    const environment = project.ok("serve", "install", "box").trim().split("\n").at(-1) as string;
    const cluster = await startCluster(join(environment, "bin/ray"), port);

    const applying = project.start("apply", "--auto-approve");
    await project.reachesStep(8, SLOW);
    const workers = cluster.workers();
    expect(workers).toHaveLength(2);
    process.kill(workers[1]!, "SIGKILL");
    const { code, out, err } = await applying.ended;
    expect(code, `${out}\n${err}`).toBe(0);
    expect(project.record("run.count")).toMatchObject({ status: "ready", incarnation: 1, results: { step: 40 } });
    expect(project.record("run.agent")).toMatchObject({ status: "ready", results: { step: 2 } });
    expect(project.metrics().map(({ step }) => step)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    const [server] = JSON.parse(project.ok("serve", "status", "--json")).servers;
    expect(server).toMatchObject({ state: "running", restarts: 1 });
    expect(server.lastCrash.lines.join("\n")).toMatch(/The actor (died|is dead)/);
    expect(project.actions()).toEqual({});
    // None of the workers of the first life.
    await until(() => cluster.workers().every((pid) => !workers.includes(pid)), 60_000);

    project.ok("serve", "stop");
    await until(() => cluster.workers().length === 0, 60_000);
    cluster.kill();
    project.edit("rlcli.yaml", "steps: 40", "steps: 42");
    const without = await project.start("apply", "--auto-approve").ended;
    expect(without.code).toBe(1);
    expect(without.err + without.out).toContain("No Ray cluster is at");
    expect(project.actions()).toEqual({ "run.count": "resume" });
  },
  1_800_000,
);

interface Cluster {
  /** Processes of jax, in the order in which they were started. */
  workers(): readonly number[];
  kill(): void;
}

async function startCluster(ray: string, port: number): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), "ray-"));
  const env = { ...process.env, RAY_worker_niceness: "0", RAY_raylet_start_wait_time_s: "180" };
  const words = ["start", "--head", "--port", String(port), "--num-cpus", "4", "--include-dashboard=false"];
  const more = ["--object-store-memory", "200000000", "--temp-dir", folder, "--disable-usage-stats"];
  // Not over pipes: the daemons would hold them open.
  execFileSync(ray, [...words, ...more], { env, stdio: "ignore" });
  const [raylet] = pidsWhere((line) => line.includes("raylet/raylet") && line.includes(folder));
  const isChild = (environ: string) => environ.includes(`RAY_RAYLET_PID=${raylet}\0`);
  const kill = () => {
    for (const pid of pidsWhere((line, environ) => line.includes(folder) || isChild(environ)))
      process.kill(pid, "SIGKILL");
  };
  onTestFinished(() => {
    kill();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    workers: () => pidsWhere((line, environ) => line.startsWith("ray::RayJaxBackendImpl") && isChild(environ)),
    kill,
  };
}
