// Datasets of a hub against a stand-in of it: what a name resolves to, how files come, and what users are told when they do not.
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HubClient } from "../../src/hub/client.ts";
import { DatasetHub } from "../../src/hub/dataset.ts";
import type { PinnedDataset } from "../../src/hub/pinned.ts";
import { parseReference } from "../../src/hub/reference.ts";
import { hubSettings } from "../../src/hub/settings.ts";
import type { RequestTimes } from "../../src/remote/patience.ts";
import { StandInHub, sha256 } from "./stand-in.ts";

const TIMES: RequestTimes = { answerMs: 1500, deadlineMs: 4000, firstPauseMs: 10 };
const ROWS = Buffer.concat([Buffer.from("PAR1"), randomBytes(300_000)]);

let standIn: StandInHub;
let cacheFolder: string;
const open: DatasetHub[] = [];

beforeEach(async () => {
  standIn = await StandInHub.start();
  cacheFolder = mkdtempSync(join(tmpdir(), "rlcli-hub-"));
});
afterEach(async () => {
  for (const hub of open.splice(0)) await hub.close();
  await standIn.close();
  rmSync(cacheFolder, { recursive: true, force: true });
});

function hub(env: Record<string, string> = {}, signal = new AbortController().signal): DatasetHub {
  const settings = hubSettings({ HF_ENDPOINT: standIn.endpoint, ...env });
  const made = new DatasetHub({ settings, cacheFolder, signal }, new HubClient(settings, TIMES));
  open.push(made);
  return made;
}
const pin = async (name: string, env?: Record<string, string>): Promise<PinnedDataset> =>
  (await hub(env).pin(parseReference(name))).pinned;
const paths = ({ files }: PinnedDataset) => files.map(({ path }) => path);
const blobs = () => {
  mkdirSync(join(cacheFolder, "hub/blobs"), { recursive: true });
  return readdirSync(join(cacheFolder, "hub/blobs"));
};

const README = `---
license: mit
configs:
- config_name: main
  data_files:
  - split: train
    path: main/train-*
  - split: test
    path: [main/test-*]
- config_name: socratic
  data_files: "socratic/**"
---
# GSM8K
`;
const GSM8K = {
  "README.md": README,
  ".gitattributes": "",
  "main/train-00000-of-00002.parquet": ROWS,
  "main/train-00001-of-00002.parquet": "second",
  "main/test-00000-of-00001.parquet": "test",
  "socratic/deep/er/a.parquet": "socratic",
};

describe("names", () => {
  test.each([
    ["hf://a/b", { id: "a/b" }],
    ["hf://a/b/c", { id: "a/b", config: "c" }],
    ["hf://a.x/b_y/c-1/train@v1.0", { id: "a.x/b_y", config: "c-1", split: "train", revision: "v1.0" }],
    ["hf://a/b/c/d@refs/pr/1", { id: "a/b", config: "c", split: "d", revision: "refs/pr/1" }],
  ])("%s", (text, reference) => expect(parseReference(text)).toEqual({ text, ...reference }));

  test.each(["hf:a/b", "hf://a", "hf://", "hf://a/b/c/d/e", "hf://a//c", "hf://a/../c", "hf://a/b@", "hf://a b/c"])(
    "%s is none",
    (text) => expect(() => parseReference(text)).toThrow("RL6022"),
  );
});

