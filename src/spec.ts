/**
 * What `config/` hands on: one validated, normalised spec that still knows where each value was written. Nothing after
 * it reads YAML. A path is dotted, with list indexes as numbers: `import.from.0`.
 */
import type { Address, KindName } from "./address.ts";
import type { SourceRange } from "./diagnostic.ts";
import type { Digest } from "./digest.ts";
import type { Value, ValueObject } from "./value.ts";

/**
 * What a change to a field does to the thing that exists (`x-change` in the schema). `rule` fields are decided by their
 * kind, which knows what else matters (`steps`, schedules, `on_data_change`).
 */
export type ChangeRule = "replace" | "restart" | "extend" | "update" | "none" | "rule";

/** One leaf of a block: its value and what changing it means. Lists of scalars are leaves; maps are not. */
export interface SpecAttribute {
  readonly value: Value;
  readonly change: ChangeRule;
  /** Equal to the schema's default (written or not): left out of hashes, so that a new default never retrains. */
  readonly isDefault: boolean;
}

/** A typed reference from a field (`x-ref` in the schema): `from: warmup@40` is { path: "from", to: "run.warmup", selector: "40" }. */
export interface Reference {
  readonly path: string;
  readonly to: Address;
  readonly selector?: string;
}

export interface SpecNode {
  readonly address: Address;
  readonly kind: KindName;
  readonly name: string;
  /** Shorthands expanded, defaults filled in, variables and environment resolved; secrets are SecretRef values. */
  readonly body: ValueObject;
  /** Leaves of `body` by path, in schema order, reference fields included (as the referenced name). */
  readonly attributes: ReadonlyMap<string, SpecAttribute>;
  readonly references: readonly Reference[];
  /** The block's name in the file. */
  readonly range: SourceRange;
  /** Where a path was written; the nearest written ancestor where a default stands in. */
  rangeOf(path: string): SourceRange;
  /** The source line on which a range starts, for diagnostics. */
  lineOf(range: SourceRange): string;
}

export interface Spec {
  readonly project: string;
  /** Folder of the first spec file: relative paths in the spec start here, and `.rlcli/` lies here. Absolute. */
  readonly folder: string;
  /** In the order of the files. */
  readonly nodes: ReadonlyMap<Address, SpecNode>;
  /** Every file and environment variable that was read, for the staleness rule of saved plans. */
  readonly inputs: readonly SpecInput[];
}

export type SpecInput =
  | { readonly type: "file"; readonly path: string; readonly digest: Digest }
  | { readonly type: "env"; readonly name: string; readonly digest: Digest };
