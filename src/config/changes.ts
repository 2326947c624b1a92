/** What the schema says about a path of a block: the way in for planners, kinds and `rlcli explain`. */
import type { KindName } from "../address.ts";
import type { ChangeRule } from "../spec.ts";
import { type BlockName, blockOfKind, type FieldInfo, fieldAt } from "./fields.ts";

/** The field that governs a dotted path of a kind's block; undefined for paths that the schema does not know. */
export function fieldOf(kind: KindName, path: string): FieldInfo | undefined {
  return blockOfKind(kind) === undefined ? undefined : fieldAt(kind as BlockName, path);
}

/** What a change at a path does; `none` for paths that the schema does not know. */
export function changeRule(kind: KindName, path: string): ChangeRule {
  return fieldOf(kind, path)?.change ?? "none";
}

const CHANGE_WORDS: Readonly<Record<KindName, Partial<Record<ChangeRule, string>>>> = {
  server: {
    replace: "The server is replaced by a new one. Its checkpoint folder stays.",
    restart: "The server restarts; runs on it pause at the end of a step and resume.",
    update: "Taken over in place; nothing restarts.",
  },
  dataset: {},
  loss: { replace: "Runs that use the loss are trained anew." },
  run: {
    replace: "The run is trained anew as a new generation; checkpoints of the old one stay until they are pruned.",
    update: "Taken over in place; nothing is trained.",
  },
  environment: {},
  eval: {},
  deployment: {},
};

const NO_CHANGE = "Nothing happens to what exists; the new value counts from the next time it is needed.";

/** What a change of a field does, in a sentence; undefined for groups. */
export function changeWords(kind: KindName, field: FieldInfo): string | undefined {
  if (field.change === undefined) return undefined;
  return field.changeNote ?? CHANGE_WORDS[kind][field.change] ?? NO_CHANGE;
}
