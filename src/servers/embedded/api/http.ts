/** The HTTP side: authentication, bodies, errors as JSON. Knows nothing of models. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { digestBytes } from "../../../digest.ts";
import { isAuthorised } from "../../authorise.ts";
import { isSigned } from "./download.ts";
import { HttpError } from "./errors.ts";
import { Fields } from "./fields.ts";
import { Reply, Router, type RouteTable } from "./router.ts";
import { decompress } from "./zstd.ts";

const PROTOBUF_TYPE = "application/x-protobuf";

export interface HttpOptions {
  readonly token: string;
  readonly bodyLimitBytes: number;
  readonly routes: RouteTable;
  /** Told of faults of our own. */
  readonly onFault: (error: unknown, what: string) => void;
}

/** A server that does not listen yet. */
export function createHttpServer(options: HttpOptions): Server {
  const router = new Router(options.routes);
  const server = createServer({ keepAliveTimeout: 75_000, requestTimeout: 120_000 }, (request, response) => {
    handle(router, options, request, response).catch((error: unknown) => {
      const answer = error instanceof HttpError ? error : new HttpError(500, "Internal Server Error");
      // Without the query: a signed link is a key.
      if (!(error instanceof HttpError)) options.onFault(error, `${request.method} ${request.url?.split("?")[0]}`);
      // What is left of the body is not read; the connection cannot be used again.
      if (!request.complete) response.setHeader("Connection", "close");
      send(response, answer.status, { detail: answer.detail });
    });
  });
  return server;
}

async function handle(router: Router, options: HttpOptions, request: IncomingMessage, response: ServerResponse) {
  const url = new URL(request.url ?? "/", "http://server");
  if (!isAuthorised(request, options.token) && !(request.method === "GET" && isSigned(options.token, url))) {
    response.setHeader("WWW-Authenticate", "Bearer");
    throw new HttpError(401, "A valid API key is required, as X-API-Key or Authorization: Bearer.");
  }
  const isProtobuf = (request.headers["content-type"] ?? "").toLowerCase().includes(PROTOBUF_TYPE);
  const match = router.match(request.method ?? "GET", url.pathname, isProtobuf);
  if (match.type === "unknown") throw new HttpError(404, "Not Found");
  if (match.type === "wrong-encoding") throw new HttpError(415, "This endpoint takes JSON bodies only.");
  if (match.type === "wrong-method") throw new HttpError(405, "Method Not Allowed");
  const sent = await readBody(request, options.bodyLimitBytes);
  const bytes = await decompress(sent, request.headers["content-encoding"], options.bodyLimitBytes);
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const body = new Fields(bytes.length === 0 || isProtobuf ? {} : parseJson(bytes));
  const result = await match.handler({
    params: match.params,
    query: url.searchParams,
    body,
    bytes,
    origin: `http://${request.headers.host ?? "localhost"}`,
    acceptsProtobuf: (request.headers.accept ?? "").toLowerCase().includes(PROTOBUF_TYPE),
    digest: digestBytes(bytes),
    signal: gone.signal,
  });
  if (gone.signal.aborted) return;
  if (result instanceof Reply) send(response, result.status, result.body, result.headers);
  else send(response, result === undefined ? 204 : 200, result);
}

async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const tooLarge = () => new HttpError(413, `The body is larger than ${limitBytes} bytes.`);
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > limitBytes) throw tooLarge();
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    const msg = `JSON decode error: ${(error as Error).message}`;
    throw new HttpError(422, [{ type: "json_invalid", loc: ["body"], msg }]);
  }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  if (response.headersSent || response.destroyed) return;
  if (body === undefined) {
    response.writeHead(status, headers).end();
    return;
  }
  const isBinary = body instanceof Uint8Array;
  const bytes = isBinary ? body : Buffer.from(JSON.stringify(body));
  const type = isBinary ? PROTOBUF_TYPE : "application/json";
  response.writeHead(status, { "Content-Type": type, "Content-Length": bytes.length, ...headers });
  response.end(bytes);
}
