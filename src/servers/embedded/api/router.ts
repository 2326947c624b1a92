/** A small router: paths with `{name}` segments, one handler per method. */
import type { Digest } from "../../../digest.ts";
import type { Fields } from "./fields.ts";

export interface ApiRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The JSON body; an empty object where there was none. */
  readonly body: Fields;
  /** Of the body's content: equal bodies are equal requests. */
  readonly digest: Digest;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** A JSON body, or undefined for 204. */
export type Handler = (request: ApiRequest) => unknown | Promise<unknown>;

/** `GET /api/v1/healthz` → handler. */
export type RouteTable = Readonly<Record<string, Handler>>;

export type Match =
  | { readonly type: "found"; readonly handler: Handler; readonly params: Readonly<Record<string, string>> }
  | { readonly type: "wrong-method" }
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

  match(method: string, path: string): Match {
    const segments = path.split("/");
    let isKnown = false;
    for (const route of this.#routes) {
      const params = matchSegments(route.segments, segments);
      if (params === undefined) continue;
      if (route.method === method) return { type: "found", handler: route.handler, params };
      isKnown = true;
    }
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
