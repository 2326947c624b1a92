/**
 * The schema as a table: one entry per field, by block and dotted path. `fields.gen.ts` holds the data; this is its shape
 * and the ways to look into it.
 */
import type { KindName } from "../address.ts";
import type { ChangeRule } from "../spec.ts";
import type { Json } from "../value.ts";
import { BLOCKS } from "./fields.gen.ts";

/** Blocks of the spec that have fields; `spec` is the file's own top level. */
export type BlockName =
  | "spec"
  | "variable"
  | "server"
  | "dataset"
  | "loss"
  | "environment"
  | "run"
  | "eval"
  | "deployment";

/** `group` is a map with known keys, `map` one with free keys, `list` a list of text, `scalar` any single value. */
export type FieldType = "string" | "integer" | "number" | "boolean" | "scalar" | "list" | "group" | "map";

export interface FieldInfo {
  /** Dotted, within the block. */
  readonly path: string;
  readonly title: string;
  readonly description: string;
  readonly type: FieldType;
  readonly isRequired: boolean;
  /** Absent for groups, whose leaves have their own. */
  readonly change?: ChangeRule;
  /** What a change of a `rule` field comes to, in words. */
  readonly changeNote?: string;
  readonly default?: Json;
  /** In words, where the default depends on something else. */
  readonly defaultText?: string;
  /** All allowed values. */
  readonly values?: readonly (string | number)[];
  /** In words: `greater than 0`. */
  readonly range?: string;
  /** In words: what the text must look like. */
  readonly form?: string;
  /** The field names a block of this kind. */
  readonly ref?: KindName;
  /** Text that is a path relative to the spec. */
  readonly isPath?: boolean;
  /** Must be `${secret.NAME}`. */
  readonly isSecret?: boolean;
  /** `list`: a single value stands for a list of one. Else: a scalar stands for a map with this key. */
  readonly shorthand?: string;
  /** The field means something only where the field `path` has one of `values`. */
  readonly when?: { readonly path: string; readonly values: readonly string[] };
  /** What other tools call it, for "did you mean". */
  readonly also?: readonly string[];
  readonly examples?: readonly Json[];
}

/** Keys of which exactly one (`isRequired`) or at most one may be written, in the group `path` of a block. */
export interface KeyGroup {
  readonly path: string;
  readonly keys: readonly string[];
  readonly isRequired: boolean;
}

export interface BlockInfo {
  readonly name: BlockName;
  readonly title: string;
  readonly description: string;
  readonly fields: readonly FieldInfo[];
  readonly groups: readonly KeyGroup[];
}

const byPath = new Map<BlockName, ReadonlyMap<string, FieldInfo>>();

export function blockInfo(name: BlockName): BlockInfo {
  return BLOCKS[name];
}

/** The block of a kind, or undefined for kinds that this version does not have. */
export function blockOfKind(kind: KindName): BlockInfo | undefined {
  return kind in BLOCKS ? BLOCKS[kind as BlockName] : undefined;
}

/** Fields of a block by path, in schema order. */
export function fieldsOf(name: BlockName): ReadonlyMap<string, FieldInfo> {
  let fields = byPath.get(name);
  if (fields === undefined) {
    fields = new Map(BLOCKS[name].fields.map((field) => [field.path, field]));
    byPath.set(name, fields);
  }
  return fields;
}

/**
 * The field that governs a path: itself, or the free map or list that it lies in (`backend_config.x` → `backend_config`).
 * Undefined for a path that the schema does not know.
 */
export function fieldAt(name: BlockName, path: string): FieldInfo | undefined {
  const fields = fieldsOf(name);
  for (let at = path; ; ) {
    const field = fields.get(at);
    if (field !== undefined) return at === path || field.type === "map" || field.type === "list" ? field : undefined;
    const dot = at.lastIndexOf(".");
    if (dot < 0) return undefined;
    at = at.slice(0, dot);
  }
}
