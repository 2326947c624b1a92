/** A small router: paths with `{name}` segments, one handler per method. */
import type { Digest } from "../../../digest.ts";
import type { Fields } from "./fields.ts";

export interface ApiRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The JSON body; an empty object where there was none, or where the body is protobuf. */
  readonly body: Fields;
  /** The body as it came, decompressed. */
  readonly bytes: Uint8Array;
  /** Where the client reached the server: `http://host:port`. */
  readonly origin: string;
  /** Whether the client takes protobuf. */
  readonly acceptsProtobuf: boolean;
  /** Of the body's content: equal bodies are equal requests. */
  readonly digest: Digest;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** A JSON body, protobuf bytes, an answer with headers of its own, or undefined for 204. */
export type Handler = (request: ApiRequest) => unknown | Promise<unknown>;

/** An answer that is more than a body. */
export class Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: unknown;
  constructor(status: number, headers: Readonly<Record<string, string>>, body: unknown) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

const PROTOBUF = "+protobuf";

/** The route of a protobuf body, beside that of a JSON body. */
export function protobufRoute(route: string): string {
  return route.replace(" ", `${PROTOBUF} `);
}

/** `GET /api/v1/healthz` → handler. */
export type RouteTable = Readonly<Record<string, Handler>>;

export type Match =
  | { readonly type: "found"; readonly handler: Handler; readonly params: Readonly<Record<string, string>> }
  | { readonly type: "wrong-method" }
  /** There is such a route, for JSON only. */
  | { readonly type: "wrong-encoding" }
  | { readonly type: "unknown" };

interface Route {
  readonly method: string;
  readonly segments: readonly string[];
  readonly handler: Handler;
}

export class Router {
  readonly #routes: readonly Route[];

  constructor(table: RouteTable) {
    this.#routes = Object.entries(table).map(([key, handler]) => {
      const [method, path] = key.split(" ") as [string, string];
      return { method, segments: path.split("/"), handler };
    });
  }

  match(verb: string, path: string, isProtobuf = false): Match {
    const method = isProtobuf ? `${verb}${PROTOBUF}` : verb;
    const segments = path.split("/");
    let isKnown = false;
    let isJsonOnly = false;
    for (const route of this.#routes) {
      const params = matchSegments(route.segments, segments);
      if (params === undefined) continue;
      if (route.method === method) return { type: "found", handler: route.handler, params };
      isKnown = true;
      isJsonOnly ||= isProtobuf && route.method === verb;
    }
    if (isJsonOnly) return { type: "wrong-encoding" };
    return { type: isKnown ? "wrong-method" : "unknown" };
  }
}

function matchSegments(pattern: readonly string[], path: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== path.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, expected] of pattern.entries()) {
    const found = path[i] as string;
    if (expected.startsWith("{")) {
      const value = decode(found);
      if (value === undefined || value === "") return undefined;
      params[expected.slice(1, -1)] = value;
    } else if (expected !== found) return undefined;
  }
  return params;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
