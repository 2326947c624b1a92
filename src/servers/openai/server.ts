/**
 * An endpoint that speaks OpenAI's chat completions in front of any Tinker server, so that programs written for that interface can use
 * a model in training. It keeps nothing: a request becomes samples, and their tokens its answer.
 */
import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { withStop } from "../../abort.ts";
import { messageOf, RlcliError } from "../../diagnostic.ts";
import { TinkerError } from "../../tinker/errors.ts";
import { isAuthorised } from "../authorise.ts";
import { listen, urlOf } from "../listen.ts";
import { ask } from "./choices.ts";
import { chunks, wholeCompletion } from "./completion.ts";
import { OpenAiFault } from "./fault.ts";
import { readChatRequest } from "./request.ts";
import type { ModelSource } from "./source.ts";

export interface EndpointSettings {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Asked for as `Authorization: Bearer`; nothing is asked for where absent, which is for loopback only. */
  readonly key?: string;
  /** PEM texts. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Names by which it may be called where no key is asked for: a web page that makes a name point here is told nothing. */
  readonly isLoopback: boolean;
  readonly bodyLimitBytes: number;
  /** Told of each request when it is over. */
  readonly onDone?: (done: RequestDone) => void;
  /** Told of faults of our own. */
  readonly onFault: (error: unknown) => void;
}

export interface RequestDone {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly model?: string;
  readonly ms: number;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
  model?: string;
}

const LOCAL_NAME = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i;

export class OpenAiEndpoint {
  readonly #source: ModelSource;
  readonly #settings: EndpointSettings;
  readonly #server: Server;
  readonly #closing = new AbortController();

  constructor(source: ModelSource, settings: EndpointSettings) {
    this.#source = source;
    this.#settings = settings;
    const options = { keepAliveTimeout: 75_000, requestTimeout: 600_000 };
    const handle = (request: IncomingMessage, response: ServerResponse) => void this.#handle(request, response);
    // Every request that is under way listens to it; that many listeners are no leak.
    setMaxListeners(0, this.#closing.signal);
    const { tls } = settings;
    this.#server = tls ? createTlsServer({ ...options, ...tls }, handle) : createServer(options, handle);
  }

  /** Gives where clients of this machine reach it. Fails with RL5003 or RL5004. */
  async open(): Promise<string> {
    await listen(this.#server, this.#settings);
    return `${urlOf(this.#server, this.#settings.tls ? "https" : "http", this.#settings.host)}/v1`;
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#closing.abort();
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const path = (request.url ?? "/").split("?")[0] as string;
    const model = await withStop(this.#closing.signal, (gone) => {
      response.once("close", () => gone.abort());
      // A client that is gone is not told anything.
      response.on("error", () => {});
      return this.#answer(path, { request, response, signal: gone.signal });
    });
    const { statusCode: status } = response;
    this.#settings.onDone?.({
      method: request.method ?? "",
      path,
      status,
      ...(model === undefined ? {} : { model }),
      ms: performance.now() - startedAt,
    });
  }

  /** Tells which model was asked, where the request came that far. */
  async #answer(path: string, exchange: Exchange): Promise<string | undefined> {
    try {
      this.#admit(exchange.request);
      await this.#route(path, exchange);
    } catch (error) {
      if (!exchange.signal.aborted) this.#refuse(error, exchange);
      else exchange.response.destroy();
    }
    return exchange.model;
  }

  #admit(request: IncomingMessage): void {
    const { key, isLoopback } = this.#settings;
    if (key !== undefined && !isAuthorised(request, key))
      throw new OpenAiFault({
        status: 401,
        message: "A valid API key is required, as Authorization: Bearer.",
        code: "invalid_api_key",
      });
    if (key === undefined && isLoopback && !LOCAL_NAME.test(request.headers.host ?? ""))
      throw new OpenAiFault({
        status: 403,
        message: "Without a key this endpoint answers only by a name of loopback.",
      });
  }

  async #route(path: string, exchange: Exchange): Promise<void> {
    const { request, response } = exchange;
    if (path === "/v1/chat/completions") {
      requireMethod(request, "POST");
      await this.#complete(await readBody(request, this.#settings.bodyLimitBytes), exchange);
    } else if (path === "/v1/models") {
      requireMethod(request, "GET");
      sendJson(response, 200, { object: "list", data: (await this.#source.list()).map(describe) });
    } else if (path.startsWith("/v1/models/")) {
      requireMethod(request, "GET");
      sendJson(response, 200, await this.#model(decoded(path.slice("/v1/models/".length))));
    } else if (path === "/health" || path === "/v1") sendJson(response, 200, { status: "ok" });
    else
      throw new OpenAiFault({
        status: 404,
        message: `There is no ${request.method} ${path} here, only POST /v1/chat/completions and GET /v1/models.`,
        code: "unknown_url",
      });
  }

  async #model(id: string): Promise<object> {
    const found = (await this.#source.list()).find((card) => card.id === id);
    if (found) return describe(found);
    // Names that are not listed, such as a step of a run, are found by asking.
    return this.#source.use(
      id,
      async () => describe({ id, created: Math.floor(Date.now() / 1000) }),
      () => false,
    );
  }

  async #complete(body: unknown, exchange: Exchange): Promise<void> {
    const request = readChatRequest(body);
    exchange.model = request.model;
    const { response, signal } = exchange;
    await this.#source.use(
      request.model,
      async ({ model, fingerprint }) => {
        const asked = ask(model, request);
        const id = `chatcmpl-${randomBytes(12).toString("hex")}`;
        const head = { id, created: Math.floor(Date.now() / 1000), fingerprint };
        if (request.isStreamed) await this.#stream(chunks(asked, request, head, signal), exchange);
        else sendJson(response, 200, await wholeCompletion(asked, request, head, signal));
      },
      () => response.headersSent || signal.aborted,
    );
  }

  /** Headers go out with the first event, so that what is wrong before it has a status of its own. */
  async #stream(events: AsyncGenerator<object>, { response, signal }: Exchange): Promise<void> {
    for await (const event of events) {
      if (!response.headersSent)
        response.writeHead(200, {
          "Content-Type": "text/event-stream; charset=utf-8",
          "Cache-Control": "no-cache",
          "X-Accel-Buffering": "no",
        });
      // A client that reads slowly is waited for, rather than its answer kept.
      if (!response.write(`data: ${JSON.stringify(event)}\n\n`)) await drained(response, signal);
    }
    response.end("data: [DONE]\n\n");
  }

  #refuse(error: unknown, { request, response }: Exchange): void {
    const fault = faultOf(error);
    if (fault.status >= 500 && !(error instanceof TinkerError) && !(error instanceof RlcliError))
      this.#settings.onFault(error);
    if (response.headersSent) {
      response.end(`data: ${JSON.stringify(fault.body)}\n\n`);
      return;
    }
    // What is left of the request is not read, so its connection ends.
    if (!request.complete) response.setHeader("Connection", "close");
    if (fault.status === 401) response.setHeader("WWW-Authenticate", "Bearer");
    if (fault.retryAfterSeconds !== undefined) response.setHeader("Retry-After", fault.retryAfterSeconds);
    sendJson(response, fault.status, fault.body);
  }
}

