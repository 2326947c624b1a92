/**
 * Files of S3, and of what speaks like it (MinIO, R2, …): `s3://BUCKET/KEY`. Requests are signed (Signature Version 4) where there are
 * credentials, and go without where there are none. A bucket that lies in another region says so, once.
 */
import type { Agent } from "undici";
import { type DiagnosticOptions, fail } from "../diagnostic.ts";
import { globPattern, globStart } from "../glob.ts";
import { type RemoteFile, type Version, validator } from "./file.ts";
import { type Answer, busyRefusal, headerOf, open, Refusal } from "./request.ts";
import type { S3Settings } from "./s3-settings.ts";
import type { Store, StoreContext } from "./store.ts";
import { decodeEntities, textOf, textsOf } from "./xml.ts";

/** Longest listing or error that is read into memory; a listing has a thousand keys. */
const MOST_BYTES = 16 * 2 ** 20;

export interface ObjectName {
  readonly bucket: string;
  readonly key: string;
}

/** Reads `s3://BUCKET/KEY`. Fails with RL6032 where it is none. */
export function parseObjectName(text: string, place: DiagnosticOptions = {}): ObjectName {
  const [, bucket = "", key = ""] = /^s3:\/\/([^/]*)\/?([\s\S]*)$/i.exec(text) ?? [];
  // What has dots only is taken for a folder's parent on the way, and would be another object's name there.
  const hasDots = key.split("/").some((part) => part === "." || part === "..");
  if (!/^[a-z0-9][a-z0-9._-]{1,62}$/i.test(bucket) || key === "" || hasDots)
    fail(
      "RL6032",
      `\`${text}\` names no object: it is s3://BUCKET/KEY, with \`*\` in the key for several, or \`/\` at its end for all logs below.`,
      place,
    );
  return { bucket, key };
}

/** Where a bucket is: by host at Amazon's, unless its name is none that a certificate covers; by path elsewhere, where hosts may not be known. */
export function bucketAddress(bucket: string, endpoint: string | undefined, region: string): string {
  if (endpoint !== undefined) return `${endpoint}/${bucket}`;
  const host = `s3.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
  return /[._]|[A-Z]/.test(bucket) ? `https://${host}/${bucket}` : `https://${bucket}.${host}`;
}

export class S3 implements Store {
  readonly #settings: S3Settings;
  readonly #dispatcher: Agent;
  readonly #answerMs: number;
  /** By bucket, where it is not the region of the settings. */
  readonly #regions = new Map<string, string>();
  /** Keys of the signer, which it derives once a day. */
  readonly #derived = new Map<string, ArrayBuffer>();

  constructor(settings: S3Settings, dispatcher: Agent, answerMs: number) {
    this.#settings = settings;
    this.#dispatcher = dispatcher;
    this.#answerMs = answerMs;
  }

  open(address: string, headers: Readonly<Record<string, string>>, context: StoreContext): Promise<Answer> {
    const { bucket, key } = parseObjectName(address, context.place);
    return this.#ask(bucket, encodedKey(key), headers, context);
  }

  restOf(version: Version, at: number): Readonly<Record<string, string>> | undefined {
    const known = validator(version);
    return known === undefined
      ? undefined
      : { range: `bytes=${at}-`, [known === version.etag ? "if-match" : "if-unmodified-since"]: known };
  }