describe("what a name stands for", () => {
  test("a commit and files with digests; nothing large is downloaded", async () => {
    const commit = standIn.push("openai/gsm8k", GSM8K);
    const pinned = await pin("hf://openai/gsm8k/main/train");
    expect(pinned).toEqual({
      type: "hub-dataset",
      id: "openai/gsm8k",
      revision: "main",
      commit,
      config: "main",
      split: "train",
      files: [
        { path: "main/train-00000-of-00002.parquet", digest: `sha256:${sha256(ROWS)}`, bytes: ROWS.length },
        { path: "main/train-00001-of-00002.parquet", digest: `sha256:${sha256(Buffer.from("second"))}`, bytes: 6 },
      ],
    });
    expect(standIn.takeSeen()).toEqual([
      "hub /mirror/api/datasets/openai/gsm8k/revision/main?blobs=true",
      `hub /mirror/datasets/openai/gsm8k/resolve/${commit}/README.md`,
    ]);
    expect(blobs()).toEqual([]);
    expect(paths(await pin("hf://openai/gsm8k/socratic"))).toEqual(["socratic/deep/er/a.parquet"]);
  });

  test("a revision: a tag, a commit", async () => {
    const first = standIn.push("a/b", { "train.jsonl": "{}\n" }, { ref: "v1" });
    standIn.push("a/b", { "train.jsonl": '{"n":2}\n' });
    expect(await pin("hf://a/b@v1")).toMatchObject({
      commit: first,
      revision: "v1",
      config: "default",
      split: "train",
    });
    expect(await pin(`hf://a/b@${first}`)).toMatchObject({ commit: first });
    expect((await pin("hf://a/b")).commit).not.toBe(first);
  });

  test("a small file's digest is learnt by fetching it", async () => {
    standIn.push("a/b", { "train.jsonl": "{}\n" });
    const pinned = await pin("hf://a/b");
    expect(pinned.files).toEqual([{ path: "train.jsonl", digest: `sha256:${sha256(Buffer.from("{}\n"))}`, bytes: 3 }]);
    expect(readFileSync(hub().pathOf(pinned.files[0]!), "utf8")).toBe("{}\n");
    expect(hub().missingBytes(pinned)).toBe(0);
  });

  test.each([
    [["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"], "train"],
    [["data/hard_ones-00000-of-00001.parquet"], "hard_ones"],
    [["my_dataset_test.csv"], "test"],
    [["eval/x.jsonl"], "test"],
    [["dev.json"], "validation"],
    // One form is taken where there are several.
    [["train.parquet"], "train", ["train.csv"]],
  ])("without a README, %s is %s", async (files, split, others: string[] = []) => {
    const contents = [...files, ...others].map((path) => [path, path] as const);
    standIn.push("a/b", { ...Object.fromEntries(contents), "LICENSE.json": "{}", "dataset_infos.json": "{}" });
    const pinned = await pin(`hf://a/b/default/${split}`);
    expect(paths(pinned)).toEqual(files);
  });

  test("words within words are no splits, and nothing is guessed", async () => {
    standIn.push("a/b", { "latest.jsonl": "{}", "trains.jsonl": "{}" });
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6022.*neither its README nor their names.*latest\.jsonl/);
  });

  test("a README whose front matter is no YAML counts as none; data_dir is a folder", async () => {
    standIn.push("a/b", { "README.md": "---\nconfigs: [\n---\n", "train.csv": "a\n1\n" });
    expect(paths(await pin("hf://a/b"))).toEqual(["train.csv"]);
    const readme = "---\nconfigs:\n- config_name: x\n  data_dir: ./deep/\n---\n";
    standIn.push("a/c", { "README.md": readme, "deep/test.csv": "a\n1\n", "test.csv": "b\n2\n" });
    expect(paths(await pin("hf://a/c/x/test"))).toEqual(["deep/test.csv"]);
  });

  test("else the hub's conversion to Parquet", async () => {
    standIn.push("a/b", { "script.py": "…" });
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6022.*script\.py/);
    const converted = { "default/train/0000.parquet": "1", "default/train/0001.parquet": "2", ".gitattributes": "" };
    const commit = standIn.push(
      "a/b",
      { ...converted, "big/partial-train/0000.parquet": "3" },
      { ref: "refs/convert/parquet" },
    );
    expect(await pin("hf://a/b/default/train")).toMatchObject({ commit, revision: "refs/convert/parquet" });
    expect(paths(await pin("hf://a/b/default/train@refs/convert/parquet"))).toHaveLength(2);
    await expect(pin("hf://a/b/big/train")).rejects.toThrow(/RL6022.*only a part/);
    // A revision of the dataset's own has no conversion.
    await expect(pin("hf://a/b/default/train@main")).rejects.toThrow(/RL6022.*neither/);
  });

  test("several that would fit are listed, and so are names that a wrong one may mean", async () => {
    standIn.push("openai/gsm8k", GSM8K);
    await expect(pin("hf://openai/gsm8k")).rejects.toThrow(/RL6022.*`main`, `socratic`/);
    await expect(pin("hf://openai/gsm8k/main")).rejects.toThrow(/RL6022.*`train`, `test`/);
    await expect(pin("hf://openai/gsm8k/mian/train")).rejects.toThrow(/no configuration `mian`.*Did you mean `main`/);
    await expect(pin("hf://openai/gsm8k/main/tran")).rejects.toThrow(/no split `tran`.*Did you mean `train`/);
  });
});

