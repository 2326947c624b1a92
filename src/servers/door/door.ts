/**
 * The front door of a server that has neither authentication nor encryption: a reverse proxy in front of its loopback port. Bodies
 * and long polls stream through; nothing is kept. While the server behind it starts or starts again the door answers 503, which
 * clients of the protocol repeat.
 */
import {
  Agent,
  request as connect,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import { messageOf } from "../../diagnostic.ts";
import { isAuthorised } from "../authorise.ts";
import { listen, urlOf } from "../listen.ts";
import { Activity } from "./activity.ts";
import { Tap } from "./tap.ts";

export interface DoorSettings {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly token: string;
  /** Whether the token is asked for. */
  readonly isGuarded: boolean;
  /** PEM texts. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** What `GET /rlcli/status` answers. */
  status(): object;
}

/** Where requests go: a port on loopback, or nowhere yet and why. */
export type Behind = { readonly port: number; readonly serverRun: string } | { readonly waitingFor: string };

/** Names the life of the server behind the door in every answer. */
export const RUN_HEADER = "x-rlcli-server-run";
const STATUS_PATH = "/rlcli/status";

/** Of the protocol's long polls none is held longer than 300 s. */
const ANSWER_TIMEOUT_MS = 600_000;
const RETRY_AFTER_S = "2";
/** Headers about one connection, which are not passed on (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

export class Door {
  readonly activity = new Activity();
  readonly #settings: DoorSettings;
  readonly #server: Server;
  /** Where the door speaks TLS: a second one without, on loopback, for this machine's own rlcli. */
  readonly #inner: Server | undefined;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 64 });
  #behind: Behind = { waitingFor: "the server to start" };

  constructor(settings: DoorSettings) {
    this.#settings = settings;
    const { tls } = settings;
    const options = { keepAliveTimeout: 75_000, requestTimeout: 600_000 };
    const handle = (request: IncomingMessage, response: ServerResponse) => this.#handle(request, response);
    this.#server = tls ? createTlsServer({ ...options, ...tls }, handle) : createServer(options, handle);
    this.#inner = tls ? createServer(options, handle) : undefined;
    for (const server of this.#servers) server.on("connection", (socket: Socket) => socket.setNoDelay(true));
  }

  get #servers(): readonly Server[] {
    return this.#inner ? [this.#server, this.#inner] : [this.#server];
  }

  /** Throws RL5004 where the port is taken, RL5003 where listening fails otherwise. */
  async open(): Promise<void> {
    const { host, port } = this.#settings;
    await listen(this.#server, { host, port });
    if (this.#inner) await listen(this.#inner, { host: "127.0.0.1", port: 0 });
  }

  /** Where this machine reaches it, without TLS. */
  get url(): string {
    return this.#inner ? urlOf(this.#inner, "http", "127.0.0.1") : urlOf(this.#server, "http", this.#settings.host);
  }

  /** Where others reach it. */
  get publicUrl(): string {
    return urlOf(this.#server, this.#inner ? "https" : "http", this.#settings.host);
  }

  /** From now on requests go here. */
  lead(behind: Behind): void {
    this.#behind = behind;
  }

  /** Ends what is open and listens no more. */
  async close(): Promise<void> {
    const closed = this.#servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const server of this.#servers) server.closeAllConnections();
    this.#agent.destroy();
    await Promise.all(closed);
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? "/").split("?")[0] as string;
    if (this.#settings.isGuarded && !isAuthorised(request, this.#settings.token)) {
      response.setHeader("WWW-Authenticate", "Bearer");
      answer(request, response, 401, "A valid API key is required, as X-API-Key or Authorization: Bearer.");
    } else if (path === STATUS_PATH) {
      sendJson(response, 200, this.#settings.status());
    } else if ("waitingFor" in this.#behind) {
      response.setHeader("Retry-After", RETRY_AFTER_S);
      answer(request, response, 503, `waiting for ${this.#behind.waitingFor}`);
    } else {
      response.setHeader(RUN_HEADER, this.#behind.serverRun);
      this.#pass(request, response, path, this.#behind.port);
    }
  }

  #pass(request: IncomingMessage, response: ServerResponse, path: string, port: number): void {
    const over = this.activity.begin(path);
    response.once("close", over);
    const { method, url, headers } = request;
    const onward = connect({
      host: "127.0.0.1",
      port,
      method,
      path: url,
      headers: onwardHeaders(headers),
      agent: this.#agent,
    });
    onward.setTimeout(ANSWER_TIMEOUT_MS, () => onward.destroy(new Error("no answer in time")));
    const asked = Activity.wants(path, "request") ? new Tap(request) : undefined;
    onward.once("response", (reply) => this.#return(path, reply, response, asked));
    onward.once("error", (error) => {
      if (response.headersSent || response.destroyed) response.destroy();
      else {
        response.setHeader("Retry-After", RETRY_AFTER_S);
        answer(request, response, 503, `the server behind the front door does not answer: ${messageOf(error)}`);
      }
    });
    // A client that goes away takes its long poll with it.
    response.once("close", () => onward.destroy());
    request.once("error", () => onward.destroy());
    request.pipe(onward);
  }

  #return(path: string, reply: IncomingMessage, response: ServerResponse, asked: Tap | undefined): void {
    const status = reply.statusCode ?? 502;
    for (const [name, value] of Object.entries(reply.headers))
      if (value !== undefined && !HOP_BY_HOP.includes(name)) response.setHeader(name, value);
    response.writeHead(status);
    if (status < 300 && Activity.wants(path, "answer")) new Tap(reply).whole((body) => this.activity.learn(path, body));
    if (path === "/api/v1/session_heartbeat" && status < 300) asked?.whole((body) => this.activity.learn(path, body));
    // 408 says that the future is not done yet; every other answer is its last.
    if (path === "/api/v1/retrieve_future" && status !== 408) asked?.whole((body) => this.activity.retrieved(body));
    reply.once("error", () => response.destroy());
    reply.once("aborted", () => response.destroy());
    reply.pipe(response);
  }
}

/** The key stays at the door: what is behind it knows none. */
function onwardHeaders(headers: IncomingMessage["headers"]): Record<string, string | string[]> {
  const dropped = new Set([...HOP_BY_HOP, "x-api-key", "authorization"]);
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string | string[]] => entry[1] !== undefined && !dropped.has(entry[0]),
    ),
  );
}

/** What is left of the request is not read, so its connection ends. */
function answer(request: IncomingMessage, response: ServerResponse, status: number, detail: string): void {
  if (!request.complete && request.headers["content-length"] !== "0") response.setHeader("Connection", "close");
  sendJson(response, status, { detail });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": bytes.length });
  response.end(bytes);
}
