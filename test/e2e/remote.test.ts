/** Sources at addresses with the real program: streamed imports, and a spec's plan, lock and apply, against stand-ins on loopback. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import * as zlib from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { StandInS3 } from "../remote/s3-stand-in.ts";
import { StandInWeb } from "../remote/stand-in.ts";
import { type Ran, rows, TestProject } from "./project.ts";

let web: StandInWeb;
let s3: StandInS3;
let project: TestProject;

beforeEach(async () => {
  [web, s3] = await Promise.all([StandInWeb.start(), StandInS3.start()]);
  project = new TestProject({});
  Object.assign(project.env, s3.env, { RLCLI_CACHE: join(project.folder, "cache") });
});
afterEach(async () => {
  await Promise.all([web.close(), s3.close()]);
  rmSync(project.folder, { recursive: true, force: true });
});

const run = (...args: string[]): Promise<Ran> => project.start(...args).ended;
const many = rows(Array.from({ length: 3000 }, (_, i) => `question ${i}`));
const zstd = (zlib as { zstdCompressSync?: (text: string) => Buffer }).zstdCompressSync;
const PACKED: (readonly [string, Buffer | string])[] = [
  ["plain", many],
  ["gzip", zlib.gzipSync(many)],
  ...(zstd ? [["zstd", zstd(many)] as const] : []),
];
const lines = (text: string) => text.split("\n").length - 1;
/** Everything that was written, but for what came as it is. */
const written = (folder = project.folder): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${name}\n${readFileSync(join(parentPath, name), "latin1")}`)
    .join("\n");

describe("rlcli import", () => {
  test.each(PACKED)("streams what breaks off again and again, %s", async (_, content) => {
    const address = web.put("/logs.jsonl", content);
    const size = web.files.get("/logs.jsonl")?.bytes.length as number;
    web.fault = ({ index }) => (index < 3 ? { cutAfter: Math.floor(size / 5) } : undefined);
    const { code, out, err } = await run("import", address);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("3000 rows") });
    expect(out).toBe(many);
    expect(web.seen).toHaveLength(4);
  });

  test("takes every whole line of a compressed file that ends too early", async () => {
    const packed = zlib.gzipSync(many);
    const address = web.put("/logs.jsonl.gz", packed.subarray(0, packed.length - 100));
    const { code, out, err } = await run("import", address);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("the compressed data breaks off") });
    expect(many.startsWith(out)).toBe(true);
    expect(lines(out)).toBeGreaterThan(2900);
  });

  test("names the place of a bad line, and neither shows nor stores the query of a signed address", async () => {
    const address = `${web.put("/a/logs.jsonl", `{"messages": 1}\n${rows()}`)}?X-Amz-Signature=s3cret`;
    const { code, err } = await run("import", address, "-o", "out.jsonl", "--dropped", "dropped.jsonl", "--stats");
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining(`${web.origin}/a/logs.jsonl:1:`) });
    expect(web.seen[0]?.url).toContain("?X-Amz-Signature=s3cret");
    expect(err + written()).not.toContain("s3cret");
    const emitted = await run("import", address, "--emit-spec");
    expect(emitted).toMatchObject({ code: 1, out: "", err: expect.stringContaining("error[RL1308]") });
    web.fault = () => ({ status: 403 });
    const refused = await run("import", address);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("error[RL6031]") });
    expect(refused.err).not.toContain("s3cret");
  });

  test("leaves no half file where the content changes in the middle", async () => {
    const address = web.put("/logs.jsonl", many);
    web.fault = ({ index }) => {
      if (index === 0) return { cutAfter: 50_000 };
      web.put("/logs.jsonl", many.replaceAll("question", "answers!"));
      return undefined;
    };
    const { code, err } = await run("import", address, "-o", "out.jsonl");
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("error[RL6033]") });
    expect(readdirSync(project.folder)).toEqual([]);
  });

  test("reads CSV as it comes, Parquet from the cache, and objects of a bucket beside files", async () => {
    const fixture = (name: string) => readFileSync(new URL(`../fixtures/tasks/${name}`, import.meta.url));
    const csv = web.put("/logs.csv", "instruction,output\nhi,there\n");
    const parquet = web.put("/logs.parquet", fixture("messages.parquet"));
    s3.put("logs/1/a.jsonl", rows(["a"]));
    s3.put("logs/1/b.jsonl.gz", zlib.gzipSync(rows(["b", "c"])));
    project.write("local.jsonl", rows(["d"]));
    const { code, out, err } = await run("import", csv, "s3://logs/1/*", "local.jsonl");
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(lines(out)).toBe(5);
    const table = await run("import", parquet);
    expect(table).toMatchObject({ code: 0, out: expect.stringContaining('"messages"') });
    expect(existsSync(join(project.folder, "cache/remote/blobs"))).toBe(true);
  });

  test("ends soon where the reader has gone, and where nobody answers", async () => {
    const address = web.put("/logs.jsonl", many.repeat(20));
    const child = project.start("import", address);
    child.stdout?.once("data", () => child.stdout?.destroy());
    expect((await child.ended).code).toBe(0);
    const nobody = await run("import", "http://127.0.0.1:9/a.jsonl");
    expect(nobody).toMatchObject({ code: 1, err: expect.stringContaining("error[RL6030]") });
  });
});

describe("a spec", () => {
  const spec = (source: string): string => `rlcli: 1
