// Uploads where the hub is busy, away or says no. How they end well is in test/e2e/push-hf.test.ts.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hubSettings } from "../../src/hub/settings.ts";
import { HubUpload, type UploadOrder } from "../../src/hub/upload.ts";
import { type Fault, StandInHub } from "./stand-in.ts";
import { WRITER } from "./uploads.ts";

const QUICK = { deadlineMs: Number.POSITIVE_INFINITY, firstDelayMs: 2, maxDelayMs: 5, mostTries: 3 };
const ORDER: UploadOrder = {
  repository: "me/model",
  revision: "main",
  files: [{ path: "README.md", source: { text: "hello" } }],
  message: "first",
  isPrivate: true,
  asPullRequest: false,
};

let standIn: StandInHub;
beforeEach(async () => {
  standIn = await StandInHub.start();
});
afterEach(() => standIn.close());

async function push(faults: readonly Fault[]) {
  const settings = hubSettings({ HF_ENDPOINT: standIn.endpoint, HF_TOKEN: WRITER });
  const upload = new HubUpload(settings, new AbortController().signal, QUICK);
  const left = [...faults];
  standIn.fault = () => left.shift();
  try {
    return await upload.push(ORDER);
  } finally {
    await upload.close();
  }
}

const requests = () => standIn.takeSeen().map((one) => one.replace("hub /mirror", ""));

describe("a busy hub", () => {
  test("is asked again", async () => {
    await push([{ status: 503 }, { status: 429 }]);
    expect(requests().filter((url) => url === "/api/repos/create")).toHaveLength(3);
    expect(standIn.uploads.repositories.get("me/model")?.files.get("README.md")?.toString()).toBe("hello");
  });

  test("is given the time that it asks for", async () => {
    const started = performance.now();
    await push([{ status: 429, headers: { "retry-after": "0.3" } }]);
    expect(performance.now() - started).toBeGreaterThan(290);
  });

  test("that stays busy ends it, after as many tries", async () => {
    await expect(push(Array(9).fill({ status: 503 }))).rejects.toThrow(/RL9024.*answered 503/);
    expect(requests()).toHaveLength(3);
  });
});

test("what will not change is not asked again", async () => {
  await expect(push([{ status: 403 }])).rejects.toThrow(/RL9024.*may not write/);
  expect(requests()).toHaveLength(1);
});

test("a hub that is away is tried as often, then told by its name", async () => {
  const settings = hubSettings({ HF_ENDPOINT: "http://127.0.0.1:1", HF_TOKEN: WRITER });
  const upload = new HubUpload(settings, new AbortController().signal, QUICK);
  await expect(upload.push(ORDER)).rejects.toThrow(/RL9024.*127\.0\.0\.1:1.*cannot be reached/);
  await upload.close();
});
