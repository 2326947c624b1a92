/** What a dataset is, without importing it: known at plan, part of every generation that trains on it. */
import { stat } from "node:fs/promises";
import type { Address } from "../address.ts";
import type { SourceRange } from "../diagnostic.ts";
import { type Digest, digestFile, digestJson } from "../digest.ts";
import type { ImportOptions } from "./options.ts";
import { defaultDedupe, formatNamed } from "./registry.ts";
import { findSources, type SourceFile, unreadable } from "./sources.ts";
import { TABLE_VERSION, tableForm } from "./tables.ts";

/** Raised whenever equal sources and options would give other rows than before. */
export const IMPORTER_VERSION = 1;

export interface DatasetRequest {
  /** A format's name, or `auto`. */
  readonly format: string;
  /** Files or globs. */
  readonly from: readonly string[];
  /** The files that names of `from` stand for, where something else found and digested them (a hub); they may not be here yet. */
  readonly pinned?: ReadonlyMap<string, readonly DatasetSource[]>;
  /** Where relative names of `from` start. Absolute. */
  readonly baseFolder: string;
  readonly options: ImportOptions;
  /** Rows of our own form (`source:`), taken with all their fields. */
  readonly isVerbatim?: boolean;
  /** Model folder that `max_tokens` counts with; its digest is in the options. */
  readonly tokenizerFolder?: string;
  /** Damaged lines that are borne; one more fails the import. Decides no row, so it is no part of the identity. */
  readonly maxErrors?: number;
}

export interface DatasetSource extends SourceFile {
  /** Of the content, or of what else it is known by (`identity`). */
  readonly digest: Digest;
  readonly bytes: number;
}

export interface DatasetIdentity {
  readonly digest: Digest;
  readonly sources: readonly DatasetSource[];
}

/** Where a diagnostic about a dataset belongs. */
export interface DiagnosticPlace {
  readonly address?: Address | undefined;
  readonly range?: SourceRange | undefined;
}

export interface IdentityContext extends DiagnosticPlace {
  readonly signal?: AbortSignal;
  /** May answer from a cache. */
  readonly digestFile?: (path: string) => Promise<Digest>;
}

/** File names stay outside: a renamed file is the same data, unless it is now read as another thing. */
export function identityDigest(
  { format, options, isVerbatim }: Pick<DatasetRequest, "format" | "options" | "isVerbatim">,
  sources: readonly Pick<DatasetSource, "name" | "digest">[],
): Digest {
  // An import of `messages` takes roles and content alone, a source of the same file every field: they must not meet.
  const form = format === "messages" && !isVerbatim ? { rows: "plain" } : {};
  const tables = sources.map(({ name }) => tableForm(name) ?? null);
  const readAs = tables.some((table) => table !== null) ? { tables, table: TABLE_VERSION } : {};
  const digests = sources.map((s) => s.digest);
  return digestJson({
    importer: IMPORTER_VERSION,
    format,
    options: withoutDefault(format, options),
    ...form,
    ...readAs,
    sources: digests,
  });
}

/** What a named format does anyway says nothing; what `auto` will find is not known here. */
function withoutDefault(format: string, options: ImportOptions): ImportOptions {
  const { dedupe, ...rest } = options;
  return format !== "auto" && dedupe === defaultDedupe(formatNamed(format)) ? rest : options;
}

/** The files to read, each once. Fails with RL6001 or RL6002. */
export async function sourceFiles(
  { from, baseFolder, pinned = NONE_PINNED }: Pick<DatasetRequest, "from" | "baseFolder" | "pinned">,
  place: DiagnosticPlace = {},
): Promise<readonly (SourceFile | DatasetSource)[]> {
  const files = new Map<string, SourceFile | DatasetSource>();
  for (const name of from)
    for (const file of pinned.get(name) ?? (await findSources([name], baseFolder, place)))
      if (!files.has(file.path)) files.set(file.path, file);
  return [...files.values()];
}

const NONE_PINNED: NonNullable<DatasetRequest["pinned"]> = new Map();

/** Hashes the sources that are not pinned. Fails with RL6001 or RL6002 where a file is missing or a glob matches nothing. */
export async function datasetIdentity(
  request: DatasetRequest,
  context: IdentityContext = {},
): Promise<DatasetIdentity> {
  const digestOf = context.digestFile ?? ((path: string) => digestFile(path, context.signal));
  const sources: DatasetSource[] = [];
  for (const file of await sourceFiles(request, context)) {
    if ("digest" in file) sources.push(file);
    else sources.push(await digested(file, digestOf, context));
  }
  return { digest: identityDigest(request, sources), sources };
}

async function digested(
  { name, path }: SourceFile,
  digestOf: (path: string) => Promise<Digest>,
  context: IdentityContext,
): Promise<DatasetSource> {
  try {
    return { name, path, digest: await digestOf(path), bytes: (await stat(path)).size };
  } catch (error) {
    context.signal?.throwIfAborted();
    return unreadable(name, error, context);
  }
}
