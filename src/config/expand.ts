/** Step 2a: shorthands to the long form, file by file, so that an overlay may use another form than the base. */
import { BLOCK_KEYS, KINDS, type KindName } from "../address.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { blockOfKind, type FieldInfo } from "./fields.ts";
import { type Entry, type MapTree, mapAt, mapEntries, type Tree, withEntry } from "./tree.ts";

/** Kinds of which a spec may hold a single unnamed block, and the name it gets. */
const SINGLE_NAME = "default";

function shorthandFields(kind: KindName): readonly FieldInfo[] {
  return blockOfKind(kind)?.fields.filter((field) => field.shorthand !== undefined) ?? [];
}

function expandValue(value: Tree, shorthand: string): Tree {
  if (value.type !== "scalar" || value.value === null) return value;
  const { source, span } = value;
  if (shorthand === "list") return { type: "list", items: [value], source, span };
  return { type: "map", entries: new Map([[shorthand, { key: value, value }]]), source, span };
}

function expandBlocks(blocks: Tree, kind: KindName): Tree {
  const fields = shorthandFields(kind);
  if (blocks.type !== "map" || fields.length === 0) return blocks;
  return mapEntries(blocks, (block) =>
    fields.reduce(
      (tree, field) => mapAt(tree, field.path.split("."), (value) => expandValue(value, field.shorthand ?? "")),
      block,
    ),
  );
}

/** `server: {…}` → `servers: { default: {…} }`. Both at once is a fault: which one is `default`? */
function expandSingle(root: MapTree, diagnostics: Diagnostic[]): MapTree {
  const single = root.entries.get("server");
  if (single === undefined) return root;
  const plural = root.entries.get("servers");
  if (plural !== undefined) {
    const { source, span } = single.key;
    diagnostics.push(
      source.diagnostic(
        "RL1109",
        "`server` is short for a single server; with `servers` write it there, with a name.",
        span,
      ),
    );
    return withEntry(root, "server", undefined);
  }
  const { source, span } = single.value;
  const named: Tree = { type: "map", entries: new Map([[SINGLE_NAME, single]]), source, span };
  const servers: Entry = { key: single.key, value: named };
  // In its place, so that blocks keep the order of the file.
  return {
    ...root,
    entries: new Map([...root.entries].map(([key, entry]) => (key === "server" ? ["servers", servers] : [key, entry]))),
  };
}

export function expandShorthands(root: MapTree, diagnostics: Diagnostic[]): MapTree {
  let tree = expandSingle(root, diagnostics);
  for (const kind of KINDS) tree = mapAt(tree, [BLOCK_KEYS[kind]], (blocks) => expandBlocks(blocks, kind)) as MapTree;
  return tree;
}
