/** The Python environments that `test/counterparts/setup` makes, as far as they are there. */
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Where the environments are; outside of the repository. */
export const cache =
  process.env.RLCLI_COUNTERPARTS ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "rlcli-counterparts");

const python = join(cache, "base/bin/python");

/** Where an SDK lies, or undefined where it or what it needs is not installed. */
export function sdkFolder(version: string): string | undefined {
  const folder = join(cache, `sdk-${version}`);
  return existsSync(python) && existsSync(folder) ? folder : undefined;
}

export const hasPython = existsSync(python);

const cookbook = join(cache, "cookbook");

/** Python with tinker-cookbook; undefined where that is not wholly installed. */
export const cookbookPython =
  existsSync(cookbook) && readdirSync(cookbook).some((name) => name.startsWith("complete-"))
    ? join(cookbook, "bin/python")
    : undefined;

const OPENAI = "3.57.0";
const openai = join(cache, `openai-${OPENAI}`);

/** Python with the official OpenAI client; undefined where that is not wholly installed. */
export const openaiPython = existsSync(join(openai, "complete")) ? join(openai, "bin/python") : undefined;

const moto = join(cache, "moto-5.2.5");

/** An environment with moto, which stands for AWS; undefined where it is not wholly installed. */
export const motoFolder = existsSync(join(moto, "complete")) ? moto : undefined;

export interface PythonRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface PythonOptions {
  readonly pythonPath?: string;
  readonly timeoutMs: number;
}

/** Runs a script of this folder; it is killed after `timeoutMs`. */
export function runPython(script: string, args: readonly string[], options: PythonOptions): Promise<PythonRun> {
  return runCommand(python, [new URL(script, import.meta.url).pathname, ...args], options);
}

/** Runs a Python as it is given, in a folder; it is killed after `timeoutMs`. */
export function runCommand(
  command: string,
  args: readonly string[],
  { pythonPath, timeoutMs, cwd, env }: PythonOptions & { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv },
): Promise<PythonRun> {
  const child = spawn(command, args, {
    ...(cwd ? { cwd } : {}),
    env: {
      ...process.env,
      // Nothing of these tests may reach beyond this machine.
      HF_HUB_OFFLINE: "1",
      TINKER_TELEMETRY: "0",
      PYTHONWARNINGS: "ignore",
      ...(pythonPath ? { PYTHONPATH: pythonPath } : {}),
      ...env,
    },
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const)
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      output[stream] += text;
    });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...output }));
  });
}
