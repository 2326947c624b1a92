/** A project in a temporary folder and the real program on it: what end-to-end tests are written with. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ProcessIdentity, signalProcess } from "../../src/process.ts";
import { hasEnded } from "../../src/servers/runtime.ts";

const program = new URL("../../bin/rlcli.js", import.meta.url).pathname;
/** One cache for all tests: the built-in model is written once. */
const cache = join(tmpdir(), "rlcli-test-cache");

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export const QUESTIONS = ["one", "two", "three", "four", "five", "six", "seven", "eight"];

/** Conversations short enough that a step takes little time. */
export const rows = (questions: readonly string[] = QUESTIONS): string =>
  questions
    .map(
      (q, at) =>
        `${JSON.stringify({
          messages: [
            { role: "user", content: q },
            { role: "assistant", content: `${at + 1}` },
          ],
        })}\n`,
    )
    .join("");

export const SPEC = `rlcli: 1
project: test
server: { backend: embedded, model: builtin:tiny }
datasets:
  numbers: { source: numbers.jsonl }
runs:
  count: { type: sl, dataset: numbers, steps: 6, batch_size: 4, learning_rate: 3e-3, save_every: 2 }
`;

export class TestProject {
  readonly folder = mkdtempSync(join(tmpdir(), "rlcli-e2e-"));
  readonly env: Record<string, string | undefined>;
  readonly #started: ChildProcess[] = [];

  constructor(files: Readonly<Record<string, string>> = { "rlcli.yaml": SPEC, "numbers.jsonl": rows() }) {
    // Without CI, which has its own defaults (--locked): a test that is about them sets it.
    this.env = { ...process.env, RLCLI_CACHE: cache, NO_COLOR: "1", FORCE_COLOR: undefined, CI: undefined };
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true });
    writeFileSync(join(this.folder, name), text);
  }

  edit(name: string, from: string, to: string): void {
    const text = readFileSync(join(this.folder, name), "utf8");
    if (!text.includes(from)) throw new Error(`${name} has no ${from}`);
    this.write(name, text.replace(from, to));
  }

  run(args: readonly string[], input?: string): Ran {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
      cwd: this.folder,
      env: this.env as NodeJS.ProcessEnv,
      encoding: "utf8",
      ...(input === undefined ? {} : { input }),
    });
    return { code: status, out: stdout, err: stderr };
  }

  /** Runs a command that has to succeed. */
  ok(...args: string[]): string {
    const { code, out, err } = this.run(args);
    if (code !== 0) throw new Error(`rlcli ${args.join(" ")} ended with ${code}\n${out}\n${err}`);
    return out;
  }

  start(...args: string[]): ChildProcess & { readonly ended: Promise<Ran> } {
    const child = spawn(process.execPath, [program, ...args], { cwd: this.folder, env: this.env as NodeJS.ProcessEnv });
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.stderr.on("data", (chunk) => {
      err += chunk;
    });
    const ended = new Promise<Ran>((resolve) => child.on("close", (code) => resolve({ code, out, err })));
    this.#started.push(child);
    return Object.assign(child, { ended });
  }

  /** What a plan would do: action by address. */
  actions(...args: string[]): Record<string, string> {
    const { out, err } = this.run(["plan", "--json", ...args]);
    const { changes } = JSON.parse(out || err) as { changes: { address: string; action: string }[] };
    return Object.fromEntries(changes.filter((c) => c.action !== "none").map((c) => [c.address, c.action]));
  }

  record(address: string): {
    version: number;
    hash: string;
    incarnation: number;
    status: string;
    results: Record<string, unknown>;
  } {
    return JSON.parse(this.ok("state", "show", address, "--json"));
  }

  /** Folder of a run's current incarnation. */
  runFolder(name: string): string {
    const generations = join(this.folder, ".rlcli/runs", name);
    const [generation] = readdirSync(generations);
    return join(generations, generation!, "1");
  }

  pid(name = "count"): number {
    return JSON.parse(readFileSync(join(this.runFolder(name), "worker.json"), "utf8")).process.pid;
  }

  serverPid(): number {
    return JSON.parse(readFileSync(join(this.folder, ".rlcli/servers/default/runtime.json"), "utf8")).process.pid;
  }

  /** Waits until the run has done a step. */
  async reachesStep(step: number, { name = "count", timeoutMs = LONG_MS } = {}): Promise<void> {
    await until(() => {
      const folder = join(this.folder, ".rlcli/runs", name);
      if (!existsSync(folder) || readdirSync(folder).length === 0) return false;
      const journal = join(this.runFolder(name), "journal.jsonl");
      return existsSync(journal) && readFileSync(journal, "utf8").includes(`"t":"done"`) && lastDone(journal) >= step;
    }, timeoutMs);
  }

  /** Lines of a run's metrics, one a step. */
  metrics(name = "count"): readonly { readonly step: number; readonly loss: number }[] {
    const lines = readFileSync(join(this.runFolder(name), "metrics.jsonl"), "utf8")
      .trim()
      .split("\n");
    return lines.map((line) => JSON.parse(line)).filter((line) => line.step !== undefined);
  }

  /** The bytes of a run's final weights. */
  weights(address = "run.count", server = "default"): Buffer {
    const { training } = this.record(address).results as { training: string };
    const [run, kind, name] = training.slice("tinker://".length).split("/") as [string, string, string];
    return readFileSync(
      join(
        this.folder,
        ".rlcli/servers",
        server,
        "checkpoints",
        run.replaceAll(":", "_"),
        kind,
        name,
        "model.safetensors",
      ),
    );
  }

  /** Stops everything of this project, whatever state a test left it in. */
  async close(): Promise<void> {
    for (const child of this.#started) if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    const left = [...this.#servers(), ...this.#workers()].flatMap((file) => this.#processOf(file));
    for (const identity of left) signalProcess(identity, "SIGKILL");
    await Promise.all(left.map((identity) => hasEnded(identity, LONG_MS)));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Of a file that names one; none where there is no such file. */
  #processOf(file: string): readonly ProcessIdentity[] {
    try {
      return [JSON.parse(readFileSync(join(this.folder, ".rlcli", file), "utf8")).process];
    } catch {
      return [];
    }
  }

  #servers(): readonly string[] {
    const servers = join(this.folder, ".rlcli/servers");
    return existsSync(servers) ? readdirSync(servers).map((name) => join("servers", name, "runtime.json")) : [];
  }

  #workers(): readonly string[] {
    const runs = join(this.folder, ".rlcli/runs");
    if (!existsSync(runs)) return [];
    return readdirSync(runs, { recursive: true })
      .map(String)
      .filter((path) => path.endsWith("worker.json"))
      .map((path) => join("runs", path));
  }
}

function lastDone(journal: string): number {
  const lines = readFileSync(journal, "utf8").split("\n").slice(0, -1);
  const done = lines.map((line) => JSON.parse(line)).filter((entry) => entry.t === "done");
  return done.at(-1)?.step ?? 0;
}

/** Of a busy machine; what is waited for is there in a second otherwise. */
const LONG_MS = 100_000;

export async function until(condition: () => boolean, timeoutMs = LONG_MS): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`still not: ${condition}`);
    await sleep(20);
  }
}
