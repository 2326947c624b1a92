// Files at addresses against servers that break off, change, refuse and have no ranges: what comes is the file, or an error.
import { createHash, randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { identityOf, type PinnedFile } from "../../src/remote/file.ts";
import { RemoteFiles } from "../../src/remote/remote.ts";
import { bucketAddress } from "../../src/remote/s3.ts";
import { StandInS3 } from "./s3-stand-in.ts";
import { StandInWeb } from "./stand-in.ts";

const TIMES = { answerMs: 300, deadlineMs: 900, firstPauseMs: 10 };
const CONTENT = randomBytes(400_000);

let web: StandInWeb;
let s3: StandInS3;
const open: RemoteFiles[] = [];

beforeEach(async () => {
  [web, s3] = await Promise.all([StandInWeb.start(), StandInS3.start()]);
});
afterEach(async () => {
  for (const remote of open.splice(0)) await remote.close();
  await Promise.all([web.close(), s3.close()]);
});

function files(env: Record<string, string> = {}, signal = new AbortController().signal): RemoteFiles {
  const remote = new RemoteFiles({ env, signal, times: TIMES });
  open.push(remote);
  return remote;
}
async function read(remote: RemoteFiles, file: { address: string }): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of remote.chunks(file)) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
const requests = () => web.seen.map(({ headers }) => headers.range ?? "whole");
const cutAt =
  (...cuts: number[]) =>
  ({ index }: { index: number }) =>
    cuts[index] === undefined ? undefined : { cutAfter: cuts[index] };

describe("a broken connection", () => {
  test("goes on with the rest, where the server sends it", async () => {
    const address = web.put("/a", CONTENT);
    web.fault = cutAt(100_000, 50_000, 0);
    expect((await read(files(), { address })).equals(CONTENT)).toBe(true);
    expect(web.seen[1]?.headers["if-range"]).toBe(web.files.get("/a")?.etag);
    // At most what was sent before each cut has come.
    const starts = requests().map((range) => Number(/\d+/.exec(range)?.[0] ?? 0));
    expect(starts).toHaveLength(4);
    expect(starts.every((at, i) => i === 0 || at >= (starts[i - 1] as number))).toBe(true);
    expect(starts[3]).toBeLessThanOrEqual(150_000);
  });

  test.each([
    ["has no ranges", { etag: '"1"' }],
    ["has only a weak ETag", { etag: 'W/"1"' }],
    ["says nothing of its content", {}],
  ])("begins anew and passes over what is known where the server %s", async (_, about) => {
    const address = web.put("/a", CONTENT, { etag: undefined, ...about });
    web.ignoresRange = true;
    web.fault = cutAt(200_000, 300_000);
    expect((await read(files(), { address })).equals(CONTENT)).toBe(true);
    expect(web.seen).toHaveLength(3);
  });

  test("goes on by the time of the last change, where there is no strong ETag", async () => {
    const modified = "Mon, 30 Nov 2026 10:00:00 GMT";
    const address = web.put("/a", CONTENT, { etag: 'W/"1"', modified });
    web.fault = cutAt(200_000);
    expect((await read(files(), { address })).equals(CONTENT)).toBe(true);
    expect(web.seen[1]?.headers).toMatchObject({ "if-range": modified });
  });

  test("that never gets further ends, with what was wrong", async () => {
    const address = web.put("/a", CONTENT);
    web.fault = ({ index }) => ({ cutAfter: index === 0 ? 1000 : 0 });
    await expect(read(files(), { address })).rejects.toThrow(/RL6030.*127\.0\.0\.1.*\/a: the connection broke/);
  });

  test("is waited for as the server asks, also over many answers that are busy", async () => {
    const address = web.put("/a", CONTENT);
    web.fault = ({ index }) => [{ status: 503 }, { cutAfter: 1000 }, { status: 429 }, { status: 500 }][index];
    expect((await read(files(), { address })).equals(CONTENT)).toBe(true);
    web.fault = () => ({ status: 429, headers: { "retry-after": "3600" } });
    await expect(read(files(), { address })).rejects.toThrow(
      /RL6030.*too many requests from here and asks to wait 3600 s/,
    );
  });
});