project: test
datasets:
  logs: { source: ${source} }
`;
  const write = (source: string): void => project.write("rlcli.yaml", spec(source));
  const lock = () => JSON.parse(readFileSync(join(project.folder, "rlcli.lock"), "utf8"));

  test("is planned by one byte, locked, applied with what broke off taken up, and then nobody is asked", async () => {
    const address = web.put("/rows.jsonl", many);
    write(address);
    expect(await run("plan")).toMatchObject({ code: 0, out: expect.stringContaining("+ dataset.logs") });
    expect(web.seen.map(({ headers }) => headers.range)).toEqual(["bytes=0-0"]);
    expect(lock().entries[address]).toMatchObject({ type: "remote-files", files: [{ address, bytes: many.length }] });

    // The first apply is cut off for good; the next one needs only the rest.
    web.fault = ({ headers }) =>
      headers.range === "bytes=0-0" ? undefined : headers.range ? { status: 404 } : { cutAfter: 60_000 };
    expect(await run("apply", "-y")).toMatchObject({ code: 1, err: expect.stringContaining("error[RL6032]") });
    web.fault = () => undefined;
    web.seen.splice(0);
    const applied = await run("apply", "-y");
    expect(applied).toMatchObject({ code: 0, err: expect.stringContaining("3000 rows") });
    expect(web.seen.at(-1)?.headers.range).toMatch(/^bytes=[1-9]\d*-$/);

    await web.close();
    Object.assign(project.env, { CI: "true" });
    expect(await run("plan", "--detailed-exitcode")).toMatchObject({ code: 0 });
    rmSync(join(project.folder, ".rlcli/datasets"), { recursive: true });
    expect(await run("apply", "-y")).toMatchObject({ code: 0 });
  });

  test("stays what was locked until the lock is moved, and says so where that is gone", async () => {
    const address = web.put("/rows.jsonl", rows());
    write(address);
    expect((await run("apply", "-y")).code).toBe(0);
    web.put("/rows.jsonl", rows(["other"]));
    expect(await run("plan", "--detailed-exitcode")).toMatchObject({ code: 0 });

    rmSync(join(project.folder, "cache"), { recursive: true });
    rmSync(join(project.folder, ".rlcli/datasets"), { recursive: true });
    const gone = await run("plan");
    expect(gone).toMatchObject({ code: 1, err: expect.stringMatching(/error\[RL6033\][\s\S]*rlcli\.yaml:4:/) });
    expect(gone.err).toContain("since it was locked");

    const moved = await run("lock", "--upgrade", "dataset.logs");
    expect(moved).toMatchObject({ code: 0, out: expect.stringMatching(/^~ http.* [0-9a-f]{12} → [0-9a-f]{12}\n/) });
    expect(await run("plan")).toMatchObject({ code: 0, out: expect.stringContaining("~ dataset.logs") });
    expect(await run("apply", "-y")).toMatchObject({ code: 0, err: expect.stringContaining("1 row") });
  });

  test("imports objects of a bucket beside files; a new object is another dataset once the lock moves", async () => {
    s3.put("logs/1/a.jsonl", rows(["a"]));
    s3.put("logs/1/b.jsonl.gz", zlib.gzipSync(rows(["b", "c"])));
    project.write("local.jsonl", rows(["d"]));
    project.write(
      "rlcli.yaml",
      "rlcli: 1\nproject: test\ndatasets:\n  logs: { import: { from: [local.jsonl, s3://logs/1/*] } }\n",
    );
    expect(await run("apply", "-y")).toMatchObject({ code: 0, err: expect.stringContaining("4 rows") });
    s3.put("logs/1/c.jsonl", rows(["e"]));
    expect(await run("plan", "--detailed-exitcode")).toMatchObject({ code: 0 });
    expect((await run("lock", "--upgrade")).code).toBe(0);
    const applied = await run("apply", "-y");
    expect(applied).toMatchObject({ code: 0, err: expect.stringContaining("5 rows") });
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = s3.env;
    for (const value of [id, secret]) expect(written()).not.toContain(value);
  });

  test("refuses what would be stored: passwords and signatures, also in lists and from the environment", async () => {
    Object.assign(project.env, { SIGNED: "https://example.com/rows.jsonl?sig=hidden-words" });
    for (const source of [
      "https://me:hidden-words@example.com/a",
      '"https://example.com/a?token=hidden-words"',
      `"\${env.SIGNED}"`,
    ]) {
      write(source);
      const { code, out, err } = await run("plan");
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/error\[RL1308\][\s\S]*rlcli\.yaml:4:/) });
      expect(out + err).not.toContain("hidden-words");
    }
    project.write(
      "rlcli.yaml",
      'rlcli: 1\nproject: test\ndatasets:\n  logs: { import: { from: [a.jsonl, "https://example.com/a?X-Amz-Signature=hidden-words"] } }\n',
    );
    const { err } = await run("plan");
    expect(err).toContain("error[RL1308]");
    expect(err).not.toContain("hidden-words");
  });
});
