/** Labels by which containers and images are known as ours, and whose they are: they cannot be changed later. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isAlive, ownIdentity } from "../../process.ts";

export const MANAGED = "dev.rlcli.managed";
export const OWNER = "dev.rlcli.owner";
export const DEADLINE = "dev.rlcli.deadline";
export const PROJECT = "dev.rlcli.project";
export const RUN = "dev.rlcli.run";
export const CREATED = "dev.rlcli.created";
export const CONTEXT = "dev.rlcli.context";
/** Containers that are left for a person to look at have names that begin so: a name, unlike a label, can be given later. */
export const KEPT_NAME = "rlcli-kept-";

export interface Owner {
  readonly host: string;
  /** Changes with every start of the machine. */
  readonly boot: string;
  /** Pids mean something only within one. */
  readonly namespace: string;
  readonly pid: number;
  readonly startTime: string;
}

export function ownOwner(): Owner {
  const { pid, startTime } = ownIdentity();
  return { ...machine(), pid, startTime };
}

function machine(): Pick<Owner, "host" | "boot" | "namespace"> {
  return {
    host: hostname(),
    boot: readOr(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    namespace: readOr(() => readlinkSync("/proc/self/ns/pid")),
  };
}

/** Empty where the system has no such thing. */
function readOr(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

export type Labels = Readonly<Record<string, string>>;

export function sandboxLabels(project: string, run: string, lifetimeMs: number): Labels {
  return {
    [MANAGED]: "1",
    [PROJECT]: project,
    [RUN]: run,
    [OWNER]: JSON.stringify(ownOwner()),
    [CREATED]: new Date().toISOString(),
    [DEADLINE]: String(Date.now() + lifetimeMs),
  };
}

export type Verdict = "ours" | "dead" | "alive" | "unknown";

/**
 * Whose a container is: `ours` of this process; `dead` where its lifetime is over or its process is gone; `unknown` where its
 * process cannot be seen from here (another machine or namespace) and its lifetime still runs.
 */
export function verdictOn(labels: Labels, now = Date.now()): Verdict {
  const deadline = Number(labels[DEADLINE]);
  if (Number.isFinite(deadline) && now > deadline) return "dead";
  let owner: Owner;
  try {
    owner = JSON.parse(labels[OWNER] ?? "") as Owner;
  } catch {
    return "unknown";
  }
  return verdictOf(owner);
}

/** The same by the owner alone. */
export function verdictOf(owner: Owner): Verdict {
  const here = machine();
  if (owner.host !== here.host) return "unknown";
  if (owner.boot !== here.boot) return "dead";
  if (owner.namespace !== here.namespace) return "unknown";
  const own = ownOwner();
  if (owner.pid === own.pid && owner.startTime === own.startTime) return "ours";
  return isAlive(owner) ? "alive" : "dead";
}
