import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { isAlive, onceEnded, ownIdentity, processIdentity, signalProcess } from "../../src/process.ts";

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

describe("a child's end", () => {
  const ends = async (program: string) => {
    const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "ignore"] });
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
    });
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      onceEnded(child, (...how) => resolve(how)),
    );
    return { said: said.length, code, signal };
  };

  test("comes behind all that it said", async () => {
    const program = "process.stdout.write('x'.repeat(1e6), () => process.exit(3))";
    expect(await ends(program)).toEqual({ said: 1e6, code: 3, signal: null });
    expect(await ends("process.kill(process.pid, 'SIGKILL')")).toMatchObject({ code: null, signal: "SIGKILL" });
  });

  test("is told though something that it started holds its streams", async () => {
    const program =
      "require('node:child_process').spawn('sleep', ['20'], { stdio: 'inherit', detached: true }).unref()";
    const began = performance.now();
    expect(await ends(program)).toEqual({ said: 0, code: 0, signal: null });
    expect(performance.now() - began).toBeLessThan(15_000);
  });
});
