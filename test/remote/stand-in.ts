/** A web server on loopback with the faults that tests ask for, answer by answer. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface WebFile {
  readonly bytes: Buffer;
  readonly etag?: string | undefined;
  readonly modified?: string | undefined;
  /** Headers that come with every answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface WebFault {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Bytes of the answer's body after which the connection is destroyed. */
  readonly cutAfter?: number;
  readonly hangs?: boolean;
  /** A body without a length, in chunks. */
  readonly isChunked?: boolean;
}

export interface WebRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** How many requests there were before. */
  readonly index: number;
}

export const etagOf = (bytes: Buffer): string => `"${createHash("md5").update(bytes).digest("hex")}"`;

export class StandInWeb {
  readonly seen: WebRequest[] = [];
  readonly files = new Map<string, WebFile>();
  readonly #server: Server;
  ignoresRange = false;
  /** Asked for every request. */
  fault: (request: WebRequest) => WebFault | undefined = () => undefined;

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<StandInWeb> {
    const web = new StandInWeb();
    await new Promise<void>((resolve) => web.#server.listen(0, "127.0.0.1", resolve));
    return web;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Puts a file at a path, by default with an ETag of its content. */
  put(path: string, content: Buffer | string, about: Omit<WebFile, "bytes"> = {}): string {
    const bytes = Buffer.from(content);
    const etag = "etag" in about || "modified" in about ? {} : { etag: etagOf(bytes) };
    this.files.set(path, { bytes, ...etag, ...about });
    return this.origin + path;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer({ method = "", url = "", headers }: IncomingMessage, response: ServerResponse): void {
    const request = { method, url, headers: headers as WebRequest["headers"], index: this.seen.length };
    this.seen.push(request);
    const fault = this.fault(request);
    if (fault?.hangs) return;
    if (fault?.status !== undefined) {
      response.writeHead(fault.status, fault.headers).end(fault.body ?? "");
      return;
    }
    const file = this.files.get(url.replace(/\?.*$/, ""));
    if (!file) response.writeHead(404).end();
    else this.#send(file, request, response, fault);
  }

  #send(file: WebFile, { headers }: WebRequest, response: ServerResponse, fault: WebFault | undefined): void {
    const { bytes, etag, modified } = file;
    const about = {
      ...(etag === undefined ? {} : { etag }),
      ...(modified === undefined ? {} : { "last-modified": modified }),
      ...file.headers,
    };
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
    const isSame = headers["if-range"] === undefined || [etag, modified].includes(headers["if-range"]);
    if (from === undefined || this.ignoresRange || !isSame) {
      response.writeHead(200, { ...about, ...(fault?.isChunked ? {} : { "content-length": bytes.length }) });
      finish(response, bytes, fault);
    } else if (Number(from) >= bytes.length)
      response.writeHead(416, { ...about, "content-range": `bytes */${bytes.length}` }).end();
    else {
      const end = Math.min(to === "" ? bytes.length : Number(to) + 1, bytes.length);
      const part = bytes.subarray(Number(from), end);
      const range = `bytes ${from}-${end - 1}/${bytes.length}`;
      response.writeHead(206, { ...about, "content-range": range, "content-length": part.length });
      finish(response, part, fault);
    }
  }
}

function finish(response: ServerResponse, body: Buffer, fault: WebFault | undefined): void {
  if (fault?.cutAfter === undefined) response.end(body);
  else response.write(body.subarray(0, fault.cutAfter), () => setTimeout(() => response.destroy(), 20));
}
