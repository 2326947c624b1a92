/**
 * The contract of a resource kind: what the planner asks of it (pure), what refresh asks (looks, never acts) and what
 * the engine asks (acts). `kinds/` implements it, one file per block of the spec; `plan/` and `engine/` know no kind by
 * name and receive a registry.
 */
import type { Address, KindName } from "./address.ts";
import type { Action, AttributeChange, Busy, Change, Drift, Estimate, Lineage } from "./change.ts";
import type { Diagnostic } from "./diagnostic.ts";
import { type Digest, digestBytes } from "./digest.ts";
import type { EngineEvent } from "./event.ts";
import type { Lock } from "./lock.ts";
import type { ChangeRule, Spec, SpecAttribute, SpecInput, SpecNode } from "./spec.ts";
import type { LeaseRecord, RecordStatus, StateRecord, StateRecordDraft } from "./state-record.ts";
import { canonicalJson, type Json, type JsonObject, type Value } from "./value.ts";

/** Where things lie and what the surroundings are; passed in, since nothing below the command line reads them itself. */
export interface ProjectContext {
  readonly project: string;
  /** Absolute folder of the spec. */
  readonly folder: string;
  /** Absolute `.rlcli` folder. */
  readonly dataFolder: string;
  /** Absolute cache shared by projects: built-in models, digests. */
  readonly cacheFolder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Everything is tried out small (`apply --smoke`): a few rows of each dataset, and nothing is kept. */
  readonly isSmoke?: boolean;
  /** What moving names resolved to. Absent where there is no spec to commit it with. */
  readonly lock?: Lock;
}

