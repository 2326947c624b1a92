// What do sandboxes cost on this machine's Docker daemon, beside the bare API and beside `docker run`? Five questions, each with
// the two sides taken in turns, so that a machine whose speed drifts slows both:
//
//   exec     one command in a running sandbox, beside the API's create, start (read to its end) and inspect of the same command
//   start    from a built image to a sandbox in which a command can run, beside the API's create and start; and a sandbox that
//            was expected, from the moment it is asked for
//   alive    64 sandboxes at once, each of which runs a command
//   trials   200 whole trials of a task (solution and tests) in rounds, beside as many `docker run --rm` of solution and tests
//            in one command, equally many at once
//   left     containers, networks, volumes and nameless images of ours on the daemon before and after
//
//   node benchmarks/sandbox.bench.mjs [--check]    needs a Docker daemon; --check fails where a bound is missed
import { execFile, spawnSync } from "node:child_process";
import { setMaxListeners } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { median, writeReceipt } from "./receipt.mjs";
import { loadSources } from "./sources.mjs";

const MOST_EXEC_RATIO = 1.3;
const MOST_START_MS = 1000;
const EXECS = 60;
const STARTS = 15;
const ALIVE = 64;
const TRIALS = 200;
const ROUNDS = 10;
/** Trials at once, on both sides. */
const AT_ONCE = 8;
const TASK = fileURLToPath(new URL("../test/fixtures/harbor/hello-file", import.meta.url));
const MAKE_BASE = fileURLToPath(new URL("../test/fixtures/harbor/make-base-image", import.meta.url));
const IMAGE = "rlcli-test/base:1";

if (spawnSync(MAKE_BASE, { stdio: "inherit" }).status !== 0) throw new Error("the base image cannot be made");
const { openDocker, Trial, checkTrial, loadTask } = await loadSources([
  "src/environments/sandbox/docker.ts",
  "src/environments/harbor/trial.ts",
  "src/environments/harbor/oracle.ts",
  "src/environments/harbor/task.ts",
]);
const cacheFolder = mkdtempSync(join(tmpdir(), "rlcli-sandbox-bench-"));
const labels = { cacheFolder, env: process.env, project: "benchmark", run: "sandbox.bench" };
const order = {
  label: "bench",
  image: IMAGE,
  env: {},
  memoryBytes: 256 << 20,
  pids: 256,
  network: "public",
  security: "compat",
  lifetimeMs: 1_800_000,
  startTimeoutMs: 120_000,
};

async function timed(work) {
  const began = performance.now();
  const result = await work();
  return { ms: performance.now() - began, result };
}

const tenths = (values) => values.map((value) => Number(value.toFixed(1)));
const summary = (values) => ({ medianMs: Number(median(values).toFixed(1)), ms: tenths(values) });
const ratio = (ours, theirs) => Number((median(ours) / median(theirs)).toFixed(3));

/** Times of all sides, taken in turns, and each side first equally often. */
async function inTurns(rounds, sides) {
  const times = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    const names = Object.keys(sides);
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(round + turn) % names.length];
      times[name].push(await sides[name]());
    }
  }
  return times;
}

async function drain(stream) {
  for await (const chunk of stream) if (chunk.length < 0) throw new Error("never");
}

const host = await openDocker({ ...labels, concurrency: ALIVE });
const { docker } = host;

/** What is there of ours: others may use the same daemon at the same time. */
async function counts() {
  const filters = { label: ["dev.rlcli.managed"] };
  const [containers, networks, volumes, dangling] = await Promise.all([
    docker.listContainers({ all: true, filters: { label: ["dev.rlcli.run=sandbox.bench"] } }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters: JSON.stringify(filters) }),
    docker.listImages({ filters: JSON.stringify({ ...filters, dangling: ["true"] }) }),
  ]);
  return {
    containers: containers.length,
    networks: networks.length,
    volumes: (volumes.Volumes ?? []).length,
    danglingImages: dangling.length,
  };
}

async function execs() {
  const sandbox = await host.start(order);
  const container = docker.getContainer(sandbox.name);
  const ours = async () => (await timed(() => sandbox.run({ command: "true", timeoutMs: 60_000 }))).ms;
  const bare = async () =>
    (
      await timed(async () => {
        const exec = await container.exec({ Cmd: ["bash", "-c", "true"], AttachStdout: true, AttachStderr: true });
        await drain(await exec.start({ Detach: false, Tty: false }));
        await exec.inspect();
      })
    ).ms;
  for (let warmUp = 0; warmUp < 5; warmUp += 1) {
    await ours();
    await bare();
  }
  const times = await inTurns(EXECS, { ours, bare });
  await sandbox.close();
  return {
    bound: MOST_EXEC_RATIO,
    ratio: ratio(times.ours, times.bare),
    ours: summary(times.ours),
    bare: summary(times.bare),
  };
}

async function starts() {
  const ours = async () => {
    const { ms, result } = await timed(() => host.start(order));
    await result.close();
    return ms;
  };
  const bare = async () => {
    const { ms, result } = await timed(async () => {
      const { memoryBytes: Memory, pids: PidsLimit } = order;
      const HostConfig = { Init: true, AutoRemove: true, Memory, MemorySwap: Memory, PidsLimit, LogConfig: NO_LOGS };
      const container = await docker.createContainer({ Image: IMAGE, Cmd: ["sleep", "1800"], HostConfig });
      await container.start();
      return container;
    });
    await result.remove({ force: true });
    return ms;
  };
  const expected = async () => {
    const ahead = host.expect(order);
    while ((await running()) === 0) await sleep(50);
    const { ms, result } = await timed(() => ahead.start());
    await result.close();
    return ms;
  };
  const times = await inTurns(STARTS, { ours, bare, expected });
  return {
    boundMs: MOST_START_MS,
    ratio: ratio(times.ours, times.bare),
    ours: summary(times.ours),
    bare: summary(times.bare),
    expected: summary(times.expected),
  };
}

