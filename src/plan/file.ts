/**
 * Saved plans. A plan file holds what was decided and what it was decided from: the version of every record and the digest
 * of every input. It is refused if one of those changed since, or if what a block is to be came out otherwise when it was planned again
 * (a parent ends at another step, its checkpoints are gone); else how the world looks may move on.
 */
import type { Address } from "../address.ts";
import type { Change } from "../change.ts";
import { type Diagnostic, diagnostic, fail } from "../diagnostic.ts";
import { digestJson } from "../digest.ts";
import { shortPath } from "../files.ts";
import type { SpecInput } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";

export const PLAN_VERSION = 1;

/** What the command line said, so that `apply FILE` plans the same way. Secrets are never among the variables' values. */
export interface PlanOptions {
  readonly files: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly variableFiles: readonly string[];
  readonly targets: readonly Address[];
  readonly replace: readonly Address[];
  readonly destroy: boolean;
}

export interface SavedPlan {
  readonly formatVersion: typeof PLAN_VERSION;
  readonly rlcli: string;
  readonly createdAt: string;
  readonly project: string;
  readonly lineage?: string;
  readonly options: PlanOptions;
  readonly inputs: readonly SpecInput[];
  readonly records: Readonly<Record<Address, number>>;
  readonly changes: readonly Change[];
}

/** The digest tells a plan that was reviewed from one that was edited since. */
export function encodePlan(plan: SavedPlan): string {
  return `${JSON.stringify({ ...plan, digest: digestJson(plan) }, undefined, 1)}\n`;
}

/** Reads a saved plan; `name` is for messages. Throws RL2004. */
export function decodePlan(text: string, name: string): SavedPlan {
  let read: SavedPlan & { readonly digest?: string };
  try {
    read = JSON.parse(text) as typeof read;
  } catch {
    return fail(
      "RL2004",
      `${name} is not a plan: it does not hold JSON. Make it again with \`rlcli plan -o ${name}\`.`,
    );
  }
  if (typeof read !== "object" || read === null || read.formatVersion === undefined || read.digest === undefined) {
    fail("RL2004", `${name} is not a plan written by rlcli. Make it again with \`rlcli plan -o ${name}\`.`);
  }
  const { digest, ...plan } = read;
  if (plan.formatVersion !== PLAN_VERSION) {
    fail(
      "RL2004",
      `${name} has plan format ${plan.formatVersion}, this rlcli reads ${PLAN_VERSION}. Plan again with this version.`,
    );
  }
  if (digestJson(plan) !== digest) {
    fail("RL2004", `${name} was edited after it was made. Make it again with \`rlcli plan -o ${name}\`.`);
  }
  return plan;
}

export interface PlanBasis {
  readonly lineage: string | undefined;
  readonly records: ReadonlyMap<Address, StateRecord>;
  readonly inputs: readonly SpecInput[];
  /** What a plan made now would do. */
  readonly changes: readonly Change[];
  /** Folder that files are named from. */
  readonly cwd: string;
}

export function recordVersions(records: ReadonlyMap<Address, StateRecord>): Record<Address, number> {
  return Object.fromEntries([...records].map(([address, record]) => [address, record.version]));
}

/** One RL2002 that names everything that changed since the plan was made; none if it may be applied. */
export function checkStale(plan: SavedPlan, now: PlanBasis): readonly Diagnostic[] {
  const changed: string[] = [];
  if (plan.lineage !== undefined && plan.lineage !== now.lineage) changed.push("the state itself (another lineage)");
  const versions = recordVersions(now.records);
  for (const address of new Set([...Object.keys(plan.records), ...Object.keys(versions)] as Address[])) {
    const before = plan.records[address];
    const after = versions[address];
    if (before !== after)
      changed.push(`the record of ${address} (version ${before ?? "none"}, now ${after ?? "none"})`);
  }
  const key = (input: SpecInput) => (input.type === "file" ? input.path : `environment variable ${input.name}`);
  const digests = new Map(now.inputs.map((input) => [key(input), input.digest]));
  for (const input of plan.inputs)
    if (digests.get(key(input)) !== input.digest)
      changed.push(input.type === "file" ? shortPath(input.path, now.cwd) : key(input));
  // Only where nothing else explains it: an edited input makes everything that depends on it another thing.
  if (changed.length === 0) changed.push(...otherwise(plan.changes, now.changes));
  if (changed.length === 0) return [];
  const list = changed.slice(0, 10).join("; ") + (changed.length > 10 ? `; and ${changed.length - 10} more` : "");
  return [
    diagnostic("RL2002", `Since the plan of ${plan.createdAt} this has changed: ${list}. Plan again and review it.`),
  ];
}

/** Blocks that would be something else by now, as far as the present plan could tell. */
function otherwise(before: readonly Change[], now: readonly Change[]): readonly string[] {
  const hashes = new Map(now.map(({ address, after }) => [address, after?.hash]));
  return before
    .filter(({ address, after }) => after && hashes.has(address) && hashes.get(address) !== after.hash)
    .map(({ address }) => `what ${address} is to be`);
}
