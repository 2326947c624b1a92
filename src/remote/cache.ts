/**
 * Files of other places, by the digest of their content or of what else they are known by: shared by projects, safe to delete. A
 * file that is there is whole and was checked; what a broken download left is taken up by the next one.
 */
import { createHash, type Hash, randomBytes } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, join } from "node:path";
import { type DiagnosticOptions, fail, messageOf, RlcliError } from "../diagnostic.ts";
import { type Digest, digestBytes } from "../digest.ts";
import { syncFolder, writeFileWhole } from "../files.ts";
import { processIdentity } from "../process.ts";

export interface CachedFile {
  /** For messages. */
  readonly name: string;
  /** What it is kept by. */
  readonly key: Digest;
  /** Of its content, where that was announced. */
  readonly content?: Digest | undefined;
  readonly bytes: number;
}

export class BlobCache {
  readonly #folder: string;

  /** `folder` is made when something is put into it. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  path(digest: Digest): string {
    return join(this.#folder, digest.replace(":", "-"));
  }

  has(digest: Digest): boolean {
    return existsSync(this.path(digest));
  }

  /** Keeps small content; returns its digest. Fails with RL6006 where the cache cannot be written. */
  put(content: Uint8Array): Digest {
    const digest = digestBytes(content);
    if (!this.has(digest)) this.#writing(() => writeFileWhole(this.path(digest), content));
    return digest;
  }

  /**
   * Has a file downloaded by `fill` unless it is there: `fill` appends to the part what is missing of it, which may have a
   * beginning from an earlier time. Fails as `fill` does, with RL6023 (other content than announced) or RL6006 (the cache
   * cannot be written).
   */
  async fetch(
    file: CachedFile,
    fill: (part: Part) => Promise<void>,
    { place, onProgress }: FetchOptions = {},
  ): Promise<void> {
    if (this.has(file.key)) return;
    const part = await this.#openPart(file.key);
    part.onAppend = (append) => this.#writingAsync(append);
    part.onProgress = onProgress;
    try {
      await fill(part);
      await part.close();
      this.#check(part, file, place);
      this.#writing(() => renameSync(part.path, this.path(file.key)));
      syncFolder(this.#folder);
    } catch (error) {
      await part.close();
      this.#leave(part, file.key, error);
      throw error;
    }
  }

  #check(part: Part, { name, content, bytes }: CachedFile, place: DiagnosticOptions | undefined): void {
    if (part.bytes === bytes && (content === undefined || part.digest() === content)) return;
    rmSync(part.path, { force: true });
    const what =
      part.bytes === bytes ? "its content has another digest" : `it has ${part.bytes} bytes instead of ${bytes}`;
    fail("RL6023", `${name} is not what was announced: ${what}. What came was thrown away; try again.`, place);
  }

  /** What is left is named so that whoever comes next takes it up. */
  #leave(part: Part, digest: Digest, error: unknown): void {
    // The beginning of something else is of no use.
    const isStale = error instanceof RlcliError && error.diagnostics.some(({ code }) => code === "RL6033");
    try {
      if (part.bytes === 0 || isStale) rmSync(part.path, { force: true });
      else renameSync(part.path, `${this.path(digest)}.part`);
    } catch {
      // It was thrown away, or the disk is gone too: the next download begins anew.
    }
  }

  /** A part of our own: what an earlier download left, taken over by renaming it, so that only one can; else an empty one. */
  async #openPart(digest: Digest): Promise<Part> {
    return this.#writingAsync(async () => {
      mkdirSync(this.#folder, { recursive: true });
      const path = `${this.path(digest)}.${process.pid}-${randomBytes(4).toString("hex")}.part`;
      for (const left of this.#leftovers(basename(this.path(digest)))) {
        try {
          renameSync(join(this.#folder, left), path);
          return await Part.continued(path);
        } catch (error) {
          // Somebody else was quicker.
          if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
        }
      }
      return new Part(path, await open(path, "wx"));
    });
  }

  /** Parts that nobody writes to any more. */
  #leftovers(name: string): string[] {
    return readdirSync(this.#folder).filter((file) => {
      if (!file.startsWith(`${name}.`) || !file.endsWith(".part")) return false;
      const pid = /\.(\d+)-[0-9a-f]+\.part$/.exec(file)?.[1];
      return pid === undefined || processIdentity(Number(pid)) === undefined;
    });
  }

  #writing<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      return this.#full(error);
    }
  }

  async #writingAsync<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      return this.#full(error);
    }
  }

  #full(error: unknown): never {
    if (!(error as NodeJS.ErrnoException).syscall) throw error;
    return fail("RL6006", `The cache ${this.#folder} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
}

export interface FetchOptions {
  readonly place?: DiagnosticOptions | undefined;
  /** Told the bytes that are there. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
}

/** A file that grows, with the digest of what is in it. */
export class Part {
  readonly path: string;
  bytes = 0;
  /** Does the writing, so that what the disk says is told as it should be. */
  onAppend: (append: () => Promise<void>) => Promise<void> = (append) => append();
  onProgress: ((bytes: number) => void) | undefined;
  readonly #file: FileHandle;
  #hash = createHash("sha256");
  #isOpen = true;

  constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  static async continued(path: string): Promise<Part> {
    const part = new Part(path, await open(path, "r+"));
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
      part.#hash.update(chunk as Buffer);
      part.bytes += (chunk as Buffer).length;
    }
    return part;
  }

  /** Empties it. */
  async begin(): Promise<void> {
    if (this.bytes === 0) return;
    await this.#file.truncate(0);
    this.bytes = 0;
    this.#hash = createHash("sha256");
  }

  async append(chunk: Uint8Array): Promise<void> {
    await this.onAppend(() => this.#write(chunk));
    this.#hash.update(chunk);
    this.bytes += chunk.length;
    this.onProgress?.(this.bytes);
  }

  /** The digest's state, to go on with elsewhere. */
  hash(): Hash {
    return this.#hash.copy();
  }

  async #write(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; )
      at += (await this.#file.write(chunk, at, chunk.length - at, this.bytes + at)).bytesWritten;
  }

  digest(): Digest {
    return `sha256:${this.#hash.copy().digest("hex")}`;
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#file.sync().catch(() => {});
    await this.#file.close();
  }
}
