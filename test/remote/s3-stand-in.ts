/**
 * An S3 on loopback: objects of buckets by path, listings in pages, and signatures that are verified, by code of its own written after
 * Amazon's description of Signature Version 4.
 */
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { etagOf } from "./stand-in.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
/** RFC 3986, but for the slash where asked. */
const encode = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) =>
      /[\w.~-]/.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
    )
    .join("");

export interface S3Fault {
  readonly status: number;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class StandInS3 {
  readonly region: string;
  readonly keys = { id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
  /** What requests must also carry. */
  sessionToken: string | undefined;
  /** Keys in a listing's page. */
  pageSize = 1000;
  /** Buckets that are read without a key. */
  readonly open = new Set<string>();
  readonly objects = new Map<string, Buffer>();
  readonly seen: string[] = [];
  fault: (request: string, index: number) => (S3Fault & { cutAfter?: number }) | undefined = () => undefined;
  readonly #server: Server;

  private constructor(region: string) {
    this.region = region;
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(region = "eu-west-1"): Promise<StandInS3> {
    const s3 = new StandInS3(region);
    await new Promise<void>((resolve) => s3.#server.listen(0, "127.0.0.1", resolve));
    return s3;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get env(): Record<string, string> {
    const { id, secret } = this.keys;
    return {
      AWS_ENDPOINT_URL: this.endpoint,
      AWS_ACCESS_KEY_ID: id,
      AWS_SECRET_ACCESS_KEY: secret,
      AWS_REGION: this.region,
      ...(this.sessionToken === undefined ? {} : { AWS_SESSION_TOKEN: this.sessionToken }),
    };
  }

  /** `bucket/key`. */
  put(name: string, content: Buffer | string): void {
    this.objects.set(name, Buffer.from(content));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const [rawPath = "", query = ""] = (request.url ?? "").split("?");
    const [, bucket = "", ...rest] = rawPath.split("/").map(decodeURIComponent);
    const key = rest.join("/");
    const what = `${request.method} /${bucket}/${key}${query === "" ? "" : `?${query}`}`;
    this.seen.push(what);
    const fault = this.fault(what, this.seen.length - 1);
    const refusal = fault && fault.cutAfter === undefined ? fault : this.#refusal(request, bucket, rawPath, query);
    const bytes = this.objects.get(`${bucket}/${key}`);
    if (refusal) refuse(response, refusal);
    else if (key === "") this.#list(bucket, new URLSearchParams(query), response);
    else if (!bytes) refuse(response, { status: 404, code: "NoSuchKey" });
    else this.#send(bytes, request, response, fault?.cutAfter);
  }

  #refusal(request: IncomingMessage, bucket: string, path: string, query: string): S3Fault | undefined {
    if (request.headers.authorization !== undefined || !this.open.has(bucket)) {
      const code = this.#signatureFault(request, path, query);
      if (code === "AuthorizationHeaderMalformed")
        return { status: 400, code, headers: { "x-amz-bucket-region": this.region } };
      if (code) return { status: 403, code };
    }
    const isThere = [...this.objects.keys()].some((name) => name.startsWith(`${bucket}/`));
    return isThere ? undefined : { status: 404, code: "NoSuchBucket" };
  }

  #send(bytes: Buffer, request: IncomingMessage, response: ServerResponse, cutAfter: number | undefined): void {
    const etag = etagOf(bytes);
    if ((request.headers["if-match"] ?? etag) !== etag) {
      refuse(response, { status: 412, code: "PreconditionFailed" });
      return;
    }
    const [, from = "0", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    const end = Math.min(to === "" ? bytes.length : Number(to) + 1, bytes.length);
    const part = bytes.subarray(Number(from), end);
    const range =
      request.headers.range === undefined ? {} : { "content-range": `bytes ${from}-${end - 1}/${bytes.length}` };
    response.writeHead(request.headers.range === undefined ? 200 : 206, {
      etag,
      "content-length": part.length,
      ...range,
    });
    if (cutAfter === undefined) response.end(part);
    else response.write(part.subarray(0, cutAfter), () => setTimeout(() => response.destroy(), 20));
  }

  #list(bucket: string, query: URLSearchParams, response: ServerResponse): void {
    const prefix = query.get("prefix") ?? "";
    const delimiter = query.get("delimiter");
    const keys = [...this.objects.keys()]
      .filter((name) => name.startsWith(`${bucket}/${prefix}`))
      .map((name) => name.slice(bucket.length + 1))
      .filter((key) => delimiter === null || !key.slice(prefix.length).includes(delimiter))
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const start = Number(Buffer.from(query.get("continuation-token") ?? "", "base64").toString() || 0);
    const page = keys.slice(start, start + this.pageSize);
    const isTruncated = start + this.pageSize < keys.length;
    const entries = page.map((key) => {
      const bytes = this.objects.get(`${bucket}/${key}`) as Buffer;
      const shown = encode(key).replaceAll("%2F", "/").replaceAll("%20", "+");
      return `<Contents><Key>${shown}</Key><LastModified>2026-11-30T00:00:00.000Z</LastModified><ETag>${etagOf(bytes).replaceAll('"', "&quot;")}</ETag><Size>${bytes.length}</Size></Contents>`;
    });
    const next = isTruncated
      ? `<NextContinuationToken>${Buffer.from(String(start + this.pageSize)).toString("base64")}</NextContinuationToken>`
      : "";
    response.writeHead(200, { "content-type": "application/xml" });
    response.end(
      `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${bucket}</Name><IsTruncated>${isTruncated}</IsTruncated>${entries.join("")}${next}</ListBucketResult>`,
    );
  }

  /** The code with which a request is refused, if it is. */
  #signatureFault(request: IncomingMessage, path: string, query: string): string | undefined {
    const { authorization } = request.headers;
    if (authorization === undefined) return "AccessDenied";
    const [, id, date, region, signed = "", signature] =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
        authorization,
      ) ?? [];
    if (id !== this.keys.id) return "InvalidAccessKeyId";
    if (region !== this.region) return "AuthorizationHeaderMalformed";
    const names = signed.split(";");
    if (!["host", "x-amz-content-sha256", "x-amz-date"].every((name) => names.includes(name)))
      return "SignatureDoesNotMatch";
    if (request.headers["x-amz-security-token"] !== this.sessionToken) return "InvalidToken";
    const parameters = [...new URLSearchParams(query)]
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .sort();
    const canonical = [
      request.method,
      path.split("/").map(decodeURIComponent).map(encode).join("/"),
      parameters.join("&"),
      ...names.map((name) => `${name}:${String(request.headers[name]).trim()}`),
      "",
      signed,
      request.headers["x-amz-content-sha256"],
    ].join("\n");
    const time = String(request.headers["x-amz-date"]);
    const scope = `${date}/${region}/s3/aws4_request`;
    const key = ["s3", "aws4_request"].reduce(hmac, hmac(hmac(`AWS4${this.keys.secret}`, date ?? ""), region ?? ""));
    const expected = hmac(key, ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n")).toString("hex");
    return signature === expected ? undefined : "SignatureDoesNotMatch";
  }
}

function refuse(response: ServerResponse, { status, code = "InternalError", headers }: S3Fault): void {
  response.writeHead(status, { "content-type": "application/xml", ...headers });
  response.end(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>No.</Message><AWSAccessKeyId>AKIDEXAMPLE</AWSAccessKeyId><StringToSign>secret-words</StringToSign></Error>`,
  );
}