/** Slashes of a name may be written as they are. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const describe = ({ id, created }: { readonly id: string; readonly created: number }) => ({
  id,
  object: "model",
  created,
  owned_by: "rlcli",
});

function requireMethod(request: IncomingMessage, method: string): void {
  if (request.method !== method)
    throw new OpenAiFault({ status: 405, message: `This is for ${method}, not ${request.method}.` });
}

async function readBody(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  // Web pages may send other types unasked.
  if (!/^application\/(.+\+)?json\b/i.test(request.headers["content-type"] ?? ""))
    throw new OpenAiFault({ status: 415, message: "The body should be JSON, with Content-Type: application/json." });
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > limitBytes)
      throw new OpenAiFault({ status: 413, message: `The body is larger than ${limitBytes} bytes.` });
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch (error) {
    throw new OpenAiFault({ status: 400, message: `The body is no JSON: ${messageOf(error)}.` });
  }
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      response.off("drain", go);
      reject(signal.reason as Error);
    };
    const go = () => {
      signal.removeEventListener("abort", stop);
      resolve();
    };
    response.once("drain", go);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": bytes.length });
  response.end(bytes);
}

/** What an error is to a client. */
function faultOf(error: unknown): OpenAiFault {
  if (error instanceof OpenAiFault) return error;
  if (error instanceof RlcliError) {
    const message = error.diagnostics.map(({ detail }) => detail).join(" ");
    const isUsers = USER_FAULTS[error.diagnostics[0]?.code ?? ""];
    return new OpenAiFault({ message, ...(isUsers ?? { status: 503 }) });
  }
  if (error instanceof TinkerError) return serverFault(error);
  return new OpenAiFault({ status: 500, message: "The endpoint failed. Its log says more." });
}

/** Diagnostics that are about the request. */
const USER_FAULTS: Readonly<
  Record<string, { readonly status: number; readonly param: string; readonly code?: string }>
> = {
  RL9009: { status: 404, param: "model", code: "model_not_found" },
  RL9003: { status: 404, param: "model", code: "model_not_found" },
  RL6103: { status: 400, param: "messages" },
  RL5015: { status: 400, param: "messages", code: "context_length_exceeded" },
};

function serverFault({ kind, message, retryAfterMs, status }: TinkerError): OpenAiFault {
  if (kind === "busy")
    return new OpenAiFault({
      status: 429,
      message,
      type: "rate_limit_error",
      code: "rate_limit_exceeded",
      retryAfterSeconds: Math.ceil((retryAfterMs ?? 1000) / 1000),
    });
  // A key that the server does not take is ours, not the client's.
  const isRequest = kind === "rejected" && status !== 401 && status !== 403;
  return new OpenAiFault({ status: isRequest ? 400 : kind === "network" ? 503 : 502, message });
}
