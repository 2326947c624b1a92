/** Overlays (`-f base.yaml -f prod.yaml`): the later file wins, leaf by leaf. */
import type { Entry, MapTree, Tree } from "./tree.ts";

function mergeTrees(base: Tree, over: Tree): Tree {
  return base.type === "map" && over.type === "map" ? mergeMaps(base, over) : over;
}

/** Maps are merged key by key; lists and scalars are replaced; an empty value takes the base's away. */
export function mergeMaps(base: MapTree, over: MapTree): MapTree {
  const entries = new Map<string, Entry>(base.entries);
  for (const [key, entry] of over.entries) {
    const below = entries.get(key);
    if (below === undefined) entries.set(key, entry);
    else if (entry.value.type === "scalar" && entry.value.value === null && !entry.value.isFaulty) entries.delete(key);
    else entries.set(key, { key: entry.key, value: mergeTrees(below.value, entry.value) });
  }
  return { ...base, entries };
}