/** What a kind reads of its inputs before planning (digests of files); known at plan, never asked of a server. */
export interface Resolved<Facts> {
  readonly facts: Facts;
  readonly inputs: readonly SpecInput[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What refresh saw. `unknown`: it could not be asked; nothing is concluded from that. */
export interface Observation<Seen> {
  readonly status: "present" | "absent" | "unknown";
  readonly seen: Seen;
  readonly drift: readonly Drift[];
  readonly busy?: Busy;
  /** Records of the thing that are damaged; errors keep the plan from being applied. */
  readonly diagnostics?: readonly Diagnostic[];
}

/** What a thing is to be: its leaves, and the hash of those that make it what it is. */
export interface Identity {
  readonly attributes: ReadonlyMap<string, SpecAttribute>;
  /** For attributes that came from another block: which. */
  readonly because: ReadonlyMap<string, Address>;
  readonly hash: Digest;
}

/** An upstream block as already planned. */
export interface Upstream {
  readonly node: SpecNode;
  readonly identity: Identity;
  readonly lineage: Lineage;
  readonly action: Action;
  readonly facts: unknown;
  readonly observation: Observation<unknown>;
}

export interface IdentifyContext<Facts, Seen> {
  readonly node: SpecNode;
  readonly facts: Facts;
  readonly record: StateRecord | undefined;
  readonly observation: Observation<Seen>;
  upstream(address: Address): Upstream;
}

export interface DecideContext<Facts, Seen> extends IdentifyContext<Facts, Seen> {
  readonly identity: Identity;
  /** Differences from the record, deciding ones first. */
  readonly changes: readonly AttributeChange[];
  /** Why it is to be made anew though nothing else asks for it, to be said behind "because". */
  readonly forced: string | undefined;
}

export interface Decision {
  readonly action: Action;
  readonly incarnation: number;
  readonly reasons: readonly string[];
  readonly estimate?: Estimate;
  readonly detail?: Json;
  readonly diagnostics?: readonly Diagnostic[];
}

export interface ReadContext {
  readonly project: ProjectContext;
  readonly address: Address;
  /** Undefined where the block left the spec. */
  readonly node: SpecNode | undefined;
  readonly record: StateRecord | undefined;
  /** Any record, for kinds that must look where another block keeps things. */
  recordOf(address: Address): StateRecord | undefined;
  nodeOf(address: Address): SpecNode | undefined;
  readonly signal: AbortSignal;
}

/** The lease under which an address is worked on. */
export interface HeldLease {
  readonly record: LeaseRecord;
  /** Stops renewing here: a worker process takes it over and releases it. */
  handOver(): void;
}

export interface ActContext<Facts, Seen> {
  readonly project: ProjectContext;
  readonly spec: Spec | undefined;
  readonly address: Address;
  readonly node: SpecNode | undefined;
  readonly facts: Facts | undefined;
  readonly observation: Observation<Seen> | undefined;
  readonly identity: Identity | undefined;
  readonly change: Change;
  readonly record: StateRecord | undefined;
  recordOf(address: Address): StateRecord | undefined;
  nodeOf(address: Address): SpecNode | undefined;
  /** What another address of this plan is or will be when its change is done. */
  lineageOf(address: Address): Lineage | undefined;
  /** Absent where someone else's work is only watched. */
  readonly lease: HeldLease | undefined;
  /** Aborted on the first Ctrl-C: reach a safe point and stop. */
  readonly stop: AbortSignal;
  /** Aborted on the second: stop now. */
  readonly kill: AbortSignal;
  readonly detach: boolean;
  readonly weights: boolean;
  emit(event: EngineEvent): void;
  phase(text: string): void;
}

/** What acting came to. The engine stores `record` unless a worker process does so itself. */
export type Outcome =
  | {
      readonly status: "done";
      /** `unchanged`: nothing came of it, and what was recorded stays. */
      readonly record: OutcomeRecord | "removed" | "by-worker" | "unchanged";
      readonly summary?: string;
    }
  | { readonly status: "detached"; readonly summary?: string }
  | {
      readonly status: "interrupted" | "failed";
      readonly record?: OutcomeRecord | "by-worker";
      readonly diagnostics: readonly Diagnostic[];
      readonly summary?: string;
    };

export interface OutcomeRecord {
  readonly status: RecordStatus;
  readonly results: JsonObject;
  readonly attributes?: Readonly<Record<string, Value>>;
}

export interface Kind<Facts = unknown, Seen = unknown> {
  readonly name: KindName;
  /** No life of its own (a loss): inlined into the blocks that refer to it, never recorded, never a change. */
  readonly isInline?: boolean;
  /** What removal from the spec does: `forget` keeps the thing, `destroy` takes it down. */
  readonly removal: "forget" | "destroy";
  /** How many blocks of the kinds that hold a place on this one it serves at once (a server's model slots). */
  slots?(node: SpecNode): number;
  resolve?(node: SpecNode, project: ProjectContext, signal: AbortSignal): Promise<Resolved<Facts>>;
  /** Moving names that `resolve` looks up in the lock, and adds to it. */
  lockedNames?(node: SpecNode): readonly string[];
  /** Looks at reality; starts nothing, writes nothing, throws only on a bug. */
  read(context: ReadContext): Promise<Observation<Seen>>;
  identify(context: IdentifyContext<Facts, Seen>): Identity;
  /** The `x-change` of an attribute that is no longer written. */
  ruleOf?(path: string): ChangeRule;
  /** Kinds whose actions depend on more than single attributes decide themselves; others follow their `x-change`. */
  decide?(context: DecideContext<Facts, Seen>): Decision;
  /** What a schema cannot say and only the whole plan shows. */
  check?(context: DecideContext<Facts, Seen>): readonly Diagnostic[];
  /** Carries out any action but `none`. */
  act(context: ActContext<Facts, Seen>): Promise<Outcome>;
  /** Waits for a worker that is already on it. */
  attach?(context: ActContext<Facts, Seen>): Promise<Outcome>;
}

export type Kinds = ReadonlyMap<KindName, Kind>;

/** The draft that an outcome stands for. */
export function draftOf(context: ActContext<unknown, unknown>, outcome: OutcomeRecord): StateRecordDraft {
  const { change, identity, record } = context;
  return {
    address: context.address,
    status: outcome.status,
    hash: change.after?.hash ?? record?.hash ?? "sha256:",
    incarnation: change.after?.incarnation ?? record?.incarnation ?? 1,
    attributes: outcome.attributes ?? recordedAttributes(identity),
    dependsOn: context.node ? context.change.dependsOn : (record?.dependsOn ?? []),
    results: outcome.results,
  };
}

/** Leaves worth recording: those that differ from the schema's defaults, so that records stay small and defaults may grow. */
export function recordedAttributes(identity: Identity | undefined): Record<string, Value> {
  const recorded: Record<string, Value> = {};
  for (const [path, attribute] of identity?.attributes ?? []) {
    if (!attribute.isDefault) recorded[path] = recordedValue(attribute.value);
  }
  return recorded;
}

/** Characters of JSON beyond which a value is recorded as its digest: a list of a thousand files is not worth keeping twice. */
const LONGEST_RECORDED = 200;

/** A value as records hold it. Whoever compares with a record compares with this. */
export function recordedValue(value: Value): Value {
  if (typeof value !== "object" && typeof value !== "string") return value;
  const text = canonicalJson(value);
  return text.length > LONGEST_RECORDED ? digestBytes(text) : value;
}
