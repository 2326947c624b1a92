/** Objects of a moto server, which checks signatures as botocore makes them. Skipped by name where it is not installed (`setup` installs it). */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PinnedFile } from "../../src/remote/file.ts";
import { RemoteFiles } from "../../src/remote/remote.ts";
import { motoFolder, runCommand } from "./environment.ts";

const SIZE = 12_000_000;
let server: ChildProcess | undefined;
let env: Record<string, string> = {};

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

beforeAll(async () => {
  if (motoFolder === undefined) return;
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  server = spawn(`${motoFolder}/bin/moto_server`, ["-H", "127.0.0.1", "-p", `${port}`], { stdio: "ignore" });
  for (let tries = 0; tries < 300; tries += 1) {
    if (
      await fetch(`${endpoint}/moto-api/`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break;
    await sleep(200);
  }
  const script = new URL("s3_objects.py", import.meta.url).pathname;
  const run = await runCommand(`${motoFolder}/bin/python`, [script, endpoint, `${SIZE}`], { timeoutMs: 60_000 });
  if (run.code !== 0) throw new Error(run.stderr);
  const { id, secret, region } = JSON.parse(run.stdout) as Record<"id" | "secret" | "region", string>;
  env = { AWS_ENDPOINT_URL: endpoint, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_REGION: region };
});
afterAll(() => void server?.kill());

async function withFiles<T>(given: Record<string, string>, work: (remote: RemoteFiles) => Promise<T>): Promise<T> {
  const remote = new RemoteFiles({ env: given, signal: new AbortController().signal });
  try {
    return await work(remote);
  } finally {
    await remote.close();
  }
}
const text = async (chunks: AsyncIterable<Buffer>): Promise<string> => {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all).toString("latin1");
};
const found = (name: string, given = env) =>
  withFiles(given, async (remote) => (await remote.find(name)).map(({ address }) => address));

test.skipIf(motoFolder === undefined)(
  "moto: keys of any characters are listed and read with signatures that hold",
  async () => {
    const names = ["2026/a.jsonl", "2026/b+c d.jsonl", "2026/deep/er/e.jsonl", "2026/été/&=~'!.jsonl"];
    expect(await found("s3://logs/2026/**/*.jsonl")).toEqual(names.map((name) => `s3://logs/${name}`));
    expect(await found("s3://logs/2026/*.jsonl")).toEqual(names.slice(0, 2).map((name) => `s3://logs/${name}`));
    await withFiles(env, async (remote) => {
      for (const name of names)
        expect(Buffer.from(await text(remote.chunks({ address: `s3://logs/${name}` })), "latin1").toString()).toBe(
          name.slice(5),
        );
    });
  },
);

test.skipIf(motoFolder === undefined)(
  "moto: a listing, a look and the object agree, also of one uploaded in parts; a part comes if it is the same",
  async () => {
    await withFiles(env, async (remote) => {
      const [listed] = await remote.pin("s3://logs/la*");
      const [looked] = await remote.pin("s3://logs/large");
      expect(listed).toMatchObject({ bytes: SIZE, etag: expect.stringMatching(/^"[0-9a-f]{32}-2"$/) });
      expect(looked).toMatchObject({ bytes: SIZE, etag: listed?.etag });
      const whole = await text(remote.chunks(listed as PinnedFile));
      expect(whole).toHaveLength(SIZE);
      const { createHash } = await import("node:crypto");
      const hash = createHash("sha256").update(whole.slice(0, 5_000_000), "latin1");
      expect(await text(remote.chunks(listed as PinnedFile, { bytes: 5_000_000, hash }))).toBe(whole.slice(5_000_000));
      const stale = { ...(listed as PinnedFile), etag: '"other"' };
      await expect(remote.chunks(stale, { bytes: 10, hash: createHash("sha256") }).next()).rejects.toThrow("RL6033");
    });
  },
);

test.skipIf(motoFolder === undefined)("moto: what is refused says why", async () => {
  await expect(found("s3://closed/*")).rejects.toThrow(/RL6031.*AccessDenied/);
  await expect(found("s3://logs/*", { ...env, AWS_SECRET_ACCESS_KEY: "wrong" })).rejects.toThrow(
    /RL6031.*SignatureDoesNotMatch/,
  );
  await withFiles(env, async (remote) => {
    await expect(remote.pin("s3://logs/none")).rejects.toThrow(/RL6032.*NoSuchKey/);
  });
});
