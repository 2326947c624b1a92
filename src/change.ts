/** One planned change, as data: what the planner decides, what a view prints, what the engine and the kinds carry out. */
import type { Address, KindName } from "./address.ts";
import type { Digest } from "./digest.ts";
import type { ChangeRule } from "./spec.ts";
import type { Json, Value } from "./value.ts";

export const ACTIONS = [
  "create",
  "update",
  "restart",
  "extend",
  "resume",
  "restore",
  "replace",
  "destroy",
  "forget",
  "none",
] as const;
export type Action = (typeof ACTIONS)[number];

/** The mark that plans print for each action (design.md section 3). */
export const ACTION_SYMBOLS: Readonly<Record<Action, string>> = {
  create: "+",
  update: "~",
  restart: "±",
  extend: ">",
  resume: "↻",
  restore: "<",
  replace: "-/+",
  destroy: "-",
  forget: "-",
  none: " ",
};

export interface AttributeChange {
  readonly path: string;
  /** Absent where the attribute is new. */
  readonly before?: Value;
  /** Absent where the attribute goes away. */
  readonly after?: Value;
  readonly rule: ChangeRule;
  /** The address through which this change came, if it was not written on this block itself. */
  readonly because?: Address;
}

/** Reality differing from the record, and the action that mends it. */
export interface Drift {
  readonly message: string;
  readonly mend: Action;
}

export interface Busy {
  /** Who works on it, for people: `worker of run.agent (pid 4242 on host)`. */
  readonly owner: string;
  readonly step?: number;
  readonly steps?: number;
  /** What is being made. */
  readonly lineage?: Lineage;
}

/** What an action is expected to take, from this run's own measured rates. */
export interface Estimate {
  readonly steps?: number;
  readonly tokens?: number;
  readonly seconds?: number;
  readonly gpuHours?: number;
  /** In the currency of the server's `price_per_gpu_hour`. */
  readonly cost?: number;
}

/** Which version of a thing: a generation (or other content hash) and its incarnation. */
export interface Lineage {
  readonly hash: Digest;
  readonly incarnation: number;
}

export interface Change {
  readonly address: Address;
  readonly kind: KindName;
  readonly action: Action;
  /** Why, in full sentences for people; the first is the deciding one. */
  readonly reasons: readonly string[];
  readonly attributes: readonly AttributeChange[];
  readonly drift: readonly Drift[];
  readonly before?: Lineage;
  readonly after?: Lineage;
  /** Planned addresses that must be done first. */
  readonly dependsOn: readonly Address[];
  readonly busy?: Busy;
  readonly estimate?: Estimate;
  /** What the kind decided beyond the action, e.g. `{ fromStep: 40 }`; opaque to planner and engine. */
  readonly detail?: Json;
}
