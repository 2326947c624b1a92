/** A server on another machine, which is this one behind an ssh server of the test's own. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { signalProcess } from "../../../src/process.ts";
import { readRuntime, type ServerRuntime, stopServer } from "../../../src/servers/runtime.ts";
import { quoted } from "../../../src/shell.ts";
import { sshd, startBox } from "./sshd.ts";
import { FakeSite, python } from "./support.ts";

const SLOW = 180_000;

async function remoteSite() {
  const box = await startBox({ FAKE_PYTHON: python! });
  const site = new FakeSite({ RLCLI_SSH: box.command, RLCLI_UV: "/nowhere/uv" });
  // Before the site's own clean-up, which waits for what runs there.
  onTestFinished(() => box.close());
  const start = () => site.start({}, { host: box.host, model: "Qwen/Qwen3-4B" });
  return { box, site, start };
}

async function call(runtime: ServerRuntime, path: string): Promise<Record<string, any>> {
  return (await (await fetch(`${runtime.url}${path}`, { headers: { "x-api-key": runtime.token } })).json()) as object;
}

test.each(["plain", "it's", '$HOME `x` "y"', "a\nb", ""])("a shell reads %j as one word", async (text) => {
  const { execFileSync } = await import("node:child_process");
  expect(execFileSync("sh", ["-c", `printf %s ${quoted(text)}`], { encoding: "utf8" })).toBe(text);
});

describe.skipIf(sshd === undefined || python === undefined)("over ssh (needs sshd)", () => {
  test(
    "is installed and run there, forwarded to here, and ended there",
    async () => {
      const { box, site, start } = await remoteSite();
      const runtime = await start();
      expect(new URL(runtime.url).hostname).toBe("127.0.0.1");
      const { args } = await call(runtime, "/api/v1/env");
      const place = join(box.data, "servers", readdirSync(join(box.data, "servers"))[0]!);
      expect(args).toEqual(
        expect.arrayContaining(["--base-model", "Qwen/Qwen3-4B", "--checkpoints-base", join(place, "checkpoints")]),
      );
      expect(readdirSync(join(box.data, "python"))).toHaveLength(1);
      expect(existsSync(join(site.root, "data"))).toBe(false);
      expect(site.alive).toHaveLength(1);
      await stopServer(site.folder, { timeoutMs: 60_000 });
      expect(site.alive).toEqual([]);
      expect(readRuntime(site.folder).state).toBe("stopped");
    },
    SLOW,
  );

  test(
    "ends there when its supervisor here is killed, and when the connection is cut it is started again",
    async () => {
      const { site, start } = await remoteSite();
      const first = await start();
      process.kill(childOf(first.process.pid), "SIGKILL");
      await expect.poll(() => site.engines.length, { timeout: 60_000 }).toBe(2);
      await expect.poll(() => site.alive, { timeout: 60_000 }).toEqual([site.engines[1]]);
      expect((await start()).process).toEqual(first.process);
      signalProcess(first.process, "SIGKILL");
      await expect.poll(() => site.alive, { timeout: 60_000 }).toEqual([]);
    },
    SLOW,
  );

  test(
    "a machine that cannot be reached, or a model that only this machine has, is said",
    async () => {
      const { site, start } = await remoteSite();
      vi.stubEnv("RLCLI_SSH", "ssh -F /dev/null -o StrictHostKeyChecking=yes -p 1");
      await expect(start()).rejects.toThrow(/cannot run the server/);
      await expect(site.start({}, { host: "me@box" })).rejects.toThrow(/is a folder of this machine/);
    },
    SLOW,
  );
});

/** The process that a supervisor started. */
function childOf(parent: number): number {
  const found = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .find((name) => {
      try {
        return Number(readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)!.split(" ")[1]) === parent;
      } catch {
        return false;
      }
    });
  return Number(found);
}
