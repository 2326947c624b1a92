/**
 * Who a process is. A pid alone is reused by the system, so a process is known by pid and start time: equal pairs are
 * the same process, on Linux from /proc, elsewhere from `ps`.
 */
import { execFileSync } from "node:child_process";
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
