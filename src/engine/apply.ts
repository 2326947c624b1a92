/**
 * Carries out planned changes: walks the graph in parallel, bounded by a limit and by what each server can host; takes the
 * lease of each address it works on; stores each record as soon as its change is done. Nothing below prints: progress is
 * events, and the result is a value also where something failed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../address.ts";
import type { Change } from "../change.ts";
import { type Diagnostic, diagnostic, hasErrors, RlcliError } from "../diagnostic.ts";
import type { ChangeStatus, EngineEvent } from "../event.ts";
import {
  type ActContext,
  draftOf,
  type HeldLease,
  type Identity,
  type Kind,
  type Kinds,
  type Observation,
  type Outcome,
  type ProjectContext,
} from "../kind.ts";
import { takesSlot } from "../plan/plan.ts";
import type { Spec } from "../spec.ts";
import { withLease } from "../state/lease.ts";
import { storeRecord } from "../state/recovery.ts";
import type { StateStore } from "../state/store.ts";
import type { StateRecord } from "../state-record.ts";
import { Walk } from "./walk.ts";

export interface ApplyInput {
  readonly changes: readonly Change[];
  readonly spec: Spec | undefined;
  readonly kinds: Kinds;
  readonly store: StateStore;
  readonly records: ReadonlyMap<Address, StateRecord>;
  readonly facts: ReadonlyMap<Address, unknown>;
  readonly observations: ReadonlyMap<Address, Observation<unknown>>;
  readonly identities: ReadonlyMap<Address, Identity>;
  readonly project: ProjectContext;
  readonly stop: AbortSignal;
  readonly kill: AbortSignal;
  /** Leave workers running instead of waiting for them. */
  readonly detach: boolean;
  /** `destroy --weights`. */
  readonly weights: boolean;
  readonly parallelism: number;
  readonly now: () => Date;
  emit(event: EngineEvent): void;
}

export interface ChangeResult {
  readonly status: ChangeStatus;
  readonly diagnostics: readonly Diagnostic[];
  readonly summary?: string;
}

export interface ApplyResult {
  readonly results: ReadonlyMap<Address, ChangeResult>;
  readonly counts: Readonly<Record<ChangeStatus, number>>;
  readonly diagnostics: readonly Diagnostic[];
}

export async function applyChanges(input: ApplyInput): Promise<ApplyResult> {
  const startedAt = input.now().getTime();
  const records = new Map(input.records);
  const results = new Map<Address, ChangeResult>();
  const acting = input.changes.filter((change) => change.action !== "none");
  const at = () => input.now().toISOString();
  input.emit({ type: "apply.start", at: at(), changes: acting.length });

  const walk = new Walk(input.changes, {
    parallelism: input.parallelism,
    slotsOf: (address) => slotsOf(input, address),
    takesSlot,
    isStopped: () => input.stop.aborted,
  });
  await walk.run(async (change) => {
    if (change.action === "none" && !change.busy) return "done";
    const began = input.now().getTime();
    input.emit({ type: "change.start", at: at(), address: change.address, action: change.action });
    const result = await applyOne(input, change, records);
    results.set(change.address, result);
    const seconds = (input.now().getTime() - began) / 1000;
    input.emit({ type: "change.end", at: at(), address: change.address, action: change.action, seconds, ...result });
    return result.status === "done" ? "done" : "blocked";
  });
  for (const change of acting) {
    if (!results.has(change.address))
      results.set(change.address, { status: whyNotStarted(change, results), diagnostics: [] });
  }
  const counts = countStatuses(results.values());
  input.emit({ type: "apply.end", at: at(), counts, seconds: (input.now().getTime() - startedAt) / 1000 });
  return { results, counts, diagnostics: [...results.values()].flatMap((result) => result.diagnostics) };
}

