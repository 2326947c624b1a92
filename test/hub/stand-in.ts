/**
 * A hub on loopback: the part of the Hugging Face hub's HTTP interface that rlcli uses, with large files redirected to another host
 * (as the hub does) and with the faults that tests ask for.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Uploads } from "./uploads.ts";

export interface Fault {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes of the body after which the connection is destroyed. */
  readonly cutAfter?: number;
  readonly hangs?: boolean;
  readonly body?: string;
}

export interface Seen {
  readonly host: "hub" | "store";
  readonly url: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
}

interface Repository {
  /** Commits by branch or tag. */
  readonly refs: Record<string, string>;
  readonly commits: Record<string, Readonly<Record<string, Buffer>>>;
  readonly needs?: { readonly token: string; readonly code: string };
}

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const commitOf = (files: Readonly<Record<string, Buffer>>): string =>
  createHash("sha1")
    .update(JSON.stringify(Object.entries(files).map(([path, bytes]) => [path, sha256(bytes)])))
    .digest("hex");
/** Kept as large files are: by digest, on the other host. */
const isLarge = (path: string): boolean => path.endsWith(".parquet");

export class StandInHub {
  readonly seen: Seen[] = [];
  /** What is pushed to model repositories. */
  readonly uploads = new Uploads();
  readonly #repositories = new Map<string, Repository>();
  readonly #hub: Server;
  readonly #store: Server;
  /** Asked for every request; an answer of undefined means no fault. */
  fault: (seen: Seen) => Fault | undefined = () => undefined;
  /** A store that sends the whole file whatever part is asked for. */
  ignoresRange = false;
  /** What the store sends instead of the file. */
  forged: Buffer | undefined;

  private constructor() {
    this.#hub = createServer((request, response) => this.#answer("hub", request, response));
    this.#store = createServer((request, response) => this.#answer("store", request, response));
  }

  static async start(): Promise<StandInHub> {
    const hub = new StandInHub();
    for (const server of [hub.#hub, hub.#store])
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return hub;
  }

  /** With a path of its own, as mirrors may have. */
  get endpoint(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}/mirror`;
  }

  get #storeUrl(): string {
    // Another name of this machine: a host of its own to whoever compares names.
    return `http://localhost:${(this.#store.address() as AddressInfo).port}`;
  }

  /** Puts a commit on a branch; returns it. */
  push(
    id: string,
    files: Readonly<Record<string, Buffer | string>>,
    { ref = "main", needs }: { ref?: string; needs?: Repository["needs"] } = {},
  ): string {
    const contents = Object.fromEntries(Object.entries(files).map(([path, file]) => [path, Buffer.from(file)]));
    const commit = commitOf(contents);
    const known = this.#repositories.get(id) ?? { refs: {}, commits: {}, ...(needs ? { needs } : {}) };
    known.refs[ref] = commit;
    known.commits[commit] = contents;
    this.#repositories.set(id, known);
    return commit;
  }

  /** Requests since the last call, as `hub GET path`. */
  takeSeen(): string[] {
    return this.seen.splice(0).map(({ host, url }) => `${host} ${url}`);
  }

  async close(): Promise<void> {
    for (const server of [this.#hub, this.#store]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  #answer(host: Seen["host"], request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? "";
    const seen = { host, url, authorization: request.headers.authorization, range: request.headers.range };
    this.seen.push(seen);
    const fault = this.fault(seen);
    if (fault?.hangs) return;
    if (fault?.status !== undefined) {
      response.writeHead(fault.status, fault.headers).end(fault.body ?? "");
      return;
    }
    if (request.method !== "GET") void this.uploads.answer(host, this.#storeUrl, request, response);
    else if (host === "store") this.#sendStored(url, request, response, fault);
    else this.#sendHub(new URL(url, "http://hub").pathname.replace(/^\/mirror/, ""), request, response, fault);
  }

  #sendHub(path: string, request: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
    const parts = path.split("/").slice(1).map(decodeURIComponent);
    const [kind, owner, name, verb, revision = "", ...rest] = parts[0] === "api" ? parts.slice(1) : parts;
    const repository = kind === "datasets" ? this.#repositories.get(`${owner}/${name}`) : undefined;
    const isRefused = repository?.needs && request.headers.authorization !== `Bearer ${repository.needs.token}`;
    if (!repository || isRefused) {
      const code = repository?.needs?.code ?? "RepoNotFound";
      response.writeHead(repository ? 403 : 401, { "x-error-code": code }).end();
      return;
    }
    const commit = repository.refs[revision] ?? revision;
    const files = repository.commits[commit];
    if (!files) {
      response.writeHead(404, { "x-error-code": "RevisionNotFound" }).end();
      return;
    }
    if (verb === "revision") send(response, Buffer.from(JSON.stringify(listing(commit, files))), fault);
    else this.#sendFile(rest.join("/"), files, response, fault);
  }

  #sendFile(
    path: string,
    files: Readonly<Record<string, Buffer>>,
    response: ServerResponse,
    fault: Fault | undefined,
  ): void {
    const file = files[path];
    if (!file) response.writeHead(404, { "x-error-code": "EntryNotFound" }).end();
    else if (isLarge(path)) response.writeHead(302, { location: `${this.#storeUrl}/${sha256(file)}?signed=yes` }).end();
    else send(response, file, fault);
  }

  #sendStored(url: string, request: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
    const digest = /^\/([0-9a-f]{64})/.exec(url)?.[1];
    const all = [...this.#repositories.values()].flatMap(({ commits }) =>
      Object.values(commits).flatMap(Object.values),
    );
    const file = this.forged ?? (all as Buffer[]).find((bytes) => sha256(bytes) === digest);
    if (!file) {
      response.writeHead(404).end();
      return;
    }
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    if (start === 0 || this.ignoresRange) send(response, file, fault);
    else if (start >= file.length) response.writeHead(416).end();
    else {
      response.writeHead(206, { "content-range": `bytes ${start}-${file.length - 1}/${file.length}` });
      finish(response, file.subarray(start), fault);
    }
  }
}

function listing(commit: string, files: Readonly<Record<string, Buffer>>) {
  const siblings = Object.entries(files).map(([rfilename, bytes]) => ({
    rfilename,
    blobId: "0".repeat(40),
    size: bytes.length,
    ...(isLarge(rfilename) ? { lfs: { sha256: sha256(bytes), size: bytes.length, pointerSize: 131 } } : {}),
  }));
  return { sha: commit, siblings };
}

function send(response: ServerResponse, body: Buffer, fault: Fault | undefined): void {
  response.writeHead(200, { "content-length": body.length });
  finish(response, body, fault);
}

function finish(response: ServerResponse, body: Buffer, fault: Fault | undefined): void {
  if (fault?.cutAfter === undefined) response.end(body);
  else response.write(body.subarray(0, fault.cutAfter), () => setTimeout(() => response.destroy(), 20));
}
