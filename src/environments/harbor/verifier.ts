/** Runs a task's tests in the agent's container and reads their verdict. */
import { fail } from "../../diagnostic.ts";
import type { CommandResult, Sandbox } from "../sandbox/sandbox.ts";
import { isFile, readTree, type TreeEntry, withExecutable } from "../sandbox/tree.ts";
import { inStep, type TrialOutput } from "./artifacts.ts";
import { noVerdict, type Rewards, readRewards } from "./reward.ts";

export interface TestOrder {
  /** Folders that are copied to `/tests`, later ones over earlier; undefined where the image has them. */
  readonly tests: readonly string[] | undefined;
  readonly user: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Of all of it. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly output?: TrialOutput;
  readonly step?: string | undefined;
}

/** What the agent may have left in the way: old or planted rewards, links in the place of folders, read-only tests. */
const CLEAR = `
for d in /logs /logs/verifier; do [ -L "$d" ] || [ ! -d "$d" ] && rm -rf "$d"; done
mkdir -p /logs/verifier /logs/artifacts /logs/agent && chmod 777 /logs/verifier
rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json /logs/verifier/test-stdout.txt
`;
const TESTS = "(/tests/test.sh) > /logs/verifier/test-stdout.txt 2>&1";
const SAID = "tail -c 2000 /logs/verifier/test-stdout.txt";
const SHORT_MS = 60_000;
const LOG_LIMITS = { bytes: 64 << 20, entries: 1000 };

/** Fails with RL7305 where there is no verdict, RL7303 where the sandbox is at fault. The tests' exit code says nothing. */
export async function runTests(sandbox: Sandbox, order: TestOrder): Promise<Rewards> {
  const { user, env, timeoutMs, signal } = order;
  const asRoot = (command: string) => sandbox.run({ command, user: "0", cwd: "/", timeoutMs: SHORT_MS, signal });
  const cleared = await asRoot(order.tests ? `${CLEAR}rm -rf /tests` : CLEAR);
  if (cleared.exitCode !== 0) fail("RL7303", `The verifier's folders cannot be made: ${cleared.stderr.text.trim()}`);
  const tests = overlay(order.tests ?? []);
  if (order.tests) await sandbox.upload(withExecutable(tests, "test.sh"), "/tests");
  if (!isFile(tests, "test.sh")) await asRoot("chmod +x /tests/test.sh");
  const result = await sandbox.run({ command: TESTS, user, env, timeoutMs, signal });
  if (order.output) await saveLogs(sandbox, order.output, order.step);
  // Whatever was written before the end is no verdict.
  if (result.hasTimedOut) noVerdict(`the tests ran longer than ${timeoutMs / 1000} s`);
  return readRewards(sandbox, async () => memoryWords(result) + (await asRoot(SAID)).stdout.text);
}

const memoryWords = ({ memoryKills }: CommandResult): string =>
  memoryKills === 0 ? "" : `(${memoryKills} of their processes were killed: the container's memory was used up.)\n`;

function overlay(folders: readonly string[]): readonly TreeEntry[] {
  const entries = new Map<string, TreeEntry>();
  for (const folder of folders) for (const entry of readTree(folder)) entries.set(entry.path, entry);
  return [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function saveLogs(sandbox: Sandbox, output: TrialOutput, step: string | undefined): Promise<void> {
  const files = await sandbox.download("/logs/verifier", LOG_LIMITS);
  for (const { path, bytes } of files ?? []) output.write(inStep(step, `verifier/${path}`), bytes);
}
