/**
 * What is sent as `X-API-Key`. Where the server asks for it, the key is exchanged for a JWT, which is renewed half-way
 * through its life or a minute before its end, whichever is first. Neither is ever logged or part of an error.
 */
export class Credential {
  readonly #key: string | undefined;
  readonly #fetch: (key: string) => Promise<string>;
  #isExchanged = false;
  #token: { readonly jwt: string; readonly renewAt: number } | undefined;
  #fetching: Promise<string> | undefined;

  constructor(key: string | undefined, fetch: (key: string) => Promise<string>) {
    this.#key = key;
    this.#fetch = fetch;
  }

  get isExchanged(): boolean {
    return this.#isExchanged;
  }

  exchange(): void {
    this.#isExchanged = this.#key !== undefined;
  }

  async current(): Promise<string | undefined> {
    if (!this.#isExchanged) return this.#key;
    return this.#token && Date.now() < this.#token.renewAt ? this.#token.jwt : this.renew();
  }

  /** A new JWT; calls that come while one is fetched share it. */
  renew(): Promise<string> {
    this.#fetching ??= this.#fetch(this.#key as string)
      .then((jwt) => {
        this.#token = { jwt, renewAt: renewalOf(jwt, Date.now()) };
        return jwt;
      })
      .finally(() => {
        this.#fetching = undefined;
      });
    return this.#fetching;
  }
}

const MARGIN_MS = 60_000;
/** For a token that does not say when it ends. */
const UNKNOWN_LIFE_MS = 120_000;

/** When to renew a JWT that was issued just now; it is not verified, which is the server's affair. */
function renewalOf(jwt: string, nowMs: number): number {
  try {
    const { exp } = JSON.parse(Buffer.from(jwt.split(".")[1] ?? "", "base64url").toString()) as { exp?: unknown };
    if (typeof exp === "number") return Math.min(nowMs + (exp * 1000 - nowMs) / 2, exp * 1000 - MARGIN_MS);
  } catch {
    // Opaque to us; the server's 401 will say when it is over.
  }
  return nowMs + UNKNOWN_LIFE_MS / 2;
}
