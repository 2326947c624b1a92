import { readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ownIdentity } from "../../src/process.ts";
import { takeTurn, takeTurnUnless } from "../../src/turn.ts";
import { temporaryFolder } from "../servers/embedded/support.ts";

describe("a turn", () => {
  test("is held by one at a time", async () => {
    const folder = temporaryFolder();
    let holders = 0;
    let most = 0;
    const work = async () => {
      const release = await takeTurn(folder);
      holders += 1;
      most = Math.max(most, holders);
      await new Promise((resolve) => setTimeout(resolve, 5));
      holders -= 1;
      release();
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(most).toBe(1);
    expect(readdirSync(folder).length).toBe(1);
  });

  test("of a dead process is taken over, a live one's is not", async () => {
    const folder = temporaryFolder();
    const write = (holder: object) =>
      writeFileSync(join(folder, "turn-7.lock"), JSON.stringify({ holder, isReleased: false }));
    write(ownIdentity());
    let looks = 0;
    expect(await takeTurnUnless(() => ++looks > 3, folder)).toBeUndefined();
    write({ ...ownIdentity(), startTime: "another life" });
    (await takeTurn(folder))();
    expect(readdirSync(folder)).toEqual(["turn-8.lock"]);
  });

  test("whose maker died before writing it is taken over after a while", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "turn-1.lock");
    const write = (ageSeconds: number) => {
      writeFileSync(path, "");
      const at = Date.now() / 1000 - ageSeconds;
      utimesSync(path, at, at);
    };
    write(-60);
    let looks = 0;
    expect(await takeTurnUnless(() => ++looks > 3, folder)).toBeUndefined();
    write(60);
    expect(await takeTurn(folder)).toBeTypeOf("function");
  });

  test("is not waited for once aborted", async () => {
    const folder = temporaryFolder();
    await takeTurn(folder);
    const waiting = takeTurn(folder, AbortSignal.timeout(20));
    await expect(waiting).rejects.toThrow();
  });
});
