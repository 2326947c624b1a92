/** The blocks of a spec's tree, and a place to report their faults. */
import { type Address, addressOf, BLOCK_KEYS, KINDS, type KindName } from "../address.ts";
import type { DiagnosticCode } from "../codes.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { didYouMean } from "../suggest.ts";
import { blockOfKind } from "./fields.ts";
import { type Entry, entriesOf, type MapTree, type Tree } from "./tree.ts";

export interface Block {
  readonly address: Address;
  readonly kind: KindName;
  readonly name: string;
  readonly entry: Entry;
  readonly tree: Tree;
}

const KIND_BY_KEY = new Map(KINDS.filter((kind) => blockOfKind(kind)).map((kind) => [BLOCK_KEYS[kind], kind]));

/** The kind whose blocks a top-level key holds. */
export function kindOfKey(key: string): KindName | undefined {
  return KIND_BY_KEY.get(key);
}

/** All blocks by address, in the order of the file. */
export function blocksOf(root: MapTree): Map<Address, Block> {
  const blocks = new Map<Address, Block>();
  for (const [key, { value }] of root.entries) {
    const kind = kindOfKey(key);
    if (kind === undefined) continue;
    for (const [name, entry] of entriesOf(value)) {
      const address = addressOf(kind, name);
      blocks.set(address, { address, kind, name, entry, tree: entry.value });
    }
  }
  return blocks;
}

/** Looking for what was meant compares with every name, so a spec with thousands of faults gets the hint only so often. */
const MOST_SUGGESTIONS = 50;

/** Collects faults of blocks. */
export class Reporter {
  readonly diagnostics: Diagnostic[];
  #suggestions = 0;

  constructor(diagnostics: Diagnostic[]) {
    this.diagnostics = diagnostics;
  }

  /** At the value of a path within a block, or the nearest thing written above it. */
  at(block: Block, path: string, code: DiagnosticCode, detail: string): void {
    const place = valuePlace(block, path);
    this.diagnostics.push(place.source.diagnostic(code, detail, place.span, { address: block.address }));
  }

  /** At the key of a path within a block; the block's name where the path is empty. */
  atKey(block: Block, path: string, code: DiagnosticCode, detail: string): void {
    const { key } = nearestEntry(block, path).entry;
    this.diagnostics.push(key.source.diagnostic(code, detail, key.span, { address: block.address }));
  }

  didYouMean(name: string, candidates: Iterable<string>): string {
    this.#suggestions += 1;
    return this.#suggestions > MOST_SUGGESTIONS ? "" : didYouMean(name, candidates);
  }
}

/** The entry at a path within a block, or of the nearest written ancestor, which may be the block itself. */
function nearestEntry(
  block: Block,
  path: string,
): { readonly entry: Entry; readonly isExact: boolean; readonly item?: Tree } {
  let entry = block.entry;
  let item: Tree | undefined;
  for (const key of path === "" ? [] : path.split(".")) {
    const at: Tree = item ?? entry.value;
    if (at.type === "list" && at.items[Number(key)] !== undefined) {
      item = at.items[Number(key)];
      continue;
    }
    const next = at.type === "map" ? at.entries.get(key) : undefined;
    if (next === undefined) return { entry, isExact: false, ...(item && { item }) };
    entry = next;
    item = undefined;
  }
  return { entry, isExact: true, ...(item && { item }) };
}

/** Where to point for a path: its value if written, else the key of the nearest ancestor (a block's value is long). */
export function valuePlace(block: Block, path: string): Pick<Tree, "source" | "span"> {
  const { entry, isExact, item } = nearestEntry(block, path);
  if (item !== undefined) return item;
  const isLong = entry.value.type === "map" || entry.value.span.start === entry.value.span.end;
  return isExact && !isLong && path !== "" ? entry.value : entry.key;
}
