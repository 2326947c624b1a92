/**
 * The part of the hub's interface that takes models: repositories, which files are large, a store of them by digest (in one part, or in
 * several where they are long) that checks what it is sent, and commits that must name only what is there.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

interface Repository {
  readonly isPrivate: boolean;
  /** By path, of the newest commit. */
  readonly files: Map<string, Buffer>;
  readonly messages: string[];
}

export const WRITER = "hf_writer";
/** Bytes of one part; longer files come in several. */
const PART_BYTES = 20_000;

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

export class Uploads {
  readonly repositories = new Map<string, Repository>();
  readonly stored = new Map<string, Buffer>();
  readonly #parts = new Map<string, Map<number, Buffer>>();
  /** Bytes that the store was sent, over all requests. */
  sentBytes = 0;
  pullRequests = 0;

  async answer(
    host: "hub" | "store",
    storeUrl: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const body = await read(request);
    const path = new URL(request.url ?? "", "http://hub").pathname.replace(/^\/mirror/, "");
    const json = (status: number, value: object, headers = {}) =>
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
    const { authorization } = request.headers;
    if (host === "store") {
      // A signed address, which the hub's token must not reach.
      if (authorization !== undefined) return void json(400, { error: "Only one auth mechanism allowed" });
      return this.#take(path, request, body, json);
    }
    if (authorization !== `Bearer ${WRITER}`)
      return void json(403, { error: "You don't have the rights to create a model" });
    const [, owner, name, verb] =
      /^\/(?:api\/models\/)?([^/]+)\/([^/.]+)(?:\.git)?\/(preupload|info|commit)\b/.exec(path) ?? [];
    const repository = this.repositories.get(`${owner}/${name}`);
    if (path === "/api/repos/create") this.#create(JSON.parse(body.toString()), json);
    else if (!repository) json(404, { error: "Repository not found" });
    else if (verb === "preupload") json(200, { files: modes(JSON.parse(body.toString())) });
    else if (verb === "info") json(200, { objects: this.#batch(JSON.parse(body.toString()), storeUrl) });
    else this.#commit(repository, request.url ?? "", body, json);
  }

  #create({ organization, name, private: isPrivate, type }: any, json: (status: number, value: object) => void): void {
    const id = `${organization}/${name}`;
    if (type !== "model") json(400, { error: "no such type" });
    else if (this.repositories.has(id)) json(409, { error: "You already created this model repo" });
    else {
      this.repositories.set(id, { isPrivate, files: new Map(), messages: [] });
      json(200, { url: id });
    }
  }

  #batch({ objects }: any, storeUrl: string): object[] {
    return objects.map(({ oid, size }: { oid: string; size: number }) => {
      if (this.stored.has(oid)) return { oid, size };
      const href = `${storeUrl}/put/${oid}`;
      const verify = { href: `${storeUrl}/verify/${oid}` };
      if (size <= PART_BYTES)
        return { oid, size, actions: { upload: { href, header: { "x-signed": "yes" } }, verify } };
      const count = Math.ceil(size / PART_BYTES);
      const parts = Object.fromEntries(
        Array.from({ length: count }, (_, i) => [String(i + 1), `${storeUrl}/part/${oid}/${i + 1}`]),
      );
      return {
        oid,
        size,
        actions: {
          upload: { href: `${storeUrl}/complete/${oid}`, header: { chunk_size: String(PART_BYTES), ...parts } },
        },
      };
    });
  }

  #take(
    path: string,
    request: IncomingMessage,
    body: Buffer,
    json: (status: number, value: object, headers?: object) => void,
  ): void {
    const [, verb, oid = "", part] = path.split("/");
    if (request.method === "PUT") this.sentBytes += body.length;
    if (verb === "put" && request.headers["x-signed"] !== "yes") json(403, { error: "not signed" });
    else if (verb === "put" && hashOf(body) !== oid) json(400, { error: "wrong digest" });
    else if (verb === "put") {
      this.stored.set(oid, body);
      json(200, {});
    } else if (verb === "part") {
      const parts = this.#parts.get(oid) ?? new Map<number, Buffer>();
      this.#parts.set(oid, parts.set(Number(part), body));
      json(200, {}, { etag: `"${hashOf(body).slice(0, 8)}"` });
    } else if (verb === "complete") {
      const given = JSON.parse(body.toString()).parts as { partNumber: number; etag: string }[];
      const parts = given.map(({ partNumber, etag }) => {
        const bytes = this.#parts.get(oid)?.get(partNumber) ?? Buffer.alloc(0);
        return etag === `"${hashOf(bytes).slice(0, 8)}"` ? bytes : Buffer.from("wrong etag");
      });
      const whole = Buffer.concat(parts);
      if (hashOf(whole) === oid) this.stored.set(oid, whole);
      json(hashOf(whole) === oid ? 200 : 400, {});
    } else json(this.stored.has(oid) ? 200 : 404, {});
  }

  #commit(repository: Repository, url: string, body: Buffer, json: (status: number, value: object) => void): void {
    const lines = body
      .toString()
      .split("\n")
      .map((line) => JSON.parse(line));
    for (const { key, value } of lines) {
      if (key === "header") repository.messages.push(value.summary);
      const bytes = key === "file" ? Buffer.from(value.content, value.encoding) : this.stored.get(value.oid);
      if (key !== "header" && !bytes) {
        json(400, { error: `${value.path} points at an object that is not there` });
        return;
      }
      if (bytes) repository.files.set(value.path, bytes);
    }
    const commitOid = hashOf(body).slice(0, 40);
    const pullRequest = url.includes("create_pr=1")
      ? { pullRequestUrl: `https://hub.example/pr/${++this.pullRequests}` }
      : {};
    json(200, { commitUrl: `https://hub.example/commit/${commitOid}`, commitOid, ...pullRequest });
  }
}

/** Weights are large whatever they weigh, as the hub's own rule for their names says. */
const modes = ({ files }: any): object[] =>
  files.map(({ path, size, sample }: { path: string; size: number; sample: string }) => {
    if (Buffer.from(sample, "base64").length !== Math.min(size, 512))
      throw new Error("a sample is the first 512 bytes");
    return { path, uploadMode: path.endsWith(".safetensors") ? "lfs" : "regular", shouldIgnore: false };
  });

async function read(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
  return Buffer.concat(parts);
}