/** Sandboxes of this benchmark that run. */
async function running() {
  return (await docker.listContainers({ filters: { label: ["dev.rlcli.run=sandbox.bench"] } })).length;
}

const NO_LOGS = { Type: "none", Config: {} };

async function alive() {
  const all = Array.from({ length: ALIVE });
  const started = await timed(() => Promise.allSettled(all.map(() => host.start(order))));
  const boxes = started.result.flatMap(({ value }) => (value ? [value] : []));
  const seen = await running();
  const ran = await timed(() =>
    Promise.allSettled(boxes.map((box) => box.run({ command: "echo here", timeoutMs: 120_000 }))),
  );
  const answered = ran.result.filter(({ value }) => value?.stdout.text === "here\n").length;
  const closed = await timed(() => Promise.allSettled(boxes.map((box) => box.close())));
  const failures = [...started.result, ...ran.result, ...closed.result].flatMap(({ reason }) =>
    reason ? [String(reason)] : [],
  );
  return {
    sandboxes: ALIVE,
    running: seen,
    answered,
    failures,
    startMs: Math.round(started.ms),
    commandMs: Math.round(ran.ms),
    closeMs: Math.round(closed.ms),
  };
}

/** As many times, so many at once; gives what failed. */
async function many(count, work) {
  const failures = [];
  let next = 0;
  const one = async () => {
    while (next++ < count) await work().catch((error) => failures.push(String(error)));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return failures;
}

async function trials() {
  const { task } = loadTask(TASK);
  const limited = await openDocker({ ...labels, concurrency: AT_ONCE });
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const settings = {
    memoryBytes: order.memoryBytes,
    pids: order.pids,
    network: "task",
    security: "compat",
    lifetimeMs: order.lifetimeMs,
    commandTimeoutMs: 60_000,
    agentTimeoutMs: 120_000,
  };
  const image = await limited.image({ label: "hello-file", context: `${TASK}/environment`, timeoutMs: 120_000 });
  const failures = [];
  const trial = async () => {
    const made = new Trial(task, { host: limited, settings, env: process.env, signal });
    try {
      const { task: rewards } = await checkTrial(made, "oracle", signal);
      if (rewards.reward !== 1) throw new Error(`reward ${JSON.stringify(rewards)}`);
    } finally {
      await made.close();
    }
  };
  const script = `${readFileSync(`${TASK}/solution/solve.sh`, "utf8")}\n${readFileSync(`${TASK}/tests/test.sh`, "utf8")}`;
  const command = `mkdir -p /logs/verifier; ${script}\ncat /logs/verifier/reward.txt`;
  const plain = async () => {
    const flags = ["run", "--rm", "--network", "none", "--memory", "256m", "--cpus", "1", "--init"];
    const { stdout } = await promisify(execFile)("docker", [...flags, image, "bash", "-c", command]);
    if (!/\b1\n$/.test(stdout)) throw new Error(`docker run: ${stdout}`);
  };
  const each = TRIALS / ROUNDS;
  const side = (work) => async () => {
    const { ms, result } = await timed(() => many(each, work));
    failures.push(...result);
    return ms;
  };
  const times = await inTurns(ROUNDS, { ours: side(trial), docker: side(plain) });
  await limited.close();
  const perMinute = (ms) => Number((each / (median(ms) / 60_000)).toFixed(1));
  return {
    trials: TRIALS,
    atOnce: AT_ONCE,
    failures,
    oursPerMinute: perMinute(times.ours),
    dockerRunPerMinute: perMinute(times.docker),
    ratio: ratio(times.ours, times.docker),
    roundsOf: each,
    ours: summary(times.ours),
    docker: summary(times.docker),
  };
}

const load = loadavg().map((value) => Number(value.toFixed(2)));
try {
  // The task's image is there before anything is counted.
  await host.image({ label: "hello-file", context: `${TASK}/environment`, timeoutMs: 120_000 });
  const before = await counts();
  const measured = { exec: await execs(), start: await starts(), alive: await alive(), trials: await trials() };
  const after = await counts();
  const { exec, start, alive: many64, trials: run200 } = measured;
  const missed = [
    ...(exec.ratio > MOST_EXEC_RATIO ? [`exec ${exec.ratio} times the bare API`] : []),
    ...(start.ours.medianMs > MOST_START_MS ? [`start ${start.ours.medianMs} ms`] : []),
    ...(many64.answered < ALIVE ? [`${many64.answered} of ${ALIVE} sandboxes answered`] : []),
    ...[...many64.failures, ...run200.failures].slice(0, 5),
    ...(JSON.stringify(before) === JSON.stringify(after) ? [] : ["something is left on the daemon"]),
  ];
  const { Version: daemon } = await docker.version();
  const question = "What do sandboxes cost beside the bare Docker API and `docker run`?";
  writeReceipt("sandbox", { question, daemon, load, ...measured, left: { before, after }, missed });
  console.log(`exec ${exec.ratio} times bare (${exec.ours.medianMs} ms)`);
  console.log(`start ${start.ours.medianMs} ms, where expected ${start.expected.medianMs} ms`);
  console.log(
    `${many64.answered} alive, ${run200.oursPerMinute} trials a minute, docker run ${run200.dockerRunPerMinute}`,
  );
  for (const line of missed) console.log(`missed: ${line}`);
  if (process.argv.includes("--check") && missed.length > 0) process.exitCode = 1;
} finally {
  await host.close();
  rmSync(cacheFolder, { recursive: true, force: true });
}