describe("refusals", () => {
  test("gated, private, absent", async () => {
    standIn.push("a/gated", GSM8K, { needs: { token: "right", code: "GatedRepo" } });
    await expect(pin("hf://a/gated/main/train")).rejects.toThrow(/RL6021.*Accept its terms.*a\/gated.*none is set/);
    const wrong = pin("hf://a/gated/main/train", { HF_TOKEN: "hf_wrong" });
    await expect(wrong).rejects.toThrow(/RL6021.*the one that is set now may not/);
    await expect(wrong).rejects.not.toThrow("hf_wrong");
    await expect(pin("hf://a/absent")).rejects.toThrow(/RL6021.*a\/absent is private, or there is none/);
    expect(await pin("hf://a/gated/main/train", { HF_TOKEN: "right" })).toMatchObject({ split: "train" });
    await expect(pin("hf://a/gated/main/train@v9", { HF_TOKEN: "right" })).rejects.toThrow(/RL6022.*no such revision/);
    expect(standIn.seen.length).toBeLessThan(8);
  });

  test("a busy hub is asked again after the time it names", async () => {
    standIn.push("a/b", { "train.jsonl": "{}\n" });
    let left = 2;
    standIn.fault = () => (left-- > 0 ? { status: 429, headers: { "retry-after": "0.1" } } : undefined);
    const before = performance.now();
    await pin("hf://a/b");
    expect(performance.now() - before).toBeGreaterThan(190);
    standIn.fault = () => ({ status: 429, headers: { "retry-after": "120" } });
    await expect(pin("hf://a/b@other")).rejects.toThrow(/RL6020.*too many requests.*wait 120 s/);
  });

  test("faults that pass are waited out, others end in time", async () => {
    standIn.push("a/b", { "train.jsonl": "{}\n" });
    const faults = [{ status: 503 }, { status: 500 }, { cutAfter: 5 }];
    standIn.fault = () => faults.shift();
    await pin("hf://a/b");
    rmSync(join(cacheFolder, "hub"), { recursive: true });
    standIn.fault = () => ({ status: 502 });
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6020.*it answered 502/);
    standIn.fault = () => ({ hangs: true });
    const before = performance.now();
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6020.*no answer within 1\.5 s/);
    expect(performance.now() - before).toBeLessThan(60_000);
  });

  test("no hub there, an address that is none, an answer that is none", async () => {
    await expect(pin("hf://a/b", { HF_ENDPOINT: "http://127.0.0.1:1" })).rejects.toThrow(/RL6020.*ECONNREFUSED/);
    expect(() => hub({ HF_ENDPOINT: "hub.example" })).toThrow(/RL6020.*HF_ENDPOINT/);
    for (const endpoint of [
      "https://me:hunter2@hub.example",
      "https://hub.example/?token=hunter2",
      "ftp://x:hunter2@h",
    ])
      expect(() => hub({ HF_ENDPOINT: endpoint })).toThrow(/^((?!hunter2)[\s\S])*RL6020((?!hunter2)[\s\S])*$/);
    standIn.fault = () => ({ status: 200, body: "<html>captive portal</html>" });
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6020.*not JSON/);
    standIn.fault = () => ({ status: 302, headers: { location: "http://" } });
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6020.*no address/);
    standIn.fault = () => ({ status: 302, headers: { location: "/again" } });
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6020.*redirects more than 5 times/);
    standIn.fault = () => ({ status: 200, body: "{}" });
    await expect(pin("hf://a/b")).rejects.toThrow(/RL6020.*something else/);
  });

  test("asking is given up when the command is", async () => {
    standIn.fault = () => ({ hangs: true });
    const stop = new AbortController();
    const asked = hub({}, stop.signal).pin(parseReference("hf://a/b"));
    setTimeout(() => stop.abort(), 50);
    await expect(asked).rejects.toThrow("abort");
  });
});

