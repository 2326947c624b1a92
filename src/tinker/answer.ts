/** An answer of a server as it came. Apart from what fetches it: types and readers of answers load no HTTP client. */

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Undefined where the body is no JSON. */
export function parseJson({ headers, body }: HttpAnswer): unknown {
  if (!String(headers["content-type"] ?? "").includes("json")) return undefined;
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