/** Changes come after what they need, so the needs of one have their end or their reason by now. */
function whyNotStarted(change: Change, results: ReadonlyMap<Address, ChangeResult>): ChangeStatus {
  const unmet = change.dependsOn
    .map((need) => results.get(need)?.status)
    .filter((status) => status !== undefined && status !== "done");
  return unmet.length > 0 && unmet.every((status) => status === "detached" || status === "waiting")
    ? "waiting"
    : "skipped";
}

function slotsOf(input: ApplyInput, address: Address): number | undefined {
  const node = input.spec?.nodes.get(address);
  return node && input.kinds.get(node.kind)?.slots?.(node);
}

async function applyOne(input: ApplyInput, change: Change, records: Map<Address, StateRecord>): Promise<ChangeResult> {
  try {
    const kind = input.kinds.get(change.kind);
    if (!kind) throw new Error(`no kind ${change.kind}`);
    if (change.busy && change.action === "none") return await attachTo(input, kind, change, records, undefined);
    return await inTurn(input, kind, change, records);
  } catch (error) {
    if (isInterruption(error, input)) return { status: "interrupted", diagnostics: [] };
    if (error instanceof RlcliError) return { status: "failed", diagnostics: error.diagnostics };
    throw error;
  }
}

/** What a kind without a safe point of its own (an import, a measurement) ends with when it is told to stop. */
function isInterruption(error: unknown, { stop, kill }: ApplyInput): boolean {
  const isAbort = error instanceof Error && error.name === "AbortError";
  return [stop, kill].some((signal) => signal.aborted && (isAbort || error === signal.reason));
}

/** How long another apply may hold an address before this one gives up on it. */
const LEASE_WAIT_MS = 30_000;
const LEASE_POLL_MS = 250;

/**
 * Works under the address's lease. Where another apply holds it, that one is doing the same or something else: a worker on the very
 * thing that is planned is watched, anyone else is waited for.
 */
async function inTurn(
  input: ApplyInput,
  kind: Kind,
  change: Change,
  records: Map<Address, StateRecord>,
): Promise<ChangeResult> {
  for (let waitedMs = 0; ; waitedMs += LEASE_POLL_MS) {
    try {
      return await withLease(input.store, change.address, "rlcli apply", (lease) =>
        actUnder(lease, input, kind, change, records),
      );
    } catch (error) {
      const isHeld = error instanceof RlcliError && error.diagnostics[0]?.code === "RL3003";
      if (!isHeld || waitedMs >= LEASE_WAIT_MS || input.stop.aborted) throw error;
      const seen = await lookAgain(input, kind, change.address, records);
      const { lineage } = seen.busy ?? {};
      const isOurs = lineage?.hash === change.after?.hash && lineage?.incarnation === change.after?.incarnation;
      if (lineage && !isOurs) throw error;
      if (lineage) return attachTo(input, kind, change, records, seen);
      await sleep(LEASE_POLL_MS);
    }
  }
}

function lookAgain(
  input: ApplyInput,
  kind: Kind,
  address: Address,
  records: ReadonlyMap<Address, StateRecord>,
): Promise<Observation<unknown>> {
  return kind.read({
    project: input.project,
    address,
    node: input.spec?.nodes.get(address),
    record: records.get(address),
    recordOf: (other) => records.get(other),
    nodeOf: (other) => input.spec?.nodes.get(other),
    signal: input.kill,
  });
}

/** Someone else holds the lease; whoever attaches only watches, so none is taken here. */
async function attachTo(
  input: ApplyInput,
  kind: Kind,
  change: Change,
  records: Map<Address, StateRecord>,
  seen: Observation<unknown> | undefined,
): Promise<ChangeResult> {
  if (!kind.attach) return { status: "done", diagnostics: [] };
  const context = contextOf(input, change, records, undefined);
  const outcome = await kind.attach(seen ? { ...context, observation: seen } : context);
  await rereadRecord(input, change.address, records);
  return {
    status: outcome.status,
    diagnostics: "diagnostics" in outcome ? outcome.diagnostics : [],
    ...summaryOf(outcome),
  };
}

