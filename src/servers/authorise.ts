/** Whether a request carries a server's key, as SDKs of this protocol send it or as a bearer token. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** In constant time: both sides are hashed, so that not even the length shows. */
export function isAuthorised(request: Pick<IncomingMessage, "headers">, token: string): boolean {
  const key = request.headers["x-api-key"];
  const bearer = /^Bearer\s+(.+)$/i.exec(request.headers.authorization ?? "")?.[1];
  const expected = sha256(token);
  return [typeof key === "string" ? key : undefined, bearer].some(
    (given) => given !== undefined && timingSafeEqual(sha256(given), expected),
  );
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
