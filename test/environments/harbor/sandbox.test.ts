/** Containers: commands and their end, files, networks, images. On a real daemon. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { contextEntries, contextHash } from "../../../src/environments/sandbox/context.ts";
import { RUN } from "../../../src/environments/sandbox/labels.ts";
import type { Command, Sandbox, SandboxOrder } from "../../../src/environments/sandbox/sandbox.ts";
import { readTree } from "../../../src/environments/sandbox/tree.ts";
import { expectNothingLeft, findDocker, imagesMadeBy, openTestHost, type TestHost } from "../../support/docker.ts";

const scratch = mkdtempSync(join(tmpdir(), "sandbox-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const order: SandboxOrder = {
  label: "sandbox",
  image: "rlcli-test/base:1",
  env: { GREETING: "hi" },
  memoryBytes: 256 << 20,
  pids: 256,
  network: "public",
  security: "compat",
  lifetimeMs: 1_800_000,
  startTimeoutMs: 30_000,
};

function context(name: string, dockerfile: string): string {
  const folder = join(scratch, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "Dockerfile"), dockerfile);
  return folder;
}

test("a context's name follows from what is in it", () => {
  const folder = context("hash", "FROM x\n");
  writeFileSync(join(folder, "a"), "1");
  symlinkSync("a", join(folder, "link"));
  const name = () => contextHash(contextEntries(folder));
  const first = name();
  utimesSync(join(folder, "a"), 1, 1);
  expect(name()).toBe(first);
  writeFileSync(join(folder, "a"), "2");
  const second = name();
  chmodSync(join(folder, "a"), 0o755);
  const third = name();
  rmSync(join(folder, "link"));
  symlinkSync("b", join(folder, "link"));
  expect(new Set([first, second, third, name()]).size).toBe(4);
  writeFileSync(join(folder, ".dockerignore"), "*\n!a\n");
  expect(contextEntries(folder).map(({ path }) => path)).toEqual([".dockerignore", "Dockerfile", "a"]);
});

const docker = await findDocker();
describe.skipIf(!docker)("sandboxes on a Docker daemon (skipped where none runs)", () => {
  let opened: TestHost;
  let box: Sandbox;
  beforeAll(async () => {
    opened = await openTestHost("sandbox.test");
    box = await opened.host.start(order);
  });
  afterAll(async () => {
    await opened.close();
    await expectNothingLeft(docker!, "sandbox.test");
  });
  const run = (command: string, more: Partial<Command> = {}) => box.run({ command, timeoutMs: 60_000, ...more });

  test.each([0, 1, 124, 126, 127, 137])("exit code %i of a command is the command's", async (code) => {
    expect(await run(`exit ${code}`)).toMatchObject({ exitCode: code, hasTimedOut: false });
  });

  test("streams are apart, the environment is there, quotes and the like arrive", async () => {
    const result = await run(`printf '%s' "$GREETING"; echo 'a"b\\c $x é' >&2`);
    expect(result.stdout.text).toBe("hi");
    expect(result.stderr.text).toBe('a"b\\c $x é\n');
    expect((await run("env | grep -c RLCLI_SCRIPT")).stdout.text).toBe("0\n");
  });

  test("a command of 150 KB runs", async () => {
    expect((await run(`cat <<'EOF' | wc -c\n${"x".repeat(150_000)}\nEOF`)).stdout.text).toBe("150001\n");
  });

  test("much output is cut in the middle and counted; what is no UTF-8 becomes text", async () => {
    const { stdout } = await run("printf start; head -c 100000000 /dev/zero | tr '\\0' x; printf end", {
      keepBytes: 100,
    });
    expect(stdout.totalBytes).toBe(100_000_008);
    expect(stdout.droppedBytes).toBe(100_000_008 - 100);
    expect(stdout.text).toMatch(/^startx+\n\[… 99999908 bytes left out …\]\nx+end$/);
    expect((await run("printf '\\xff\\x00ok'")).stdout.text).toBe("\uFFFD\uFFFDok");
  });

  test("a user that is not there is the sandbox's fault; a directory that is gone is not", async () => {
    await expect(run("true", { user: "nobody-at-all" })).rejects.toThrow(/RL7303.*nobody-at-all/);
    const { stdout, stderr } = await run("pwd", { cwd: "/not/there" });
    expect([stdout.text, stderr.text]).toEqual(["/\n", expect.stringContaining("/not/there is not there")]);
  });

  test("too long: killed with all that it started, in whatever session; what began before lives on", async () => {
    await run("nc -l -p 8080 -e echo alive & sleep 777 &");
    const began = performance.now();
    const timeoutMs = 4000;
    const result = await run(
      "setsid sleep 1111 & (setsid env -i sleep 1112 &); env -i sleep 1113 & nohup sleep 1114 & set -m; sleep 1115 & trap '' TERM; echo out; sleep 1116",
      { timeoutMs },
    );
    expect(result).toMatchObject({ exitCode: 124, hasTimedOut: true, stdout: { text: "out\n" } });
    expect(performance.now() - began).toBeLessThan(timeoutMs + 60_000);
    expect((await run("ps | grep -c '[s]leep 111'")).stdout.text).toBe("0\n");
    expect((await run("ps | grep -c '[s]leep 777'")).stdout.text).toBe("1\n");
  });

  test("the same as a user without rights", async () => {
    await run("echo 'agent:x:1000:1000::/tmp:/bin/bash' >> /etc/passwd");
    expect(await run("setsid sleep 1111 & sleep 1112", { timeoutMs: 500, user: "agent" })).toMatchObject({
      exitCode: 124,
    });
    expect((await run("ps | grep -c '[s]leep 111'")).stdout.text).toBe("0\n");
  });

  test("a server that keeps its streams does not hold the command up, and goes on writing", async () => {
    const left = await run(
      "(while :; do echo tick; sleep 0.05; done) & (while :; do echo tock >&2; sleep 0.05; done) & nc -l -p 9090 -e echo here &",
    );
    expect(left.hasTimedOut).toBe(false);
    await run("sleep 3");
    // Two, and now and then a copy of one that is about to become its `sleep`.
    expect(Number((await run("ps | grep -c '[w]hile'")).stdout.text)).toBeGreaterThanOrEqual(2);
    expect((await run("nc 127.0.0.1 9090")).stdout.text).toBe("here\n");
  });

  const hog = (bytes: number) => `x=$(head -c ${bytes} /dev/zero | tr "\\0" x)`;
  const HOG = hog(400_000_000);

  test("memory beyond the limit kills the command, not the container, and is told apart", async () => {
    expect(await run(HOG)).toMatchObject({ exitCode: 137, hasTimedOut: false, memoryKills: 1 });
    expect(await run("echo fine; exit 137")).toMatchObject({ exitCode: 137, memoryKills: 0 });
    // Whatever the command itself makes of it.
    expect(await run(`bash -c '${HOG}' || exit 3`)).toMatchObject({ exitCode: 3, memoryKills: 1 });
    expect(box.memoryKills).toBe(2);
  });

  test("a server in the background that is killed for memory is told with the next command", async () => {
    const other = await opened.host.start({ ...order, label: "hog" });
    await other.run({ command: `(sleep 0.3; ${HOG}) >/dev/null 2>&1 &`, timeoutMs: 30_000 });
    await vi.waitFor(
      async () => expect((await other.run({ command: "true", timeoutMs: 30_000 })).memoryKills).toBe(1),
      { timeout: 90_000, interval: 300 },
    );
    await other.close();
  });

  test("a container whose first process is killed for memory says so", async () => {
    const other = await opened.host.start({ ...order, label: "first" });
    // Of many that are as large the first one is the kernel's choice.
    const many = `for i in 1 2 3 4 5 6; do (${hog(50_000_000)}; sleep 100) & done; wait`;
    const killed = other.run({ command: `echo 1000 > /proc/1/oom_score_adj; ${many}`, timeoutMs: 90_000 });
    await expect(killed).rejects.toThrow(/RL7303.*is gone: its memory of 256 MiB was used up/);
    await expect(other.run({ command: "true", timeoutMs: 60_000 })).rejects.toThrow(/RL7303.*is gone/);
    await other.close();
  });

  test("files go in and come out: bytes, modes, links, empty folders", async () => {
    const folder = join(scratch, "files");
    mkdirSync(join(folder, "deep/empty"), { recursive: true });
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    writeFileSync(join(folder, "deep/binary"), bytes);
    chmodSync(join(folder, "deep/binary"), 0o755);
    symlinkSync("binary", join(folder, "deep/link"));
    await box.upload(readTree(folder), "/in/here");
    expect(
      (await run("stat -c '%a %F %N' /in/here/deep/*; stat -c %u /in/here/deep/binary")).stdout.text,
    ).toMatchInlineSnapshot(`
      "755 regular file '/in/here/deep/binary'
      755 directory '/in/here/deep/empty'
      777 symbolic link '/in/here/deep/link' -> 'binary'
      0
      "
    `);
    const limits = { bytes: 10_000, entries: 10 };
    const files = await box.download("/in/here", limits);
    expect(files?.map(({ path, mode }) => [path, mode])).toEqual([["deep/binary", 0o755]]);
    expect(files?.[0]?.bytes).toEqual(bytes);
    expect(await box.download("/not/there", limits)).toBeUndefined();
    await expect(box.download("/in/here", { ...limits, bytes: 100 })).rejects.toThrow(/RL7303.*more than/);
    await run("mkfifo /in/fifo");
    expect(await box.download("/in/fifo", limits)).toEqual([]);
  });

  test("the network is taken away and given back", async () => {
    const links = async () => (await run("ip -o link | grep -c eth")).stdout.text;
    await box.setNetwork("none");
    expect(await links()).toBe("0\n");
    await box.setNetwork("public");
    expect(await links()).toBe("1\n");
  });

  test("an aborted command is killed", async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 300);
    await expect(run("sleep 1111", { signal: stop.signal })).rejects.toThrow(/abort/i);
    expect((await run("ps | grep -c '[s]leep 111'")).stdout.text).toBe("0\n");
  });

  test("a container that is ended from inside is a fault, at once", async () => {
    const other = await opened.host.start({ ...order, label: "ended" });
    await expect(
      (async () => {
        for (let tries = 0; tries < 20; tries += 1)
          await other.run({ command: "kill -9 -1; kill -TERM 1", timeoutMs: 60_000 });
      })(),
    ).rejects.toThrow(/RL7303/);
    await other.close();
  });

  // How long it takes to end one depends on the machine: not among the fast ones.
  test.skipIf(!process.env.RLCLI_TEST_ALL)("a fork bomb ends with the next command, which runs", async () => {
    const other = await opened.host.start({ ...order, label: "bomb", pids: 64 });
    await other.run({ command: "bomb() { bomb | bomb & }; bomb; sleep 1", timeoutMs: 3000 });
    let result = await other.run({ command: "echo one", timeoutMs: 3000 });
    if (result.hasTimedOut) result = await other.run({ command: "echo one", timeoutMs: 60_000 });
    expect(result).toMatchObject({ exitCode: 0, stdout: { text: "one\n" } });
    expect((await other.run({ command: "ps | grep -c '[b]omb'", timeoutMs: 60_000 })).stdout.text).toBe("0\n");
    const began = performance.now();
    await other.close();
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  /** In a Dockerfile: nobody has built this yet. */
  const unique = () => `${Date.now()}-${process.pid}`;

  test("two builds of one image at once are one, an edit is another, and a failed one leaves no image", async () => {
    const first = `echo ${unique()} > /first`;
    const folder = context("build", `FROM rlcli-test/base:1\nRUN ${first}\n`);
    const build = () => opened.host.image({ label: "two at once", context: folder, timeoutMs: 60_000 });
    const [one, two] = await Promise.all([build(), build()]);
    expect(one).toBe(two);
    expect(await imagesMadeBy(docker!, first)).toContain((await docker!.getImage(one!).inspect()).Id);
    const made = (await docker!.getImage(one!).inspect()).Created;
    const second = await openTestHost("sandbox.test");
    expect(await second.host.image({ label: "two at once", context: folder, timeoutMs: 60_000 })).toBe(one);
    await second.close();
    expect((await docker!.getImage(one!).inspect()).Created).toBe(made);
    const step = `echo ${unique()} > /made`;
    const broken = context("broken", `FROM rlcli-test/base:1\nRUN ${step}\nRUN echo no luck; exit 42\n`);
    const fail = () => opened.host.image({ label: "broken", context: broken, timeoutMs: 60_000 });
    await expect(fail()).rejects.toThrow(/RL7302[\s\S]*42[\s\S]*no luck/);
    expect(await imagesMadeBy(docker!, step)).toEqual([]);
    await docker!.getImage(one!).remove();
  });

  test("of a build in stages only the image stays, and it works", async () => {
    const step = `echo ${unique()} > /made`;
    const folder = context(
      "stages",
      `FROM rlcli-test/base:1 AS first\nRUN ${step}\nRUN echo more > /more\nFROM rlcli-test/base:1\nCOPY --from=first /made /made\nRUN test -s /made\n`,
    );
    const image = await opened.host.image({ label: "stages", context: folder, timeoutMs: 60_000 });
    expect(await imagesMadeBy(docker!, step)).toEqual([]);
    const other = await opened.host.start({ ...order, image });
    expect((await other.run({ command: "cat /made; ls /more", timeoutMs: 60_000 })).stdout.text).toMatch(/^\d+-\d+\n$/);
    await other.close();
    await docker!.getImage(image).remove();
  });

  test("a build that takes too long is ended, with what it ran", async () => {
    const folder = context("slow", "FROM rlcli-test/base:1\nRUN sleep 299\n");
    await expect(opened.host.image({ label: "slow", context: folder, timeoutMs: 2000 })).rejects.toThrow(
      /RL7302.*longer than 2 s/,
    );
    const running = async () =>
      (await docker!.listContainers({ all: true })).filter(({ Command: command }) => command.includes("sleep 299"));
    await vi.waitFor(async () => expect(await running()).toEqual([]), { timeout: 60_000, interval: 500 });
  });

  test("an image that is neither here nor to be had is one readable fault", async () => {
    const asked = opened.host.image({
      label: "absent",
      context: scratch,
      prebuilt: "rlcli-test/not-there:1",
      timeoutMs: 20_000,
    });
    await expect(asked).rejects.toThrow(/RL7302.*rlcli-test\/not-there:1 is not here/);
    expect(
      await opened.host.image({ label: "here", context: scratch, prebuilt: "rlcli-test/base:1", timeoutMs: 1000 }),
    ).toBe("rlcli-test/base:1");
  });

  describe("started ahead", () => {
    const RUN_NAME = "sandbox.test.ahead";
    const there = async () =>
      (await docker!.listContainers({ all: true, filters: { label: [`${RUN}=${RUN_NAME}`] } })).map(({ Names }) =>
        String(Names[0]).slice(1),
      );
    // One that is being made is listed before its name is known to the daemon: only those that run count here.
    const running = async (count: number) => {
      const filters = { label: [`${RUN}=${RUN_NAME}`], status: ["running"] };
      const list = () => docker!.listContainers({ filters });
      await vi.waitFor(async () => expect((await list()).length).toBe(count), { timeout: 60_000, interval: 100 });
      return there();
    };
    const openHost = async (more = {}) => {
      const opened = await openTestHost(RUN_NAME, more);
      onTestFinished(() => opened.close());
      return opened;
    };

    test("what is expected is there when it is asked for, is used once, and waits for nobody's place", async () => {
      const { host, close } = await openHost({ concurrency: 1 });
      const [one, two] = [host.expect(order), host.expect(order)];
      const [name] = await running(1);
      const first = await one.start();
      expect(first.name).toBe(name);
      expect((await first.run({ command: "echo hi", timeoutMs: 60_000 })).stdout.text).toBe("hi\n");
      await first.close();
      // The next is started without being asked for; somebody whom nobody expected gets its place at once.
      await vi.waitFor(async () => expect((await there()).filter((other) => other !== name).length).toBe(1), {
        timeout: 60_000,
        interval: 100,
      });
      const [given] = await there();
      const unexpected = await host.start({ ...order, label: "unexpected" });
      expect(await there()).toEqual([unexpected.name]);
      await unexpected.close();
      const second = await two.start();
      expect([name, given]).not.toContain(second.name);
      await second.close();
      await close();
      expect(await there()).toEqual([]);
    });

    test("one that somebody else removed, or whose image cannot start, is no worse than none", async () => {
      const { host, close } = await openHost();
      const ahead = host.expect(order);
      const [name] = await running(1);
      await docker!.getContainer(name!).remove({ force: true });
      const box = await ahead.start();
      expect(box.name).not.toBe(name);
      await expect(host.expect({ ...order, image: "rlcli-test/not-there:1" }).start()).rejects.toThrow(/RL7303/);
      await box.close();
      await close();
    });

    test("nothing stays of those that nobody asked for, however soon the host is closed", async () => {
      for (const waitMs of [0, 150, 1500]) {
        const { host, close } = await openHost();
        const expected = Array.from({ length: 3 }, () => host.expect(order));
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        expected[0]?.cancel();
        await close();
        expect(await there()).toEqual([]);
        await expect(expected[1]?.start()).rejects.toThrow(/RL7303/);
      }
    });
  });

  test("sandboxes wait for a place", async () => {
    const small = await openTestHost("sandbox.test", { concurrency: 1 });
    const first = await small.host.start(order);
    const second = small.host.start(order);
    expect(
      await Promise.race([
        second.then(() => "started"),
        new Promise((resolve) => setTimeout(() => resolve("waits"), 500)),
      ]),
    ).toBe("waits");
    await first.close();
    await (await second).close();
    await small.close();
  });
});
