/**
 * Files at addresses (`https://…`, `s3://BUCKET/KEY…`), read as streams. What breaks off goes on where it was: with the rest, where
 * the server sends it of the same content, else from the beginning once more, which is compared with what was read before. A content that
 * changes in between is an error, never a file put together from two.
 */
import { createHash, type Hash } from "node:crypto";
import { Agent } from "undici";
import { type DiagnosticOptions, fail } from "../diagnostic.ts";
import type { Digest } from "../digest.ts";
import { shownAddress } from "../url.ts";
import { isSame, isTelling, nameOf, type PinnedFile, type RemoteFile, type Version, versionOf } from "./file.ts";
import {
  DEFAULT_TIMES,
  MOST_SILENT_TRIES,
  Patience,
  type PatienceOptions,
  persistently,
  type RequestTimes,
} from "./patience.ts";
import { type Answer, CONNECT_MS, discard, headerOf, type Refusal, rangeStart } from "./request.ts";
import { parseObjectName, S3 } from "./s3.ts";
import { s3Settings } from "./s3-settings.ts";
import type { Store, StoreContext } from "./store.ts";
import { Web } from "./web.ts";

export interface RemoteOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly place?: DiagnosticOptions | undefined;
  readonly times?: Partial<RequestTimes>;
}

/** What was read of a file before, and the digest of it. */
export interface Beginning {
  readonly bytes: number;
  readonly hash: Hash;
}

export class RemoteFiles {
  readonly #env: RemoteOptions["env"];
  readonly #times: RequestTimes;
  readonly #agent = new Agent({ connect: { timeout: CONNECT_MS } });
  readonly #stop = new AbortController();
  readonly #context: StoreContext;
  readonly #follow: () => void;
  readonly #signal: AbortSignal;
  #web: Web | undefined;
  #s3: S3 | undefined;