describe("downloads", () => {
  const NAME = "hf://openai/gsm8k/main/train";
  const WHOLE = [ROWS, Buffer.from("second")].map(sha256);
  const content = (pinned: PinnedDataset) => pinned.files.map((file) => sha256(readFileSync(hub().pathOf(file))));
  const ranges = () => standIn.seen.filter(({ host }) => host === "store").map(({ range }) => range);

  beforeEach(() => {
    standIn.push("openai/gsm8k", GSM8K);
  });

  test("land whole, once, and the token stays with the hub", async () => {
    const env = { HF_TOKEN: "secret" };
    const pinned = await pin(NAME, env);
    const progress: number[] = [];
    await hub(env).download(pinned, (bytes) => progress.push(bytes));
    expect(content(pinned)).toEqual(WHOLE);
    expect(progress.at(-1)).toBe(ROWS.length + 6);
    const tokens = (host: string) => standIn.seen.filter((s) => s.host === host).map((s) => s.authorization);
    expect(new Set(tokens("hub"))).toEqual(new Set(["Bearer secret"]));
    expect(tokens("store")).toEqual([undefined, undefined]);
    standIn.takeSeen();
    await hub(env).download(pinned);
    expect(standIn.takeSeen()).toEqual([]);
    expect(blobs()).toHaveLength(2);
  });

  test("go on where they broke off", async () => {
    const pinned = await pin(NAME);
    let cuts = 2;
    standIn.fault = ({ host }) => (host === "store" && cuts-- > 0 ? { cutAfter: 100_000 } : undefined);
    await hub().download(pinned);
    expect(content(pinned)).toEqual(WHOLE);
    // What was still on its way when the connection broke is asked for again.
    const [first, ...rest] = ranges().slice(0, 3);
    const starts = rest.map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1]));
    expect([first, starts.length]).toEqual([undefined, 2]);
    expect(starts[0]).toBeGreaterThan(0);
    expect(starts[0]).toBeLessThanOrEqual(100_000);
    expect(starts[1]).toBeGreaterThanOrEqual(starts[0] as number);
    expect(starts[1]).toBeLessThanOrEqual((starts[0] as number) + 100_000);
    expect(ranges().slice(3)).toEqual([undefined]);
  });

  test("go on in another process, also after one that was killed", async () => {
    const pinned = await pin(NAME);
    standIn.fault = ({ host, range }) =>
      host === "store" ? (range === undefined ? { cutAfter: 50_000 } : { status: 500 }) : undefined;
    await expect(hub().download(pinned)).rejects.toThrow("RL6020");
    expect(blobs()).toEqual([expect.stringMatching(/^sha256-[0-9a-f]{64}\.part$/)]);
    standIn.fault = () => undefined;
    standIn.takeSeen();
    await hub().download(pinned);
    expect(content(pinned)).toEqual(WHOLE);
    expect(blobs()).toHaveLength(2);

    const [blob] = blobs();
    rmSync(join(cacheFolder, "hub/blobs", blob!));
    // No process has this pid: Linux gives none above 4194304.
    writeFileSync(join(cacheFolder, "hub/blobs", `sha256-${sha256(ROWS)}.99999999-ab.part`), ROWS.subarray(0, 70_000));
    standIn.takeSeen();
    await hub().download(pinned);
    expect(content(pinned)).toEqual(WHOLE);
  });

  test("a part that another process is writing is left alone", async () => {
    const pinned = await pin(NAME);
    const theirs = `sha256-${sha256(ROWS)}.${process.ppid}-ab.part`;
    blobs();
    writeFileSync(join(cacheFolder, "hub/blobs", theirs), "half");
    await hub().download(pinned);
    expect(ranges()[0]).toBeUndefined();
    expect(readFileSync(join(cacheFolder, "hub/blobs", theirs), "utf8")).toBe("half");
  });

  test("begin anew where the server does not know parts", async () => {
    const pinned = await pin(NAME);
    standIn.ignoresRange = true;
    let cuts = 1;
    standIn.fault = ({ host }) => (host === "store" && cuts-- > 0 ? { cutAfter: 10 } : undefined);
    await hub().download(pinned);
    expect(content(pinned)).toEqual(WHOLE);
  });

  test("what is not what was announced is thrown away", async () => {
    const pinned = await pin(NAME);
    standIn.forged = Buffer.alloc(ROWS.length, 1);
    await expect(hub().download(pinned)).rejects.toThrow(/RL6023.*train-00000-of-00002.*digest/);
    standIn.forged = Buffer.alloc(ROWS.length * 2, 1);
    await expect(hub().download(pinned)).rejects.toThrow(/RL6023.*bytes instead of/);
    expect(blobs()).toEqual([]);
  });

  test("a file where the cache should be is RL6006", async () => {
    const pinned = await pin(NAME);
    rmSync(join(cacheFolder, "hub"), { recursive: true });
    writeFileSync(join(cacheFolder, "hub"), "");
    await expect(hub().download(pinned)).rejects.toThrow("RL6006");
  });

  test("a leftover that is whole needs no more bytes; one that is damaged is not trusted", async () => {
    const pinned = await pin(NAME);
    blobs();
    const left = join(cacheFolder, "hub/blobs", `sha256-${sha256(ROWS)}.part`);
    writeFileSync(left, ROWS);
    await hub().download(pinned);
    rmSync(join(cacheFolder, "hub/blobs", `sha256-${sha256(ROWS)}`));
    writeFileSync(left, Buffer.alloc(1000));
    await expect(hub().download(pinned)).rejects.toThrow("RL6023");
    await hub().download(pinned);
    expect(content(pinned)).toEqual(WHOLE);
  });
});

