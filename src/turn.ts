/**
 * One at a time, across processes, with nothing to clean up after a crash. Lock files in a folder are numbered; the highest
 * number counts, and whoever creates the next one holds the lock if nothing higher exists by then. A holder that died or
 * released leaves its file, which is why breaking a dead lock can never remove a live one.
 */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { writeFileWhole, writeFully } from "./files.ts";
import { isAlive, ownIdentity, type ProcessIdentity } from "./process.ts";

interface LockFile {
  readonly holder: ProcessIdentity;
  readonly isReleased: boolean;
}

const NAME = /^turn-(\d+)\.lock$/;
const POLL_MS = 50;

/** Waits for its turn in a folder; the function returned ends it. */
export async function takeTurn(folder: string, signal?: AbortSignal): Promise<() => void> {
  return (await takeTurnUnless(() => false, folder, signal)) as () => void;
}

/** The same; `isDone` ends the wait early, with undefined: nothing is left to be done. */
export async function takeTurnUnless(
  isDone: () => boolean,
  folder: string,
  signal?: AbortSignal,
): Promise<(() => void) | undefined> {
  mkdirSync(folder, { recursive: true });
  while (!isDone()) {
    signal?.throwIfAborted();
    const release = tryLock(folder);
    if (release) return release;
    await delay(POLL_MS, undefined, signal ? { signal } : {});
  }
  return undefined;
}

function tryLock(folder: string): (() => void) | undefined {
  const highest = Math.max(0, ...numbers(folder));
  if (highest > 0 && isHeld(join(folder, nameOf(highest)))) return undefined;
  const number = highest + 1;
  const path = join(folder, nameOf(number));
  const file: LockFile = { holder: ownIdentity(), isReleased: false };
  try {
    const fd = openSync(path, "wx", 0o600);
    try {
      writeFully(fd, Buffer.from(JSON.stringify(file)));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
  const all = numbers(folder);
  if (Math.max(...all) > number) {
    // Our view was old: someone took this number, released it and was followed. Ours was never the lock.
    rmSync(path, { force: true });
    return undefined;
  }
  for (const old of all) if (old < number) rmSync(join(folder, nameOf(old)), { force: true });
  return () => writeFileWhole(path, JSON.stringify({ ...file, isReleased: true } satisfies LockFile));
}

function isHeld(path: string): boolean {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    // Just removed by a later holder: look again.
    return true;
  }
  try {
    const { holder, isReleased } = JSON.parse(text) as LockFile;
    return !isReleased && isAlive(holder);
  } catch {
    // Created a moment ago and not written yet, or its writer died in between; the first is over in no time.
    return !isOlderThan(path, 2000);
  }
}

function isOlderThan(path: string, ms: number): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs > ms;
}

function numbers(folder: string): readonly number[] {
  return readdirSync(folder).flatMap((name) => {
    const match = NAME.exec(name);
    return match ? [Number(match[1])] : [];
  });
}

function nameOf(number: number): string {
  return `turn-${number}.lock`;
}
