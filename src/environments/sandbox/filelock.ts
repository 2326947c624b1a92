/** A lock between processes of one machine: a file that names its holder, and is taken over once that process is gone. */
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryName } from "../../files.ts";
import { isAlive, ownIdentity, type ProcessIdentity } from "../../process.ts";

const POLL_MS = 200;

/** Waits for the lock and gives what releases it. */
export async function lockFile(path: string, signal?: AbortSignal): Promise<() => void> {
  mkdirSync(dirname(path), { recursive: true });
  while (!tryLock(path)) {
    const holder = holderOf(path);
    if (holder && !isAlive(holder)) rmSync(path, { force: true });
    else await sleep(POLL_MS, undefined, signal ? { signal } : {});
  }
  return () => rmSync(path, { force: true });
}

/** A link is made whole or not at all, so a lock never lacks its holder's name. */
function tryLock(path: string): boolean {
  const temporary = temporaryName(path);
  writeFileSync(temporary, JSON.stringify(ownIdentity()));
  try {
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function holderOf(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