async function actUnder(
  lease: HeldLease,
  input: ApplyInput,
  kind: Kind,
  change: Change,
  records: Map<Address, StateRecord>,
): Promise<ChangeResult> {
  const before = await input.store.read(change.address);
  const planned = input.records.get(change.address);
  // A worker that was paused for this change has stored its end since.
  if (before?.version !== planned?.version && !change.busy) {
    if (!isDone(change, before)) {
      const detail = `The record of ${change.address} has changed since the plan was made. Plan again.`;
      throw new RlcliError(diagnostic("RL3002", detail, { address: change.address }));
    }
    if (before) records.set(change.address, before);
    return { status: "done", diagnostics: [], summary: "already done by another apply" };
  }
  if (before) records.set(change.address, before);
  const context = contextOf(input, change, records, lease);
  const outcome = await kind.act(context);
  const stored = await storeOutcome(input, context, outcome, lease.record.token);
  await rereadRecord(input, change.address, records);
  const failed = hasErrors(stored) && outcome.status === "done";
  return {
    status: failed ? "failed" : outcome.status,
    diagnostics: [...("diagnostics" in outcome ? outcome.diagnostics : []), ...stored],
    ...summaryOf(outcome),
  };
}

/** Whether another apply has meanwhile brought about exactly what this change is to. */
function isDone({ action, after }: Change, record: StateRecord | undefined): boolean {
  if (action === "destroy" || action === "forget") return record === undefined;
  // The same lineage may be longer than it was: only what makes or replaces a thing is known to be done by its lineage.
  if (action !== "create" && action !== "replace") return false;
  return record?.status === "ready" && record.hash === after?.hash && record.incarnation === after.incarnation;
}

/** What the change left, for those that come after it. A state that cannot be read now has been reported by its write. */
async function rereadRecord(input: ApplyInput, address: Address, records: Map<Address, StateRecord>): Promise<void> {
  try {
    const after = await input.store.read(address);
    if (after) records.set(address, after);
    else records.delete(address);
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
  }
}

function contextOf(
  input: ApplyInput,
  change: Change,
  records: Map<Address, StateRecord>,
  lease: HeldLease | undefined,
): ActContext<unknown, unknown> {
  const { address } = change;
  return {
    project: input.project,
    spec: input.spec,
    address,
    node: input.spec?.nodes.get(address),
    facts: input.facts.get(address),
    observation: input.observations.get(address),
    identity: input.identities.get(address),
    change,
    record: records.get(address),
    recordOf: (other) => records.get(other),
    nodeOf: (other) => input.spec?.nodes.get(other),
    lineageOf: (other) => input.changes.find((candidate) => candidate.address === other)?.after,
    lease,
    stop: input.stop,
    kill: input.kill,
    detach: input.detach,
    weights: input.weights,
    emit: input.emit,
    phase: (text) => input.emit({ type: "change.phase", at: input.now().toISOString(), address, text }),
  };
}

/** Stores what an outcome says. A record that cannot be stored is a diagnostic with a way to recover it, not a throw. */
async function storeOutcome(
  input: ApplyInput,
  context: ActContext<unknown, unknown>,
  outcome: Outcome,
  fence: number,
): Promise<readonly Diagnostic[]> {
  const record = "record" in outcome ? outcome.record : undefined;
  if (record === undefined) return [];
  const expect = context.record?.version ?? 0;
  if (record === "by-worker" || record === "unchanged") return [];
  if (record === "removed") {
    await input.store.remove(context.address, { expect, fence });
    return [];
  }
  return storeRecord(input.store, draftOf(context, record), { expect, fence }, input.project.folder);
}

function summaryOf(outcome: Outcome): { summary?: string } {
  return outcome.summary === undefined ? {} : { summary: outcome.summary };
}

function countStatuses(results: Iterable<ChangeResult>): Record<ChangeStatus, number> {
  const counts: Record<ChangeStatus, number> = {
    done: 0,
    interrupted: 0,
    failed: 0,
    skipped: 0,
    detached: 0,
    waiting: 0,
  };
  for (const result of results) counts[result.status] += 1;
  return counts;
}
