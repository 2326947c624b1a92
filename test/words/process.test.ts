import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { isAlive, ownIdentity, processIdentity, signalProcess } from "../../src/process.ts";

describe("process identity", () => {
  test("is the same each time for one process and differs for another", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    try {
      const identity = processIdentity(child.pid!);
      expect(identity).toBeDefined();
      expect(processIdentity(child.pid!)).toEqual(identity);
      expect(isAlive(identity!)).toBe(true);
      expect(isAlive({ ...identity!, startTime: "another" })).toBe(false);
      expect(signalProcess({ ...identity!, startTime: "another" }, "SIGKILL")).toBe(false);
      expect(signalProcess(identity!, "SIGKILL")).toBe(true);
      await once(child, "exit");
      expect(isAlive(identity!)).toBe(false);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("a process whose name holds spaces and brackets is read right", async () => {
    const child = spawn(process.execPath, ["-e", "process.title = 'a) b (c 1 2 3'; setInterval(() => {}, 1000)"]);
    try {
      const before = processIdentity(child.pid!);
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(processIdentity(child.pid!)).toEqual(before);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("nonsense and the dead are nobody", () => {
    for (const pid of [0, -1, 1.5, Number.NaN, 2 ** 31 - 1]) expect(processIdentity(pid)).toBeUndefined();
    expect(isAlive(ownIdentity())).toBe(true);
  });
});
