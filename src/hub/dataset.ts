/**
 * A dataset of a hub, pinned: a moving name becomes a commit and a list of files with their digests, known without downloading what
 * is large (the hub keeps large files by their sha256). Files are downloaded when their rows are needed.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Diagnostic, type DiagnosticOptions, diagnostic, fail, RlcliError } from "../diagnostic.ts";
import { type Digest, digestJson } from "../digest.ts";
import { writeFileWhole } from "../files.ts";
import type { LockEntry } from "../lock.ts";
import { BlobCache, type Part } from "../remote/cache.ts";
import { didYouMean } from "../suggest.ts";
import { HubClient, type RequestOptions } from "./client.ts";
import { convertedLayout, declaredColumns, type Layout, ownLayout } from "./layout.ts";
import { isPinnedDataset, type PinnedDataset, type PinnedFile } from "./pinned.ts";
import type { HubReference } from "./reference.ts";
import type { HubSettings } from "./settings.ts";

/** The hub's own conversion of a dataset to Parquet. */
const CONVERSION = "refs/convert/parquet";

/** A file of a repository as the hub lists it. */
interface ListedFile {
  readonly path: string;
  readonly bytes: number;
  /** Only of large files. */
  readonly digest: Digest | undefined;
}

interface Repository {
  readonly revision: string;
  readonly commit: string;
  readonly files: readonly ListedFile[];
}

export interface Pinning {
  readonly pinned: PinnedDataset;
  readonly diagnostics: readonly Diagnostic[];
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof RlcliError ? error.diagnostics[0]?.code : undefined;

export interface HubOptions {
  readonly settings: HubSettings;
  /** Shared by projects. Absolute. */
  readonly cacheFolder: string;
  readonly signal: AbortSignal;
  readonly place?: DiagnosticOptions;
}

export class DatasetHub {
  readonly #client: HubClient;
  readonly #blobs: BlobCache;
  readonly #pinsFolder: string;
  readonly #options: RequestOptions;

  constructor({ settings, cacheFolder, signal, place }: HubOptions, client = new HubClient(settings)) {
    this.#client = client;
    this.#blobs = new BlobCache(join(cacheFolder, "hub", "blobs"));
    this.#pinsFolder = join(cacheFolder, "hub", "pins");
    this.#options = { signal, ...(place ? { place } : {}) };
  }