  async refusal(address: string, answer: Answer): Promise<Refusal> {
    const { status } = answer;
    const xml = (await whole(answer)).toString();
    // The rest of an error may hold the key's id and what was signed.
    const code = /^[\w.]{1,64}$/.exec(textOf(xml, "Code") ?? "")?.[0];
    const said = code === undefined ? `${status}` : `${status} ${code}`;
    if (status === 412) return new Refusal("RL6033", `${address} changed while it was read.`, false);
    if (code === "RequestTimeTooSkewed")
      return new Refusal("RL6031", `${address} is refused (${said}): the clock of this machine is wrong.`, false);
    if (status === 401 || status === 403 || REFUSED_CODES.has(code ?? ""))
      return new Refusal("RL6031", this.#denied(address, said), false);
    if (status === 404) {
      const what =
        code === "NoSuchBucket"
          ? `There is no bucket \`${parseObjectName(address).bucket}\``
          : `There is nothing at ${address}`;
      return new Refusal("RL6032", `${what} (${said}).`, false);
    }
    return busyRefusal("RL6030", answer, code === undefined ? "" : ` (${code})`);
  }

  /** Which objects match a glob, or are logs below a prefix that ends with a slash; in the order of their keys. */
  async list(name: string, context: StoreContext): Promise<readonly RemoteFile[] | Refusal | undefined> {
    const { bucket, key } = parseObjectName(name, context.place);
    const start = globStart(key);
    if (start === undefined && !key.endsWith("/")) return undefined;
    const matches = start === undefined ? LOG_KEY : globPattern(key);
    const prefix = start ?? key;
    // Where only the last part of the key varies, what lies in folders below is not asked for.
    const isFlat = start !== undefined && !key.slice(start.length).includes("/") && !key.includes("**");
    const found: RemoteFile[] = [];
    for (let token: string | undefined = "", isFirst = true; isFirst || token !== undefined; isFirst = false) {
      const query: readonly (readonly [string, string])[] = [
        ...(token ? [["continuation-token", token] as const] : []),
        ...(isFlat ? [["delimiter", "/"] as const] : []),
        ["encoding-type", "url"],
        ["list-type", "2"],
        ["prefix", prefix],
      ];
      const text = query.map(([field, value]) => `${field}=${encoded(value)}`).join("&");
      const answer = await this.#ask(bucket, `?${text}`, {}, context);
      if (answer.status !== 200) return this.refusal(name, answer);
      const xml = (await whole(answer)).toString();
      if (!/<ListBucketResult[\s>]/.test(xml))
        return new Refusal("RL6030", "it answered with something else than a list of keys", false);
      const page = textsOf(xml, "Contents").map((entry) => listed(bucket, entry));
      // A key may have a star or a bracket of its own.
      found.push(
        ...page.filter(({ address }) => address === name || matches.test(address.slice(`s3://${bucket}/`.length))),
      );
      token =
        textOf(xml, "IsTruncated") === "true"
          ? decodeEntities(textOf(xml, "NextContinuationToken") ?? "") || undefined
          : undefined;
    }
    return found;
  }

  async #ask(
    bucket: string,
    rest: string,
    headers: Readonly<Record<string, string>>,
    context: StoreContext,
  ): Promise<Answer> {
    const answer = await this.#request(bucket, rest, headers, context);
    const region = headerOf(answer, "x-amz-bucket-region");
    const isElsewhere = [301, 307, 400].includes(answer.status) && region !== undefined && /^[a-z0-9-]+$/.test(region);
    if (!isElsewhere || region === this.#regionOf(bucket)) return answer;
    this.#regions.set(bucket, region);
    await whole(answer);
    return this.#request(bucket, rest, headers, context);
  }

  async #request(
    bucket: string,
    rest: string,
    headers: Readonly<Record<string, string>>,
    { signal }: StoreContext,
  ): Promise<Answer> {
    const url = new URL(`${bucketAddress(bucket, this.#settings.endpoint, this.#regionOf(bucket))}/${rest}`);
    const signed = await this.#signed(url, bucket, headers);
    return open(url, {
      dispatcher: this.#dispatcher,
      answerMs: this.#answerMs,
      signal,
      followsRedirects: false,
      headersFor: () => signed,
    });
  }

  #regionOf(bucket: string): string {
    return this.#regions.get(bucket) ?? this.#settings.region;
  }

  async #signed(url: URL, bucket: string, headers: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const { credentials } = this.#settings;
    if (credentials === undefined) return { ...headers };
    const { AwsV4Signer } = await import("aws4fetch");
    const region = this.#regionOf(bucket);
    const signer = new AwsV4Signer({
      ...credentials,
      url: url.href,
      headers: { ...headers },
      service: "s3",
      region,
      cache: this.#derived,
    });
    return Object.fromEntries((await signer.sign()).headers);
  }

  #denied(address: string, said: string): string {
    if (this.#settings.credentials === undefined)
      return `${address} is not open to all (${said}), and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: set them to a key that may read it.`;
    return `${address} is not given to the key in AWS_ACCESS_KEY_ID (${said}). Check that it may read the object and list the bucket, that AWS_SECRET_ACCESS_KEY belongs to it, and that a temporary key has its AWS_SESSION_TOKEN and has not expired.`;
  }
}

/** Refusals that come with a status of 400. */
const REFUSED_CODES: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "InvalidToken",
  "TokenRefreshRequired",
  "InvalidAccessKeyId",
  "AuthorizationHeaderMalformed",
]);

/** What a folder is searched for. */
const LOG_KEY = /\.(jsonl|ndjson|json)(\.(gz|zst))?$/i;

function listed(bucket: string, entry: string): RemoteFile {
  // Keys come percent-encoded, since XML cannot hold all of them; a blank may come as a plus.
  const key = decodeURIComponent(decodeEntities(textOf(entry, "Key") ?? "").replaceAll("+", " "));
  const etag = decodeEntities(textOf(entry, "ETag") ?? "");
  const bytes = Number(textOf(entry, "Size"));
  return {
    address: `s3://${bucket}/${key}`,
    ...(etag === "" ? {} : { etag }),
    ...(Number.isSafeInteger(bytes) ? { bytes } : {}),
  };
}

/** As Signature Version 4 wants it: all but letters, digits and `-._~`. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

const encodedKey = (key: string): string => key.split("/").map(encoded).join("/");

async function whole({ body }: Answer): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MOST_BYTES) throw new Error(`its answer is longer than ${MOST_BYTES} bytes`);
  }
  return Buffer.concat(chunks);
}
