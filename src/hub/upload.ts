/**
 * Files to a model repository of a Hugging Face hub, in one commit: the hub says which files are large (`preupload`), those go to its
 * store by digest (Git LFS batch, in one part or several), and a commit names all of them. What the store has already is not sent again,
 * so an upload that was cut off goes on by being started anew.
 */
import { createHash } from "node:crypto";
import { closeSync, createReadStream, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { Agent, type Dispatcher, request } from "undici";
import { fail, messageOf, RlcliError } from "../diagnostic.ts";
import { digestFile } from "../digest.ts";
import { Attempts, isRetryable, type RetryPolicy, retryAfterMs } from "../retry.ts";
import type { HubSettings } from "./settings.ts";

export interface UploadFile {
  /** In the repository. */
  readonly path: string;
  /** A file here, or a text. */
  readonly source: { readonly file: string } | { readonly text: string };
}

export interface UploadOrder {
  /** `ORG/NAME`. */
  readonly repository: string;
  /** A branch that exists, or `main`. */
  readonly revision: string;
  readonly files: readonly UploadFile[];
  readonly message: string;
  /** Of a repository that is made here. */
  readonly isPrivate: boolean;
  /** Opens a pull request instead of committing to the branch. */
  readonly asPullRequest: boolean;
}

export interface Uploaded {
  /** Of the commit, or of the pull request. */
  readonly url: string;
  readonly commit: string;
  /** Bytes that were sent to the store. */
  readonly sentBytes: number;
}

interface Described extends UploadFile {
  readonly bytes: number;
  /** Hex, of sha256. */
  readonly digest: string;
}

const ANSWER_MS = 60_000;
/** Counted, since one try may take as long as a large file does. */
const RETRY: RetryPolicy = {
  deadlineMs: Number.POSITIVE_INFINITY,
  firstDelayMs: 500,
  maxDelayMs: 10_000,
  mostTries: 4,
};
/** Of a file, by which the hub judges it. */
const SAMPLE_BYTES = 512;

export class HubUpload {
  readonly #settings: HubSettings;
  readonly #signal: AbortSignal;
  readonly #agent = new Agent({ connect: { timeout: 10_000 } });
  readonly #retry: RetryPolicy;

  /** Fails with RL9024 where there is no token, or where the hub must not be reached. */
  constructor(settings: HubSettings, signal: AbortSignal, retry = RETRY) {
    if (settings.isOffline) fail("RL9024", "HF_HUB_OFFLINE is set, so nothing is uploaded.");
    if (settings.token === undefined)
      fail("RL9024", "HF_TOKEN is not set. Give a token of the hub that may write to the repository.");
    this.#settings = settings;
    this.#signal = signal;
    this.#retry = retry;
  }

  /** Makes the repository on need. `onProgress` is told in words. Fails with RL9024. */
  async push(order: UploadOrder, onProgress: (text: string) => void = () => {}): Promise<Uploaded> {
    await this.#create(order);
    const files = await Promise.all(order.files.map(describe));
    const large = new Set(await this.#largeOf(order, files));
    let sentBytes = 0;
    for (const file of files.filter(({ path }) => large.has(path))) {
      onProgress(`uploading ${file.path} (${(file.bytes / 1e6).toFixed(1)} MB)`);
      sentBytes += await this.#store(order, file);
    }
    return { ...(await this.#commit(order, files, large)), sentBytes };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #create({ repository, isPrivate }: UploadOrder): Promise<void> {
    const [organization, name] = repository.split("/");
    await this.#json("POST", "/api/repos/create", { type: "model", name, organization, private: isPrivate }, [409]);
  }

  async #largeOf({ repository, revision }: UploadOrder, files: readonly Described[]): Promise<readonly string[]> {
    interface Wire {
      readonly files: readonly { readonly path: string; readonly uploadMode: "lfs" | "regular" }[];
    }
    const body = {
      files: files.map((file) => ({ path: file.path, size: file.bytes, sample: headOf(file).toString("base64") })),
    };
    const url = `/api/models/${repository}/preupload/${encodeURIComponent(revision)}`;
    const { files: told } = (await this.#json("POST", url, body)) as Wire;
    return told.filter(({ uploadMode }) => uploadMode === "lfs").map(({ path }) => path);
  }

  /** Gives the bytes that were sent: none where the store has them. */
  async #store({ repository, revision }: UploadOrder, file: Described): Promise<number> {
    interface Action {
      readonly href: string;
      readonly header?: Readonly<Record<string, string>>;
    }
    interface Wire {
      readonly objects: readonly {
        readonly error?: { readonly message?: string };
        readonly actions?: { readonly upload?: Action; readonly verify?: Action };
      }[];
    }
    const object = { oid: file.digest, size: file.bytes };
    const body = {
      operation: "upload",
      transfers: ["basic", "multipart"],
      hash_algo: "sha256",
      ref: { name: revision },
      objects: [object],
    };
    const { objects } = (await this.#json("POST", `/${repository}.git/info/lfs/objects/batch`, body, [], LFS)) as Wire;
    const { error, actions } = objects[0] ?? {};
    if (error)
      fail("RL9024", `${this.#settings.endpoint} does not take ${file.path}: ${error.message ?? "no reason given"}.`);
    const { upload, verify } = actions ?? {};
    if (!upload) return 0;
    const { chunk_size: partBytes, ...header } = upload.header ?? {};
    if (partBytes === undefined) await this.#put(upload.href, header, file, 0, file.bytes);
    else await this.#putParts(upload.href, header, file, Number(partBytes));
    if (verify) await this.#json("POST", verify.href, object, [], LFS);
    return file.bytes;
  }

  /** Parts go to addresses of their own, by number; the store is then told what each was answered with. */
  async #putParts(
    href: string,
    addresses: Readonly<Record<string, string>>,
    file: Described,
    partBytes: number,
  ): Promise<void> {
    const numbers = Object.keys(addresses)
      .filter((key) => /^\d+$/.test(key))
      .sort((a, b) => Number(a) - Number(b));
    const parts: { readonly partNumber: number; readonly etag: string }[] = [];
    for (const [i, key] of numbers.entries()) {
      const from = i * partBytes;
      const etag = await this.#put(addresses[key] as string, {}, file, from, Math.min(file.bytes, from + partBytes));
      parts.push({ partNumber: Number(key), etag });
    }
    await this.#json("POST", href, { oid: file.digest, parts }, [], LFS);
  }

  async #put(
    href: string,
    headers: Readonly<Record<string, string>>,
    file: Described,
    from: number,
    to: number,
  ): Promise<string> {
    const answer = await this.#send(href, () => ({
      method: "PUT",
      headers: { ...headers, "content-length": String(to - from) },
      body: bodyOf(file, from, to),
    }));
    return String(answer.headers.etag ?? "");
  }

  async #commit(
    order: UploadOrder,
    files: readonly Described[],
    large: ReadonlySet<string>,
  ): Promise<Omit<Uploaded, "sentBytes">> {
    const { repository, revision, message, asPullRequest } = order;
    const lines = [
      { key: "header", value: { summary: message, description: "" } },
      ...files.map((file) =>
        large.has(file.path)
          ? { key: "lfsFile", value: { path: file.path, algo: "sha256", oid: file.digest, size: file.bytes } }
          : {
              key: "file",
              value: { path: file.path, content: contentOf(file).toString("base64"), encoding: "base64" },
            },
      ),
    ];
    interface Wire {
      readonly commitUrl: string;
      readonly commitOid: string;
      readonly pullRequestUrl?: string;
    }
    const url = `/api/models/${repository}/commit/${encodeURIComponent(revision)}${asPullRequest ? "?create_pr=1" : ""}`;
    const text = lines.map((line) => JSON.stringify(line)).join("\n");
    const wire = (await this.#json("POST", url, text, [], { "content-type": "application/x-ndjson" })) as Wire;
    return { url: wire.pullRequestUrl ?? wire.commitUrl, commit: wire.commitOid };
  }

  /** `also`: statuses that are as good as a success. */
  async #json(
    method: "POST",
    path: string,
    body: object | string,
    also: readonly number[] = [],
    headers: Readonly<Record<string, string>> = {},
  ): Promise<unknown> {
    const sent = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await this.#send(
      path,
      () => ({ method, headers: { "content-type": "application/json", ...headers }, body: sent }),
      also,
    );
    try {
      return answer.text === "" ? {} : JSON.parse(answer.text);
    } catch {
      return fail("RL9024", `${this.#nameOf(path)} answered with something that is not JSON.`);
    }
  }

  async #send(
    path: string,
    make: () => Pick<Dispatcher.RequestOptions, "method" | "headers" | "body">,
    also: readonly number[] = [],
  ) {
    const url = new URL(path, /^https?:/.test(path) ? undefined : `${this.#settings.endpoint}/`);
    if (!/^https?:/.test(path))
      url.pathname = `${new URL(this.#settings.endpoint).pathname.replace(/\/$/, "")}${path.split("?")[0]}`;
    const attempts = new Attempts(this.#retry);
    for (;;) {
      const answer = await this.#once(url, make());
      if ("fault" in answer) {
        if (await attempts.again(this.#signal)) continue;
        const { fault } = answer;
        return fail("RL9024", `${this.#nameOf(path)} cannot be reached: ${messageOf(fault)}.`, { cause: fault });
      }
      const { status, headers, text } = answer;
      if (status < 400 || also.includes(status)) return { headers, text };
      const mayPass = isRetryable(status, headers) && (await attempts.again(this.#signal, retryAfterMs(headers)));
      if (!mayPass) return this.#refused(path, status, text);
    }
  }

  async #once(
    url: URL,
    { method, headers, body }: Pick<Dispatcher.RequestOptions, "method" | "headers" | "body">,
  ): Promise<Answer | { readonly fault: unknown }> {
    this.#signal.throwIfAborted();
    try {
      const answer = await request(url, {
        method,
        body: body ?? null,
        dispatcher: this.#agent,
        signal: this.#signal,
        headersTimeout: ANSWER_MS,
        bodyTimeout: ANSWER_MS,
        headers: { "user-agent": "rlcli", ...this.#authorization(url), ...(headers as Record<string, string>) },
      });
      return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
    } catch (fault) {
      this.#signal.throwIfAborted();
      if (fault instanceof RlcliError) throw fault;
      return { fault };
    }
  }

  /** The token goes to the hub alone: the store's addresses carry a signature of their own. */
  #authorization(url: URL): Record<string, string> {
    const isHub = url.origin === new URL(this.#settings.endpoint).origin;
    return isHub ? { authorization: `Bearer ${this.#settings.token}` } : {};
  }

  #refused(path: string, status: number, text: string): never {
    const said = reasonOf(text);
    const why =
      status === 401 || status === 403
        ? "The token in HF_TOKEN may not write there"
        : status === 404
          ? "There is no such repository or branch"
          : `It answered ${status}`;
    return fail("RL9024", `${this.#nameOf(path)}: ${why}${said ? ` (${said})` : ""}.`);
  }

  /** Without the signature of an address. */
  #nameOf(path: string): string {
    return /^https?:/.test(path) ? `${new URL(path).origin}/…` : `${this.#settings.endpoint}${path.split("?")[0]}`;
  }
}

interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly text: string;
}

const LFS = { accept: "application/vnd.git-lfs+json", "content-type": "application/vnd.git-lfs+json" };

function reasonOf(text: string): string {
  try {
    const { error, message } = JSON.parse(text) as { error?: unknown; message?: unknown };
    return String(error ?? message ?? "").slice(0, 300);
  } catch {
    return "";
  }
}

async function describe(file: UploadFile): Promise<Described> {
  const { source } = file;
  if ("text" in source) {
    const bytes = Buffer.from(source.text);
    return { ...file, bytes: bytes.length, digest: createHash("sha256").update(bytes).digest("hex") };
  }
  return {
    ...file,
    bytes: statSync(source.file).size,
    digest: (await digestFile(source.file)).replace(/^sha256:/, ""),
  };
}

const contentOf = ({ source }: UploadFile): Buffer =>
  "text" in source ? Buffer.from(source.text) : readFileSync(source.file);

function headOf({ source }: UploadFile): Buffer {
  if ("text" in source) return Buffer.from(source.text).subarray(0, SAMPLE_BYTES);
  const fd = openSync(source.file, "r");
  try {
    const head = Buffer.alloc(SAMPLE_BYTES);
    return head.subarray(0, readSync(fd, head, 0, SAMPLE_BYTES, 0));
  } finally {
    closeSync(fd);
  }
}

function bodyOf({ source }: UploadFile, from: number, to: number): Readable | Buffer {
  if ("text" in source) return Buffer.from(source.text).subarray(from, to);
  return to > from ? createReadStream(source.file, { start: from, end: to - 1 }) : Buffer.alloc(0);
}

/** Files of a folder, by their names in it. */
export const folderFiles = (folder: string, names: readonly string[]): readonly UploadFile[] =>
  names.map((name) => ({ path: name, source: { file: join(folder, name) } }));
