/**
 * Who a process is. A pid alone is reused by the system, so a process is known by pid and start time: equal pairs are
 * the same process, on Linux from /proc, elsewhere from `ps`.
 */
import { type ChildProcess, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque; compare for equality only, and only between values taken on one machine since its last boot. */
  readonly startTime: string;
}

/** The identity of a running process, or undefined if there is none (a zombie counts as none). */
export function processIdentity(pid: number): ProcessIdentity | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (process.platform === "linux") {
    try {
      // Field 2 (the command) may hold spaces and parentheses: count fields after its last ")". State is field 3,
      // start time in clock ticks since boot field 22 (proc(5)).
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return fields[0] === "Z" || fields[0] === "X" ? undefined : { pid, startTime: fields[19] ?? "" };
    } catch {
      return undefined;
    }
  }
  try {
    const out = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], {
      encoding: "utf8",
      env: { LC_ALL: "C", TZ: "UTC" },
    }).trim();
    return out === "" || out.startsWith("Z") ? undefined : { pid, startTime: out.replace(/^\S+\s+/, "") };
  } catch {
    return undefined;
  }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return processIdentity(identity.pid)?.startTime === identity.startTime;
}

export function ownIdentity(): ProcessIdentity {
  return processIdentity(process.pid) ?? { pid: process.pid, startTime: "" };
}

/** How long what a child said last is waited for: what it has started may hold its streams for ever. */
const LAST_WORDS_MS = 500;

/** Tells of a child's end once what it said before has been read; its `exit` alone may come first. */
export function onceEnded(
  child: ChildProcess,
  tell: (code: number | null, signal: NodeJS.Signals | null) => void,
): void {
  child.once("exit", (code, signal) => {
    const end = (): void => {
      clearTimeout(timer);
      child.off("close", end);
      tell(code, signal);
    };
    const timer = setTimeout(end, LAST_WORDS_MS);
    child.once("close", end);
  });
}

/** Sends a signal only if the pid still belongs to the same process; tells whether it did. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch {
    return false;
  }
}
