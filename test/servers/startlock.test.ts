import { readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ownIdentity } from "../../src/process.ts";
import { lockStart } from "../../src/servers/startlock.ts";
import { temporaryFolder } from "./embedded/support.ts";

const never = () => false;

describe("the start lock", () => {
  test("is held by one at a time", async () => {
    const folder = temporaryFolder();
    let holders = 0;
    let most = 0;
    const work = async () => {
      const release = await lockStart(folder, never);
      holders += 1;
      most = Math.max(most, holders);
      await new Promise((resolve) => setTimeout(resolve, 5));
      holders -= 1;
      release?.();
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(most).toBe(1);
    expect(readdirSync(folder).length).toBe(1);
  });

  test("of a dead process is taken over, a live one's is not", async () => {
    const folder = temporaryFolder();
    const write = (holder: object) =>
      writeFileSync(join(folder, "start-7.lock"), JSON.stringify({ holder, isReleased: false }));
    write(ownIdentity());
    let looks = 0;
    expect(await lockStart(folder, () => ++looks > 3)).toBeUndefined();
    write({ ...ownIdentity(), startTime: "another life" });
    (await lockStart(folder, never))?.();
    expect(readdirSync(folder)).toEqual(["start-8.lock"]);
  });

  test("whose maker died before writing it is taken over after a while", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "start-1.lock");
    writeFileSync(path, "");
    let looks = 0;
    expect(await lockStart(folder, () => ++looks > 3)).toBeUndefined();
    const old = Date.now() / 1000 - 60;
    utimesSync(path, old, old);
    expect(await lockStart(folder, never)).toBeTypeOf("function");
  });

  test("is not waited for once aborted", async () => {
    const folder = temporaryFolder();
    await lockStart(folder, never);
    const waiting = lockStart(folder, never, AbortSignal.timeout(20));
    await expect(waiting).rejects.toThrow();
  });
});
