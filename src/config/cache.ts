/**
 * Parsed files, remembered by content: most plans are over a spec that has not changed since the last one, and parsing YAML is
 * the largest part of a plan without changes. Only files without any fault are remembered. Losing the cache costs time only.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeFileWhole } from "../files.ts";
import type { Source, Span } from "./source.ts";
import type { Entry, Tree } from "./tree.ts";

export interface ParseCacheOptions {
  /** Used only if it exists: looking at a spec makes no folders. */
  readonly folder: string;
  /** Of rlcli: another version may parse differently. */
  readonly version: string;
}

/** [0, start, end, value] · [1, start, end, items] · [2, start, end, [key, keyStart, keyEnd, value, …]] */
type Encoded = readonly [0 | 1 | 2, number, number, unknown];

const KEPT_FILES = 8;

export class ParseCache {
  readonly #options: ParseCacheOptions | undefined;
  constructor(options: ParseCacheOptions | undefined) {
    this.#options = options && existsSync(options.folder) ? options : undefined;
  }

  get(source: Source): Tree | undefined {
    if (!this.#options) return undefined;
    try {
      const stored = JSON.parse(readFileSync(this.#path(source), "utf8")) as { version: string; tree: Encoded };
      return stored.version === this.#options.version ? decode(stored.tree, source) : undefined;
    } catch {
      return undefined;
    }
  }

  put(source: Source, tree: Tree): void {
    if (!this.#options) return;
    const encoded = encode(tree, new Set());
    if (encoded === undefined) return;
    try {
      writeFileWhole(this.#path(source), JSON.stringify({ version: this.#options.version, tree: encoded }), {
        durable: false,
      });
      this.#prune(this.#options.folder);
    } catch {
      // A read-only or full disk: the next plan parses again.
    }
  }

  #path({ digest }: Source): string {
    return join(this.#options?.folder ?? "", `spec-${digest.slice("sha256:".length, "sha256:".length + 24)}.json`);
  }

  #prune(folder: string): void {
    const files = readdirSync(folder)
      .filter((name) => name.startsWith("spec-"))
      .map((name) => join(folder, name));
    if (files.length <= KEPT_FILES) return;
    const ages = files.map((path) => ({ path, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
    for (const { path } of ages.sort((a, b) => b.at - a.at).slice(KEPT_FILES)) rmSync(path, { force: true });
  }
}

/** Undefined for what JSON cannot hold exactly: subtrees that aliases share, infinities, negative zero. */
function encode(tree: Tree, seen: Set<Tree>): Encoded | undefined {
  if (seen.has(tree)) return undefined;
  seen.add(tree);
  const { start, end } = tree.span;
  if (tree.type === "scalar") {
    const { value, isFaulty } = tree;
    const isExact = typeof value !== "number" || (Number.isFinite(value) && !Object.is(value, -0));
    return isExact && !isFaulty && (typeof value !== "object" || value === null) ? [0, start, end, value] : undefined;
  }
  const parts: unknown[] = [];
  for (const [key, entry] of tree.type === "map" ? tree.entries : tree.items.map((item) => ["", item] as const)) {
    const value = encode(tree.type === "map" ? (entry as Entry).value : (entry as Tree), seen);
    if (value === undefined) return undefined;
    if (tree.type === "map") parts.push(key, (entry as Entry).key.span.start, (entry as Entry).key.span.end, value);
    else parts.push(value);
  }
  return [tree.type === "map" ? 2 : 1, start, end, parts];
}

function decode([type, start, end, content]: Encoded, source: Source): Tree {
  const span: Span = { start, end };
  if (type === 0) return { type: "scalar", source, span, value: content as string | number | boolean | null };
  const parts = content as readonly unknown[];
  if (type === 1) return { type: "list", source, span, items: parts.map((part) => decode(part as Encoded, source)) };
  const entries = new Map<string, Entry>();
  for (let at = 0; at < parts.length; at += 4) {
    const key = { source, span: { start: parts[at + 1] as number, end: parts[at + 2] as number } };
    entries.set(parts[at] as string, { key, value: decode(parts[at + 3] as Encoded, source) });
  }
  return { type: "map", source, span, entries };
}
