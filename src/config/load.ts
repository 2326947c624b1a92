/**
 * From files to one spec: parse (text to trees with positions) → normalise (shorthands, overlays, variables, defaults) →
 * rules (what a schema cannot say). The steps run for all that still makes sense after the faults before, so that a user
 * sees all faults of a file at once.
 */
import { dirname } from "node:path";
import { type Address, addressOf, type KindName } from "../address.ts";
import { type Diagnostic, hasErrors } from "../diagnostic.ts";
import type { Spec, SpecInput, SpecNode } from "../spec.ts";
import { type Block, blocksOf, Reporter } from "./blocks.ts";
import { ParseCache, type ParseCacheOptions } from "./cache.ts";
import { expandShorthands } from "./expand.ts";
import { interpolate } from "./interpolate.ts";
import { mergeMaps } from "./merge.ts";
import { LoadedNode } from "./node.ts";
import { normalise } from "./normalise.ts";
import { isProgram, readProgram } from "./program.ts";
import { referencesOf } from "./rules/references.ts";
import type { RuleContext } from "./rules/rule.ts";
import { checkRules } from "./rules.ts";
import { hideSecrets } from "./secrets.ts";
import { checkShape } from "./shape.ts";
import { readSource, Source, type SourceRole } from "./source.ts";
import { child, type MapTree, textOf } from "./tree.ts";
import { Variables } from "./variables.ts";

export interface LoadOptions {
  /** Spec files, YAML or programs (`rlcli.config.ts`, `.mjs`); a later one is laid over the ones before. */
  readonly files: readonly string[];
  /** From --var. */
  readonly variables: Readonly<Record<string, string>>;
  /** From --var-file; a later one wins. */
  readonly variableFiles: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where relative file names start. */
  readonly cwd: string;
  /** Remembers parsed files. */
  readonly cache?: ParseCacheOptions;
}

export interface LoadResult {
  /** Present unless there are errors. */
  readonly spec?: Spec;
  /** By place, warnings included. */
  readonly diagnostics: readonly Diagnostic[];
}

export async function loadSpec(options: LoadOptions): Promise<LoadResult> {
  const loader = new Loader(options);
  const spec = await loader.load();
  const diagnostics = inOrder(loader.diagnostics, loader.sources);
  return spec === undefined || hasErrors(diagnostics) ? { diagnostics } : { spec, diagnostics };
}