describe("a content that changes in the middle", () => {
  const other = randomBytes(CONTENT.length);
  test.each([
    ["by its ETag", {}, other],
    ["by its length", { etag: undefined }, other.subarray(0, 390_000)],
    ["by its time", { etag: undefined, modified: "Mon, 30 Nov 2026 10:00:00 GMT" }, other],
    ["by what was read of it", { etag: undefined }, other],
    ["by what was read of it, under the same ETag", { etag: 'W/"1"' }, other],
    ["by ending before what was read", { etag: undefined }, other.subarray(0, 10)],
  ])("is told %s", async (_, about, changed) => {
    const address = web.put("/a", CONTENT, about);
    web.fault = ({ index }) => {
      if (index === 0) return { cutAfter: 100_000, isChunked: changed.length === 10 };
      web.put("/a", changed, "modified" in about ? { modified: "Mon, 30 Nov 2026 10:00:01 GMT" } : about);
      return { isChunked: changed.length === 10 };
    };
    await expect(read(files(), { address })).rejects.toThrow(/RL6033.*changed while it was read/);
  });

  test("is told where it is not what was pinned, before a byte of it is given", async () => {
    const address = web.put("/a", CONTENT);
    const [pinned] = await files().pin(address);
    await files().verify(pinned as PinnedFile);
    web.put("/a", other);
    await expect(files().verify(pinned as PinnedFile)).rejects.toThrow("RL6033");
    await expect(
      files()
        .chunks(pinned as PinnedFile)
        .next(),
    ).rejects.toThrow("RL6033");
  });
});

describe("pinning", () => {
  test("reads one byte, and tells contents apart", async () => {
    const address = web.put("/a", CONTENT);
    const [pinned] = await files().pin(address);
    expect(pinned).toEqual({ address, bytes: CONTENT.length, etag: web.files.get("/a")?.etag });
    expect(requests()).toEqual(["bytes=0-0"]);
    const before = identityOf(pinned as PinnedFile);
    expect(identityOf((await files().pin(address))[0] as PinnedFile)).toBe(before);
    web.put("/a", Buffer.concat([CONTENT, CONTENT]));
    expect(identityOf((await files().pin(address))[0] as PinnedFile)).not.toBe(before);
  });

  test("takes the time of the last change where there is no ETag, and no body where there are no ranges", async () => {
    web.ignoresRange = true;
    const address = web.put("/a", CONTENT, { modified: "Mon, 30 Nov 2026 10:00:00 GMT" });
    expect(await files().pin(address)).toEqual([
      { address, bytes: 400_000, modified: "Mon, 30 Nov 2026 10:00:00 GMT" },
    ]);
  });

  test("reads all of a file of which nothing is said, and knows it by its digest", async () => {
    const address = web.put("/a", CONTENT, { etag: undefined });
    const [pinned] = await files().pin(address);
    const digest = `sha256:${createHash("sha256").update(CONTENT).digest("hex")}`;
    expect(pinned).toEqual({ address, bytes: CONTENT.length, digest });
    expect(identityOf(pinned as PinnedFile)).toBe(digest);
    web.put("/a", randomBytes(CONTENT.length), { etag: undefined });
    await expect(read(files(), pinned as PinnedFile)).rejects.toThrow("RL6033");
  });

  test("takes an empty file for one", async () => {
    const address = web.put("/a", "");
    expect(await files().pin(address)).toMatchObject([{ bytes: 0 }]);
    expect(await read(files(), { address })).toEqual(Buffer.alloc(0));
  });
});