describe("offline", () => {
  const OFFLINE = { HF_HUB_OFFLINE: "1" };

  test("only what is in the cache is there, and nothing is asked", async () => {
    standIn.push("openai/gsm8k", GSM8K);
    await expect(pin("hf://openai/gsm8k/main/train", OFFLINE)).rejects.toThrow(/RL6020.*HF_HUB_OFFLINE/);
    const pinned = await pin("hf://openai/gsm8k/main/train");
    standIn.takeSeen();
    expect(await pin("hf://openai/gsm8k/main/train", OFFLINE)).toEqual(pinned);
    expect(() => hub(OFFLINE).requireReachable(pinned)).toThrow("RL6020");
    await expect(hub(OFFLINE).download(pinned)).rejects.toThrow("RL6020");
    expect(standIn.takeSeen()).toEqual([]);
    await hub().download(pinned);
    await hub(OFFLINE).download(pinned);
  });

  test("a hub that does not answer: what the name stood for last, with a warning", async () => {
    standIn.push("openai/gsm8k", GSM8K);
    const pinned = await pin("hf://openai/gsm8k/main/train");
    standIn.fault = () => ({ status: 503 });
    const reference = parseReference("hf://openai/gsm8k/main/train");
    const found = await hub().pin(reference);
    expect(found.pinned).toEqual(pinned);
    expect(found.diagnostics).toMatchObject([{ code: "RL6024", severity: "warning" }]);
    await expect(hub().pin(reference, { isFresh: true })).rejects.toThrow("RL6020");
  });
});