class Loader {
  readonly diagnostics: Diagnostic[] = [];
  readonly sources: Source[] = [];
  readonly #options: LoadOptions;
  readonly #cache: ParseCache;
  /** Files without a fault that the cache did not know. */
  readonly #parsed: (readonly [Source, MapTree])[] = [];

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#cache = new ParseCache(options.cache);
  }

  async load(): Promise<Spec | undefined> {
    const { files, variableFiles, variables: given, env } = this.#options;
    const trees = await this.#readAll(files, "spec");
    const variableTrees = await this.#readAll(variableFiles, "variables");
    // A file that could not be read leaves holes that later steps would report as faults of their own.
    if ([...trees, ...variableTrees].includes(undefined)) return undefined;
    const merged = (trees as MapTree[]).map((tree) => expandShorthands(tree, this.diagnostics)).reduce(mergeMaps);
    hideSecrets(merged);
    this.#remember();
    const variables = new Variables(merged, { given, files: variableTrees as MapTree[], env }, this.diagnostics);
    const { tree, inputs } = interpolate(merged, { variables, env }, this.diagnostics);
    variables.reportUnused(this.diagnostics);
    return this.#build(tree, [...variables.inputs, ...inputs]);
  }

  async #readAll(files: readonly string[], role: SourceRole): Promise<(MapTree | undefined)[]> {
    const trees: (MapTree | undefined)[] = [];
    for (const file of files) trees.push(await this.#read(file, role));
    return trees;
  }

  /** A file's tree; undefined where it holds no map, which is then reported. */
  async #read(file: string, role: SourceRole): Promise<MapTree | undefined> {
    const source = isProgram(file) ? await readProgram(file, this.#options) : readSource(file, this.#options.cwd, role);
    if (!(source instanceof Source)) {
      this.diagnostics.push(source);
      return undefined;
    }
    this.sources.push(source);
    const known = this.#cache.get(source);
    if (known?.type === "map") return known;
    // The YAML library loads only where there is something new to parse.
    const { tree, diagnostics } = (await import("./parse.ts")).parseYaml(source);
    this.diagnostics.push(...diagnostics);
    if (tree?.type === "map" && diagnostics.length === 0) this.#parsed.push([source, tree]);
    if (tree?.type === "map") return tree;
    if (tree !== undefined && !hasErrors(diagnostics)) {
      const what = tree.type === "list" ? "a list" : "a single value";
      const detail = `The file holds ${what}, not a map of keys and values such as \`project: support-agent\`.`;
      this.diagnostics.push(source.diagnostic("RL1102", detail, { start: tree.span.start, end: tree.span.start + 1 }));
    }
    return undefined;
  }

  /** A file with a secret in the open leaves no copy of it. */
  #remember(): void {
    for (const [source, tree] of this.#parsed) if (!source.hasHidden) this.#cache.put(source, tree);
  }

  #build(tree: MapTree, environment: readonly SpecInput[]): Spec {
    const { faulty } = checkShape(tree, this.diagnostics);
    const context = ruleContext(blocksOf(tree), faulty, new Reporter(this.diagnostics));
    const references = new Map([...context.blocks].map(([address, block]) => [address, referencesOf(block, context)]));
    checkRules(context);
    const nodes = new Map<Address, SpecNode>();
    if (!hasErrors(this.diagnostics))
      for (const [address, block] of context.blocks)
        nodes.set(
          address,
          new LoadedNode(block, normalise(block, context), references.get(address) ?? [], this.sources),
        );
    const files = this.sources.map(({ path, digest }): SpecInput => ({ type: "file", path, digest }));
    return Object.freeze({
      project: textOf(child(tree, "project")) ?? "",
      folder: dirname(this.sources[0]?.path ?? this.#options.cwd),
      nodes,
      inputs: Object.freeze([...files, ...environment]),
    });
  }
}

function ruleContext(
  blocks: ReadonlyMap<Address, Block>,
  faulty: ReadonlySet<Address>,
  reporter: Reporter,
): RuleContext {
  const byKind = new Map<KindName, Map<string, Block>>();
  for (const block of blocks.values()) {
    const named = byKind.get(block.kind) ?? new Map<string, Block>();
    named.set(block.name, block);
    byKind.set(block.kind, named);
  }
  const none: ReadonlyMap<string, Block> = new Map();
  const ofKind = (kind: KindName): ReadonlyMap<string, Block> => byKind.get(kind) ?? none;
  const servers = [...ofKind("server").keys()];
  return {
    blocks,
    reporter,
    ofKind,
    isFaulty: (block) => faulty.has(addressOf(block.kind, block.name)),
    onlyServer: servers.length === 1 ? servers[0] : undefined,
  };
}

/**
 * Without a place first (the command line), then by file and place. A fault in a value that aliases share is one fault:
 * it is reported of the first block.
 */
function inOrder(diagnostics: readonly Diagnostic[], sources: readonly Source[]): readonly Diagnostic[] {
  const fileIndex = new Map(sources.map((source, i) => [source.file, i]));
  const key = (d: Diagnostic): readonly [number, number] =>
    d.range === undefined ? [-1, 0] : [fileIndex.get(d.range.file) ?? 0, d.range.start.offset];
  const distinct = new Map<string, Diagnostic>();
  for (const d of diagnostics) {
    const { file = "", start, end } = d.range ?? {};
    const id = `${file}\0${start?.offset}\0${end?.offset}\0${d.code}\0${d.detail}`;
    if (!distinct.has(id)) distinct.set(id, d);
  }
  return [...distinct.values()]
    .map((d) => ({ d, at: key(d) }))
    .sort((a, b) => a.at[0] - b.at[0] || a.at[1] - b.at[1])
    .map(({ d }) => sources[fileIndex.get(d.range?.file ?? "") ?? -1]?.masked(d) ?? d);
}