  constructor({ env, signal, place, times }: RemoteOptions) {
    this.#env = env;
    this.#times = { ...DEFAULT_TIMES, ...times };
    this.#signal = signal;
    this.#context = { signal: this.#stop.signal, place };
    this.#follow = () => this.#stop.abort(signal.reason);
    if (signal.aborted) this.#follow();
    else signal.addEventListener("abort", this.#follow, { once: true });
  }

  /**
   * The files that a name stands for, the only one, or those that a glob of S3 matches. They are not asked for here. Fails with RL6030 to
   * RL6032 and RL6034.
   */
  async find(name: string): Promise<readonly RemoteFile[]> {
    const store = this.#storeOf(name);
    const found = await persistently(this.#patience(name), async () => {
      const listed = await store.list(name, this.#context);
      return listed ?? [{ address: name }];
    });
    if (found.length === 0)
      fail("RL6032", `No object matches ${shownAddress(name)}. Check the bucket and the pattern.`, this.#context.place);
    return found;
  }

  /**
   * The same with what makes each file's content known, without reading it where the server says enough; else it is read to its end.
   */
  async pin(name: string): Promise<readonly PinnedFile[]> {
    return this.pinned(await this.find(name));
  }

  async pinned(files: readonly RemoteFile[]): Promise<PinnedFile[]> {
    const pinned: PinnedFile[] = [];
    for (const file of files) pinned.push(isTelling(file) ? (file as PinnedFile) : await this.#look(file.address));
    return pinned;
  }

  /** Fails with RL6033 where a file is not what it was, as far as that is told without reading it; else as `find`. */
  async verify(file: PinnedFile): Promise<void> {
    if (!isSame(file, await this.#head(file.address))) this.#changed(file, "since it was locked");
  }

  /**
   * The file's bytes, from the end of a beginning on. Fails with RL6033 where its content is or becomes another than `file` says, else as
   * `find`.
   */
  async *chunks(file: RemoteFile, beginning?: Beginning): AsyncGenerator<Buffer> {
    const store = this.#storeOf(file.address);
    const patience = new Patience(this.#patience(file.address));
    const read = new ReadFile(file, beginning);
    while (!read.isWhole) {
      this.#stop.signal.throwIfAborted();
      const before = read.bytes;
      let refusal: Refusal | undefined;
      try {
        const rest = before > 0 ? store.restOf(read.version, before) : undefined;
        const answer = await store.open(file.address, rest ?? {}, this.#context);
        if (answer.status === 200 || answer.status === 206) {
          this.#checkEncoding(file, answer);
          for await (const chunk of read.take(answer, () => this.#changed(file, "while it was read"))) yield chunk;
        } else refusal = await this.#refusal(store, file, answer);
      } catch (error) {
        if (read.bytes > before) patience.progressed();
        await patience.broke(error);
        continue;
      }
      if (refusal) await patience.refused(refusal);
    }
    if (file.digest !== undefined && read.digest() !== file.digest) this.#changed(file, "since it was locked");
  }

  async close(): Promise<void> {
    this.#signal.removeEventListener("abort", this.#follow);
    this.#stop.abort();
    await this.#agent.destroy();
  }

  async #refusal(store: Store, file: RemoteFile, answer: Answer): Promise<Refusal> {
    // There is no such part: it got shorter.
    if (answer.status === 416) this.#changed(file, "while it was read");
    return store.refusal(file.address, answer);
  }

  #checkEncoding(file: RemoteFile, answer: Answer): void {
    const encoding = (headerOf(answer, "content-encoding") ?? "").toLowerCase();
    if (encoding.split(",").every((part) => KNOWN_ENCODINGS.has(part.trim()))) return;
    const detail = `${nameOf(file)} is sent with the encoding \`${encoding}\`, though it was asked for as it is.`;
    fail("RL6030", `${detail} Download it and name the file.`, this.#context.place);
  }

  async #look(address: string): Promise<PinnedFile> {
    const version = await this.#head(address);
    if (isTelling(version)) return { address, ...version } as PinnedFile;
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of this.chunks({ address, ...version })) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    return { address, bytes, digest: digestOf(hash) };
  }

  /** By asking for the first byte: a signed address need not allow HEAD, and its refusals would say nothing. */
  async #head(address: string): Promise<Version> {
    const store = this.#storeOf(address);
    return persistently(this.#patience(address), async () => {
      const answer = await store.open(address, { range: "bytes=0-0" }, this.#context);
      const isEmpty = answer.status === 416 && /^bytes \*\/0$/.test(headerOf(answer, "content-range") ?? "");
      if (answer.status !== 200 && answer.status !== 206 && !isEmpty) return store.refusal(address, answer);
      const version = isEmpty ? { ...versionOf(answer), bytes: 0 } : versionOf(answer);
      await discard(answer.body);
      return version;
    });
  }

  #storeOf(address: string): Store {
    const { place } = this.#context;
    if (/^s3:/i.test(address)) {
      parseObjectName(address, place);
      this.#s3 ??= new S3(s3Settings(this.#env, place), this.#agent, this.#times.answerMs);
      return this.#s3;
    }
    if (!URL.canParse(address)) fail("RL6032", `\`${shownAddress(address)}\` is no address.`, place);
    this.#web ??= new Web(this.#agent, this.#times.answerMs);
    return this.#web;
  }

  #patience(address: string): PatienceOptions {
    const { signal, place } = this.#context;
    const what = shownAddress(address);
    return { times: this.#times, signal, place, what, unreached: "RL6030", mostSilentTries: MOST_SILENT_TRIES };
  }

  #changed(file: RemoteFile, when: string): never {
    return fail("RL6033", `${nameOf(file)} changed ${when}.`, this.#context.place);
  }
}

const digestOf = (hash: Hash): Digest => `sha256:${hash.copy().digest("hex")}`;

/** What the importer can unpack by looking at the content, or need not. */
const KNOWN_ENCODINGS: ReadonlySet<string> = new Set(["", "identity", "gzip", "x-gzip", "zstd", "aws-chunked"]);

/** How far a file was read, over all connections that it took. */
class ReadFile {
  /** As far as it is known; what an answer says first is added to it. */
  version: Version;
  bytes: number;
  isWhole = false;
  readonly #hash: Hash;

  constructor(file: RemoteFile, beginning: Beginning | undefined) {
    this.version = file;
    this.bytes = beginning?.bytes ?? 0;
    this.#hash = beginning?.hash ?? createHash("sha256");
    this.isWhole = this.bytes === file.bytes;
  }

  digest(): Digest {
    return digestOf(this.#hash);
  }

  /** What an answer has beyond what was read. `changed` is called, and throws, where it is of another content. */
  async *take(answer: Answer, changed: () => never): AsyncGenerator<Buffer> {
    const version = versionOf(answer);
    if (!isSame(this.version, version)) changed();
    if (answer.status === 206 && rangeStart(answer) !== this.bytes)
      throw new Error("it sent another part than it was asked for");
    this.version = { ...version, ...this.version };
    let again = answer.status === 206 ? 0 : this.bytes;
    const hash = createHash("sha256");
    for await (const chunk of answer.body) {
      const known = chunk.subarray(0, again);
      hash.update(known);
      again -= known.length;
      if (known.length > 0 && again === 0 && digestOf(hash) !== this.digest()) changed();
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset + known.length, chunk.length - known.length);
      if (bytes.length === 0) continue;
      this.#hash.update(bytes);
      this.bytes += bytes.length;
      yield bytes;
    }
    const { bytes: expected = this.bytes } = this.version;
    if (this.bytes < expected) throw new Error("the connection ended before the file did");
    if (again > 0 || this.bytes > expected) changed();
    this.isWhole = true;
  }
}