describe("refusals", () => {
  test.each([
    [403, "RL6031"],
    [401, "RL6031"],
    [404, "RL6032"],
    [410, "RL6032"],
    [400, "RL6030"],
  ])("%i is %s at once, and what the query holds is not shown", async (status, code) => {
    web.put("/a", CONTENT);
    web.fault = () => ({ status });
    const address = `${web.origin}/a?X-Amz-Signature=s3cret`;
    const failure = await read(files(), { address }).catch((error: Error) => error);
    expect(String(failure)).toContain(code);
    expect(String(failure)).not.toContain("s3cret");
    expect(web.seen).toHaveLength(1);
  });

  test("a server that says nothing, or nobody there, is told soon", async () => {
    const address = web.put("/a", CONTENT);
    web.fault = () => ({ hangs: true });
    await expect(read(files(), { address })).rejects.toThrow(/RL6030.*no answer within 0.3 s/);
    await expect(read(files(), { address: "http://127.0.0.1:9/a" })).rejects.toThrow(/RL6030.*127\.0\.0\.1:9/);
    await expect(files().find("http://")).rejects.toThrow("RL6032");
  });

  test("redirects are followed, but to nothing that is no web address, and not in circles", async () => {
    const address = web.put("/a", CONTENT);
    const to = (location: string) => () => ({ status: 302, headers: { location } });
    web.fault = ({ url }) => (url === "/b" ? to("/a?token=s3cret")() : undefined);
    expect((await read(files(), { address: `${web.origin}/b` })).equals(CONTENT)).toBe(true);
    for (const location of ["file:///etc/passwd", "http://", "/c"]) {
      web.fault = to(location);
      await expect(read(files(), { address })).rejects.toThrow(/RL6030.*redirects/);
    }
  });

  test("an encoding that nobody asked for is no content", async () => {
    const address = web.put("/a", CONTENT, { headers: { "content-encoding": "br" } });
    await expect(read(files(), { address })).rejects.toThrow(/RL6030.*`br`/);
  });

  test("who stops waits for nothing", async () => {
    const stop = new AbortController();
    const address = web.put("/a", CONTENT);
    web.fault = () => ({ hangs: true });
    setTimeout(() => stop.abort(new Error("enough")), 50);
    await expect(read(files({}, stop.signal), { address })).rejects.toThrow("enough");
  });
});

