/** Programs on a real terminal, for tests. Needs a Python 3 for its pseudo-terminal. */
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export const program = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
const driver = fileURLToPath(new URL("terminal.py", import.meta.url));

/** Where it is false, tests that need a terminal are skipped by name. */
export const hasTerminal = spawnSync("python3", ["-c", "import pty"]).status === 0;

/** What is waited for, and what is typed then, escapes as in a Python string. */
export type Keys = readonly [wait: string, typed: string];

export interface Shown {
  readonly code: number | null;
  /** All that the terminal was sent, escape codes too. */
  readonly shown: string;
}

export async function typeAt(
  command: readonly string[],
  keys: readonly Keys[],
  {
    cwd,
    env = {},
    columns = 80,
  }: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv; readonly columns?: number },
): Promise<Shown> {
  const child = spawn("python3", [driver, ...command], {
    cwd,
    env: { ...process.env, TERM: "xterm", ...env, RLCLI_TEST_COLUMNS: String(columns) },
  });
  child.stdin.end(keys.map(([wait, typed]) => `${wait}\t${typed}\n`).join(""));
  let shown = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, shown };
}
