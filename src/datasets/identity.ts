/** What a dataset is, without importing it: known at plan, part of every generation that trains on it. */
import { stat } from "node:fs/promises";
import type { Address } from "../address.ts";
import type { SourceRange } from "../diagnostic.ts";
import { type Digest, digestFile, digestJson } from "../digest.ts";
import type { ImportOptions } from "./convert.ts";
import { findSources, unreadable } from "./sources.ts";

/** Raised whenever equal sources and options would give other rows than before. */
export const IMPORTER_VERSION = 1;

export interface DatasetRequest {
  /** A format's name, or `auto`. */
  readonly format: string;
  /** Files or globs. */
  readonly from: readonly string[];
  /** Where relative names of `from` start. Absolute. */
  readonly baseFolder: string;
  readonly options: ImportOptions;
}

export interface DatasetSource {
  /** As named in the spec, or found by its glob. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
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

/** File names stay outside: a renamed file is the same data. */
export function identityDigest(
  { format, options }: Pick<DatasetRequest, "format" | "options">,
  sources: readonly Pick<DatasetSource, "digest">[],
): Digest {
  return digestJson({ importer: IMPORTER_VERSION, format, options, sources: sources.map((s) => s.digest) });
}

/** Hashes the sources. Fails with RL6001 or RL6002 where a file is missing or a glob matches nothing. */
export async function datasetIdentity(
  request: DatasetRequest,
  context: IdentityContext = {},
): Promise<DatasetIdentity> {
  const digestOf = context.digestFile ?? ((path: string) => digestFile(path, context.signal));
  const sources: DatasetSource[] = [];
  for (const { name, path } of await findSources(request.from, request.baseFolder, context)) {
    try {
      sources.push({ name, path, digest: await digestOf(path), bytes: (await stat(path)).size });
    } catch (error) {
      context.signal?.throwIfAborted();
      unreadable(name, error, context);
    }
  }
  return { digest: identityDigest(request, sources), sources };
}