describe("S3", () => {
  beforeEach(() => {
    s3.put("logs/2026/a.jsonl", "a");
    s3.put("logs/2026/b.jsonl.gz", "bb");
    s3.put("logs/2026/deep/c.jsonl", "ccc");
    s3.put("logs/2026/readme.md", "no");
    s3.put("logs/odd/x y+z&(1)=é~'!*.json", "odd");
    s3.put("logs/odd/a[1].json", "bracket");
  });
  const found = async (name: string, env = s3.env) => (await files(env).find(name)).map(({ address }) => address);

  test("an object is read with a signature that holds", async () => {
    s3.put("logs/big", CONTENT);
    expect((await read(files(s3.env), { address: "s3://logs/big" })).equals(CONTENT)).toBe(true);
    for (const key of ["odd/x y+z&(1)=é~'!*.json", "odd/a[1].json"]) {
      const address = `s3://logs/${key}`;
      expect(`${await read(files(s3.env), { address })}`).toBe(`${s3.objects.get(`logs/${key}`)}`);
    }
  });

  test("names stand for an object, for those that a glob matches, or for the logs below a prefix", async () => {
    s3.pageSize = 2;
    expect(await found("s3://logs/2026/a.jsonl")).toEqual(["s3://logs/2026/a.jsonl"]);
    expect(await found("s3://logs/2026/*.jsonl*")).toEqual(["s3://logs/2026/a.jsonl", "s3://logs/2026/b.jsonl.gz"]);
    expect(await found("s3://logs/**/*.jsonl")).toEqual(["s3://logs/2026/a.jsonl", "s3://logs/2026/deep/c.jsonl"]);
    expect(await found("s3://logs/2026/")).toEqual([
      "s3://logs/2026/a.jsonl",
      "s3://logs/2026/b.jsonl.gz",
      "s3://logs/2026/deep/c.jsonl",
    ]);
    expect(await found("s3://logs/{odd,even}/x*")).toEqual(["s3://logs/odd/x y+z&(1)=é~'!*.json"]);
    expect(await found("s3://logs/odd/a[1].json")).toEqual(["s3://logs/odd/a[1].json"]);
    await expect(found("s3://logs/2027/*")).rejects.toThrow("RL6032");
  });

  test("a listing pins what it lists, as the objects themselves say", async () => {
    const remote = files(s3.env);
    const [listed] = await remote.pin("s3://logs/2026/a*");
    expect(listed).toEqual({ ...(await remote.pin("s3://logs/2026/a.jsonl"))[0] });
    expect(await read(remote, listed as PinnedFile)).toEqual(Buffer.from("a"));
  });

  test("a broken connection goes on if the object is the same", async () => {
    s3.put("logs/big", CONTENT);
    s3.fault = (_, index) => (index === 0 ? { status: 200, cutAfter: 100_000 } : undefined);
    expect((await read(files(s3.env), { address: "s3://logs/big" })).equals(CONTENT)).toBe(true);
    s3.seen.splice(0);
    s3.fault = (_, index) => {
      if (index > 0) s3.put("logs/big", randomBytes(CONTENT.length));
      return index === 0 ? { status: 200, cutAfter: 100_000 } : undefined;
    };
    await expect(read(files(s3.env), { address: "s3://logs/big" })).rejects.toThrow("RL6033");
  });

  test("a busy store is asked again", async () => {
    s3.fault = (_, index) => [{ status: 503, code: "SlowDown" }, { status: 500 }][index];
    expect(await read(files(s3.env), { address: "s3://logs/2026/a.jsonl" })).toEqual(Buffer.from("a"));
  });

  test("a bucket in another region is asked there, once it said so", async () => {
    const remote = files({ ...s3.env, AWS_REGION: "us-east-1" });
    expect(await read(remote, { address: "s3://logs/2026/a.jsonl" })).toEqual(Buffer.from("a"));
    expect(await read(remote, { address: "s3://logs/2026/a.jsonl" })).toEqual(Buffer.from("a"));
    expect(s3.seen).toHaveLength(3);
  });

  test("a temporary key goes with its token", async () => {
    s3.sessionToken = "session/token+=";
    expect(await found("s3://logs/2026/a*")).toHaveLength(1);
    const { AWS_SESSION_TOKEN: _, ...without } = s3.env;
    await expect(found("s3://logs/2026/a*", without)).rejects.toThrow(/RL6031.*InvalidToken/);
  });

  test("what is open is read without a key; what is not says what to set", async () => {
    const env = { AWS_ENDPOINT_URL: s3.endpoint };
    await expect(found("s3://logs/2026/*", env)).rejects.toThrow(/RL6031.*AWS_ACCESS_KEY_ID.*not set/);
    s3.open.add("logs");
    expect(await found("s3://logs/2026/*", env)).toHaveLength(3);
  });

  test.each([
    ["a wrong secret", { AWS_SECRET_ACCESS_KEY: "hidden-words" }, "RL6031", /SignatureDoesNotMatch/],
    ["an unknown key", { AWS_ACCESS_KEY_ID: "hidden-words" }, "RL6031", /InvalidAccessKeyId/],
    ["half a key", { AWS_SECRET_ACCESS_KEY: "" }, "RL6034", /AWS_SECRET_ACCESS_KEY is not/],
    ["an endpoint that is none", { AWS_ENDPOINT_URL: "http://a:hidden-words@b" }, "RL6034", /AWS_ENDPOINT_URL/],
  ])("%s is told without it", async (_, env, code, words) => {
    const failure = await found("s3://logs/2026/a.jsonl*", { ...s3.env, ...env }).catch((error: Error) => error);
    expect(String(failure)).toContain(code);
    expect(String(failure)).toMatch(words);
    expect(String(failure)).not.toMatch(/hidden-words|secret-words|wJalr/);
  });

  test.each(["s3://", "s3://logs", "s3://logs/", "s3://lo gs/a", "s3://logs/../a"])(
    "%s names nothing",
    async (name) => {
      await expect(found(name)).rejects.toThrow("RL6032");
    },
  );

  test.each([
    ["logs", undefined, "eu-west-1", "https://logs.s3.eu-west-1.amazonaws.com"],
    ["my.logs", undefined, "us-east-1", "https://s3.us-east-1.amazonaws.com/my.logs"],
    ["logs", undefined, "cn-north-1", "https://logs.s3.cn-north-1.amazonaws.com.cn"],
    ["logs", "http://127.0.0.1:9000/minio", "x", "http://127.0.0.1:9000/minio/logs"],
  ])("bucket %s at %s in %s is %s", (bucket, endpoint, region, address) =>
    expect(bucketAddress(bucket, endpoint, region)).toBe(address),
  );

  test("what is not there is told", async () => {
    await expect(read(files(s3.env), { address: "s3://logs/none" })).rejects.toThrow(/RL6032.*NoSuchKey/);
    await expect(read(files(s3.env), { address: "s3://other/none" })).rejects.toThrow(/RL6032.*no bucket `other`/);
  });
});