  /**
   * What a reference stands for now; offline, or with a warning where the hub does not answer, what it stood for when it was last
   * asked. `isFresh` wants no such answer. Fails with RL6020 to RL6022.
   */
  async pin(reference: HubReference, { isFresh = false } = {}): Promise<Pinning> {
    const remembered = isFresh ? undefined : this.#remembered(reference);
    if (this.#client.settings.isOffline)
      return { pinned: remembered ?? this.#offline(`what ${reference.text} is`), diagnostics: [] };
    try {
      const pinned = await this.#ask(reference);
      this.#remember(reference, pinned);
      return { pinned, diagnostics: [] };
    } catch (error) {
      if (!remembered || codeOf(error) !== "RL6020") throw error;
      const { detail } = (error as RlcliError).diagnostics[0] as Diagnostic;
      const text = `${detail} Taken is what ${reference.text} was when it was last asked: commit ${remembered.commit.slice(0, 12)}.`;
      return { pinned: remembered, diagnostics: [diagnostic("RL6024", text, this.#options.place)] };
    }
  }

  /** Where a file's content lies once it is downloaded. */
  pathOf({ digest }: PinnedFile): string {
    return this.#blobs.path(digest);
  }

  /** Bytes of a dataset that are not here yet. */
  missingBytes({ files }: PinnedDataset): number {
    return files.reduce((sum, { digest, bytes }) => sum + (this.#blobs.has(digest) ? 0 : bytes), 0);
  }

  /** Fails with RL6020 where files are missing and must not be fetched. */
  requireReachable(pinned: PinnedDataset): void {
    if (this.#client.settings.isOffline && this.missingBytes(pinned) > 0) this.#offline(`the files of ${pinned.id}`);
  }

  /** Downloads what is missing. Fails with RL6020 to RL6023 or RL6006. */
  async download(pinned: PinnedDataset, onProgress?: (doneBytes: number) => void): Promise<void> {
    this.requireReachable(pinned);
    let before = 0;
    for (const file of pinned.files) {
      const { path, digest, bytes } = file;
      await this.#blobs.fetch(
        { name: `${path} of ${pinned.id}`, key: digest, content: digest, bytes },
        (part) => this.#fill(part, fileUrl(pinned.id, pinned.commit, path), bytes),
        { place: this.#options.place, onProgress: (done) => onProgress?.(before + done) },
      );
      before += bytes;
    }
  }

  async #fill(part: Part, url: string, bytes: number): Promise<void> {
    const take = async (start: number, body: AsyncIterable<Uint8Array>): Promise<void> => {
      if (start === 0) await part.begin();
      for await (const chunk of body) {
        await part.append(chunk);
        if (part.bytes > bytes) return;
      }
      if (part.bytes < bytes) throw new Error("the connection ended before the file did");
    };
    await this.#client.stream(url, () => part.bytes, take, this.#options);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async #ask(reference: HubReference): Promise<PinnedDataset> {
    const revision = reference.revision ?? "main";
    const own = await this.#repository(reference.id, revision);
    const readme = await this.#readme(reference.id, own);
    let found = { repository: own, layout: layoutOf(own, readme) };
    if (found.layout.size === 0 && reference.revision === undefined) {
      const converted = await this.#conversion(reference.id);
      if (converted) found = { repository: converted, layout: convertedLayout(converted.files) };
    }
    const { repository, layout } = found;
    if (layout.size === 0) this.#unreadable(reference, repository);
    const [config, splits] = this.#choose(reference, "configuration", reference.config, layout);
    const [split, files] = this.#choose(reference, "split", reference.split, splits);
    const { id } = reference;
    return {
      type: "hub-dataset",
      id,
      revision: repository.revision,
      commit: repository.commit,
      config,
      split,
      files: await this.#withDigests(id, repository.commit, files),
      ...columnsOf(files, readme, config),
    };
  }

  async #repository(id: string, revision: string): Promise<Repository> {
    const path = `/api/datasets/${id}/revision/${encodeURIComponent(revision)}?blobs=true`;
    const answer = (await this.#client.json(path, this.#options)) as { sha?: unknown; siblings?: unknown } | null;
    const siblings = answer?.siblings;
    if (typeof answer?.sha !== "string" || !Array.isArray(siblings))
      return fail(
        "RL6020",
        `${this.#client.settings.endpoint}${path} answered with something else than a dataset.`,
        this.#options.place,
      );
    return { revision, commit: answer.sha, files: siblings.map(listed) };
  }

  /** Undefined where the hub has not converted it. */
  async #conversion(id: string): Promise<Repository | undefined> {
    try {
      return await this.#repository(id, CONVERSION);
    } catch (error) {
      if (codeOf(error) === "RL6022") return undefined;
      throw error;
    }
  }

  async #readme(id: string, { commit, files }: Repository): Promise<string | undefined> {
    if (!files.some(({ path }) => path === "README.md")) return undefined;
    return (await this.#client.bytes(fileUrl(id, commit, "README.md"), this.#options)).toString();
  }

  /** The named one, the only one, or the one called `default`; else RL6022 with what there is. */
  #choose<T>(
    reference: HubReference,
    what: string,
    name: string | undefined,
    among: ReadonlyMap<string, T>,
  ): [string, T] {
    const names = [...among.keys()];
    const chosen = name ?? (names.length === 1 ? names[0] : names.find((n) => n === "default"));
    const found = chosen === undefined ? undefined : among.get(chosen);
    if (chosen !== undefined && found !== undefined) return [chosen, found];
    const list = names.map((n) => `\`${n}\``).join(", ");
    const isPartial = name !== undefined && among.has(`partial-${name}`);
    const partial = isPartial ? " The hub has converted only a part of that split." : "";
    const detail =
      name === undefined
        ? `${reference.text} has several: ${list}. Name one: hf://ORG/NAME/CONFIG/SPLIT.`
        : `The dataset ${reference.id} has no ${what} \`${name}\`, but ${list}.${didYouMean(name, names)}${partial}`;
    return fail("RL6022", detail, this.#options.place);
  }

  #unreadable({ id }: HubReference, { revision, files }: Repository): never {
    const some = files
      .slice(0, 5)
      .map(({ path }) => path)
      .join(", ");
    return fail(
      "RL6022",
      `It cannot be told which files of ${id} (${revision}) are which split: neither its README nor their names say so${some ? ` (${some}${files.length > 5 ? ", …" : ""})` : ""}. Try ${`hf://${id}/CONFIG/SPLIT@${CONVERSION}`}, or download a file and name it as \`source:\`.`,
      this.#options.place,
    );
  }

  /** The hub tells the digests of large files; small ones are fetched for it. */
  async #withDigests(id: string, commit: string, files: readonly ListedFile[]): Promise<PinnedFile[]> {
    const pinned: PinnedFile[] = [];
    for (const { path, bytes, digest } of files) {
      if (digest !== undefined) pinned.push({ path, digest, bytes });
      else {
        const content = await this.#client.bytes(fileUrl(id, commit, path), this.#options);
        pinned.push({ path, digest: this.#blobs.put(content), bytes: content.length });
      }
    }
    return pinned;
  }

  #offline(what: string): never {
    return fail(
      "RL6020",
      `HF_HUB_OFFLINE is set, and ${what} is not in the cache. Run this once without it.`,
      this.#options.place,
    );
  }

  #pinPath(reference: HubReference): string {
    const key = digestJson({ endpoint: this.#client.settings.endpoint, name: reference.text });
    return join(this.#pinsFolder, `${key.slice(7)}.json`);
  }

  /** For offline use later; failing to write it fails nothing. */
  #remember(reference: HubReference, pinned: PinnedDataset): void {
    try {
      writeFileWhole(this.#pinPath(reference), JSON.stringify({ formatVersion: 1, pinned }), { durable: false });
    } catch {
      // A read-only cache.
    }
  }

  #remembered(reference: HubReference): PinnedDataset | undefined {
    try {
      const { formatVersion, pinned } = JSON.parse(readFileSync(this.#pinPath(reference), "utf8")) as {
        formatVersion: number;
        pinned: LockEntry;
      };
      return formatVersion === 1 && isPinnedDataset(pinned) ? pinned : undefined;
    } catch {
      return undefined;
    }
  }
}

const layoutOf = ({ revision, files }: Repository, readme: string | undefined): Layout<ListedFile> =>
  revision.startsWith("refs/convert/") ? convertedLayout(files) : ownLayout(files, readme);

/** Of other forms the README may tell what a program makes of the files, rather than what is in them. */
function columnsOf(files: readonly ListedFile[], readme: string | undefined, config: string) {
  const columns = files.every(({ path }) => /\.parquet$/i.test(path)) ? declaredColumns(readme, config) : undefined;
  return columns === undefined ? {} : { columns };
}

function listed(sibling: unknown): ListedFile {
  const { rfilename, size, lfs } = (sibling ?? {}) as {
    rfilename?: unknown;
    size?: unknown;
    lfs?: { sha256?: unknown; size?: unknown } | null;
  };
  const sha256 = lfs?.sha256;
  const isLarge = typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256);
  return {
    path: String(rfilename),
    bytes: Number((isLarge ? lfs?.size : size) ?? 0),
    digest: isLarge ? `sha256:${sha256}` : undefined,
  };
}

const fileUrl = (id: string, commit: string, path: string): string =>
  `/datasets/${id}/resolve/${commit}/${path.split("/").map(encodeURIComponent).join("/")}`;
