/** `source: https://…`, `from: s3://…`: where datasets of the spec meet addresses, lock and cache. Used through `moving.ts`. */
import { join } from "node:path";
import type { DatasetSource } from "../datasets/identity.ts";
import { type DiagnosticOptions, fail } from "../diagnostic.ts";
import type { ProjectContext } from "../kind.ts";
import { LOCK_FILE, type LockEntry } from "../lock.ts";
import { BlobCache } from "../remote/cache.ts";
import { identityOf, nameOf, type PinnedFile } from "../remote/file.ts";
import { RemoteFiles } from "../remote/remote.ts";
import type { SpecNode } from "../spec.ts";
import { downloadText } from "./hub.ts";

/** What a name of an address resolved to, as `rlcli.lock` keeps it. */
interface RemoteEntry extends LockEntry {
  readonly type: "remote-files";
  readonly files: readonly (PinnedFile & { readonly [key: string]: string | number })[];
}

export class RemoteSources {
  readonly #node: SpecNode;
  readonly #project: ProjectContext;
  readonly #signal: AbortSignal;
  readonly #place: DiagnosticOptions;
  readonly #blobs: BlobCache;
  readonly #files = new Map<string, PinnedFile>();
  /** What the lock says, which may be of another day. */
  readonly #fromLock = new Set<PinnedFile>();

  constructor(node: SpecNode, project: ProjectContext, signal: AbortSignal) {
    this.#node = node;
    this.#project = project;
    this.#signal = signal;
    const range = node.rangeOf(node.attributes.has("source") ? "source" : "import.from");
    this.#place = { address: node.address, range, sourceLine: node.lineOf(range) };
    this.#blobs = new BlobCache(remoteBlobs(project.cacheFolder));
  }

  /** By name, its files as a dataset's sources. */
  async pin(names: readonly string[]): Promise<ReadonlyMap<string, readonly DatasetSource[]>> {
    const byName = new Map<string, readonly DatasetSource[]>();
    await this.#with(async (remote) => {
      for (const name of names) {
        const files = this.#locked(name) ?? (await this.#ask(remote, name));
        byName.set(
          name,
          files.map((file) => this.#source(file)),
        );
      }
    });
    return byName;
  }

  verbs() {
    return {
      download: (onProgress: (text: string) => void) => this.#download(onProgress),
      requireReachable: () => this.#requireReachable(),
    };
  }

  async #requireReachable(): Promise<void> {
    const missing = this.#missing().filter((file) => this.#fromLock.has(file));
    if (missing.length > 0)
      await this.#with(async (remote) => {
        for (const file of missing) await remote.verify(file);
      });
  }

  async #download(onProgress: (text: string) => void): Promise<void> {
    const missing = this.#missing();
    if (missing.length === 0) return;
    const total = missing.reduce((sum, { bytes }) => sum + bytes, 0);
    const tell = downloadText(total, onProgress);
    let before = 0;
    await this.#with(async (remote) => {
      for (const file of missing) {
        await cacheRemote(this.#blobs, remote, file, { place: this.#place, onProgress: (done) => tell(before + done) });
        before += file.bytes;
      }
    });
  }

  #missing(): PinnedFile[] {
    return [...this.#files.values()].filter((file) => !this.#blobs.has(identityOf(file)));
  }

  #source(file: PinnedFile): DatasetSource {
    const digest = identityOf(file);
    const path = this.#blobs.path(digest);
    this.#files.set(path, file);
    return { name: nameOf(file), path, digest, bytes: file.bytes, ...(file.digest ? {} : { identity: digest }) };
  }

  #locked(name: string): readonly PinnedFile[] | undefined {
    const entry = this.#project.lock?.get(name);
    if (!entry) return undefined;
    if (isRemoteEntry(entry)) {
      for (const file of entry.files) this.#fromLock.add(file);
      return entry.files;
    }
    return fail(
      "RL2005",
      `The entry of ${LOCK_FILE} for \`${name}\` is not what rlcli writes. Run \`rlcli lock --upgrade ${this.#node.address}\`.`,
      this.#place,
    );
  }

  async #ask(remote: RemoteFiles, name: string): Promise<readonly PinnedFile[]> {
    const { lock } = this.#project;
    lock?.allowAdding(name, this.#place);
    const files = await remote.pin(name);
    lock?.add(name, { type: "remote-files", files } as unknown as RemoteEntry, this.#place);
    return files;
  }

  async #with(work: (remote: RemoteFiles) => Promise<void>): Promise<void> {
    const remote = new RemoteFiles({ env: this.#project.env, signal: this.#signal, place: this.#place });
    try {
      await work(remote);
    } finally {
      await remote.close();
    }
  }
}

/** Where files of addresses are kept, by what they are known by. */
export const remoteBlobs = (cacheFolder: string): string => join(cacheFolder, "remote", "blobs");

/** Downloads a file into the cache unless it is there. Fails with RL6030 to RL6034, RL6023 or RL6006. */
export async function cacheRemote(
  blobs: BlobCache,
  remote: RemoteFiles,
  file: PinnedFile,
  options: Parameters<BlobCache["fetch"]>[2],
): Promise<void> {
  const { bytes, digest } = file;
  await blobs.fetch(
    { name: nameOf(file), key: identityOf(file), content: digest, bytes },
    async (part) => {
      for await (const chunk of remote.chunks(file, { bytes: part.bytes, hash: part.hash() })) await part.append(chunk);
    },
    options,
  );
}

function isRemoteEntry(entry: LockEntry): entry is RemoteEntry {
  const { type, files } = entry as Partial<RemoteEntry>;
  const isText = (value: unknown): boolean => value === undefined || typeof value === "string";
  const isFile = ({ address, bytes, etag, modified, digest }: PinnedFile): boolean =>
    typeof address === "string" &&
    Number.isSafeInteger(bytes) &&
    [etag, modified, digest].every(isText) &&
    (etag !== undefined || modified !== undefined || /^sha256:[0-9a-f]{64}$/.test(digest ?? ""));
  return type === "remote-files" && Array.isArray(files) && files.length > 0 && files.every(isFile);
}
