/** Reward files as Harbor reads them: what a task's tests wrote, strictly, or why it is no verdict. */
import { fail } from "../../diagnostic.ts";
import { isReward, LARGEST_REWARD } from "../grader.ts";
import { type Sandbox, TooMuchError } from "../sandbox/sandbox.ts";

/** Numbers by key; a plain reward is the key `reward`. */
export type Rewards = Readonly<Record<string, number>>;

const LARGEST_FILE = 1 << 20;

/** `reward.json` before `reward.txt`. Fails with RL7305. */
export async function readRewards(sandbox: Sandbox, testOutput: () => Promise<string>): Promise<Rewards> {
  for (const [name, parse] of [
    ["reward.json", parseRewardJson],
    ["reward.txt", parseRewardText],
  ] as const) {
    const files = await sandbox
      .download(`/logs/verifier/${name}`, { bytes: LARGEST_FILE, entries: 1 })
      .catch((error) => {
        if (error instanceof TooMuchError) noVerdict(`${name} is larger than 1 MiB, or a folder of files`);
        throw error;
      });
    if (files === undefined) continue;
    const [file] = files;
    if (file === undefined) noVerdict(`${name} is no regular file`);
    if (file.bytes.length === 0) noVerdict(`${name} is empty`);
    return parse(decode(name, file.bytes));
  }
  const said = (await testOutput()).trim();
  return noVerdict(
    `the tests wrote neither /logs/verifier/reward.json nor reward.txt${said === "" ? "" : `. They said at the end:\n${indent(said)}`}`,
  );
}

const indent = (text: string): string => text.replace(/^/gm, "  ");

function decode(name: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return noVerdict(`${name} is no UTF-8`);
  }
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** A finite number with blanks around it. Fails with RL7305. */
export function parseRewardText(text: string): Rewards {
  const word = text.trim();
  const reward = Number(word);
  if (!NUMBER.test(word) || !Number.isFinite(reward) || text.includes("\uFEFF"))
    noVerdict(`reward.txt holds ${shown(text)}, which is no number`);
  return { reward: reward + 0 };
}

/** An object of finite numbers. Fails with RL7305. */
export function parseRewardJson(text: string): Rewards {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    noVerdict(`reward.json holds ${shown(text)}, which is no JSON`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    noVerdict(`reward.json holds ${shown(text)}, which is no object of numbers`);
  for (const [key, number] of Object.entries(value)) {
    if (typeof number !== "number" || !Number.isFinite(number))
      noVerdict(`reward.json says ${shown(JSON.stringify(number))} for \`${key}\`, which is no number`);
  }
  return value as Rewards;
}

/** The number to train on: `key`, else `reward`, else the only one. Fails with RL7305, never a silent 0. */
export function scalarOf(rewards: Rewards, key?: string): number {
  const keys = Object.keys(rewards);
  const chosen = key ?? ("reward" in rewards ? "reward" : keys.length === 1 ? (keys[0] as string) : undefined);
  const value = chosen === undefined ? undefined : rewards[chosen];
  if (isReward(value)) return value;
  if (value !== undefined)
    return noVerdict(`the tests gave ${value}, and a reward is at most ${LARGEST_REWARD} in size`);
  if (keys.length === 0) return noVerdict("reward.json is an object without a number");
  return noVerdict(
    `the tests gave ${keys.join(", ")}, and ${chosen === undefined ? "none of them is called `reward`" : `no \`${chosen}\``}. Say with \`reward_key\` which one counts`,
  );
}

/** Over the steps that have a result: per key, the sum by their number, a missing key counting 0; or the last one's. */
export function combineRewards(steps: readonly Rewards[], strategy: "mean" | "final"): Rewards {
  if (strategy === "final" || steps.length === 1) return steps.at(-1) ?? {};
  const keys = new Set(steps.flatMap((rewards) => Object.keys(rewards)));
  return Object.fromEntries(
    [...keys].map((key) => [key, steps.reduce((sum, rewards) => sum + (rewards[key] ?? 0), 0) / steps.length]),
  );
}

/** Whether the next step may begin. */
export function meets(rewards: Rewards, gate: number | Rewards | undefined): boolean {
  const gates = typeof gate === "number" ? { reward: gate } : (gate ?? {});
  return Object.entries(gates).every(([key, least]) => (rewards[key] ?? Number.NEGATIVE_INFINITY) >= least);
}

function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}

export function noVerdict(why: string): never {
  return fail("RL7305", `There is no verdict: ${why}.`);
}
