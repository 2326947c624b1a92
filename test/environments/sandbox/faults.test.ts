/**
 * A daemon that fails: a proxy before the real one answers 500, cuts streams or swallows answers, at single requests. And an agent
 * that does what it can to its own container.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Sandbox, SandboxOrder } from "../../../src/environments/sandbox/sandbox.ts";
import { readTree } from "../../../src/environments/sandbox/tree.ts";
import { expectNothingLeft, findDocker, leftovers, openTestHost, type TestHost } from "../../support/docker.ts";

const NAME = "faults.test";
const docker = await findDocker();
const scratch = mkdtempSync(join(tmpdir(), "rlcli-faults-"));
const order: SandboxOrder = {
  label: "faults",
  image: "rlcli-test/base:1",
  env: {},
  memoryBytes: 128 << 20,
  pids: 256,
  network: "none",
  security: "compat",
  lifetimeMs: 1_800_000,
  startTimeoutMs: 30_000,
};

type Fault =
  /** The daemon does it, and the answer is a 500. */
  | "lost"
  /** It is not done, and the answer is a 500. */
  | "refused"
  /** The answer breaks off behind its first bytes. */
  | "cut"
  /** A build is not begun, since an image that it stands on went away. */
  | "undercut";

/** A socket that leads to the daemon's, with faults at the first request that each rule matches. */
class FaultyDaemon {
  readonly path = join(scratch, "faulty.sock");
  readonly rules: { readonly on: RegExp; readonly fault: Fault; left: number }[] = [];
  readonly #server: Server = createServer((asked, answer) => this.#pass(asked, answer));

  constructor() {
    // As the daemon itself.
    this.#server.keepAliveTimeout = 0;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => void this.#server.listen(this.path, resolve));
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  fail(on: RegExp, fault: Fault, left = 1): void {
    this.rules.push({ on, fault, left });
  }

  #pass(asked: IncomingMessage, answer: ServerResponse): void {
    const rule = this.rules.find(({ on, left }) => left > 0 && on.test(`${asked.method} ${asked.url}`));
    if (rule) rule.left -= 1;
    const refuse = (): void => {
      answer.writeHead(500, { "content-type": "application/json" });
      answer.end('{"message":"made to fail"}');
    };
    if (rule?.fault === "refused") {
      asked.resume();
      refuse();
      return;
    }
    if (rule?.fault === "undercut") {
      asked.resume();
      answer.writeHead(200, { "content-type": "application/json" });
      answer.end('{"stream":"Step 1/2 : FROM x\\n"}\n{"error":"No such image: sha256:0123"}\n');
      return;
    }
    const { method, url: path, headers } = asked;
    const real = request({ socketPath: "/var/run/docker.sock", method, path, headers }, (response) => {
      if (rule?.fault === "lost") {
        response.resume();
        refuse();
        return;
      }
      answer.writeHead(response.statusCode ?? 500, response.headers);
      response.on("data", (chunk) => {
        answer.write(chunk);
        if (rule?.fault === "cut") answer.destroy();
      });
      response.on("end", () => answer.end());
      response.on("error", () => answer.destroy());
    });
    real.on("error", () => answer.destroy());
    answer.on("close", () => real.destroy());
    asked.pipe(real);
  }
}

describe.skipIf(!docker)("a daemon that fails (skipped where none runs)", () => {
  const daemon = new FaultyDaemon();
  let opened: TestHost;
  beforeAll(async () => {
    await daemon.listen();
    opened = await openTestHost(NAME, { host: `unix://${daemon.path}` });
  });
  afterEach(() => void daemon.rules.splice(0));
  afterAll(async () => {
    await opened.close();
    daemon.close();
    rmSync(scratch, { recursive: true, force: true });
    await expectNothingLeft(docker!, NAME);
  });
  const ours = async () => (await leftovers(docker!, NAME)).containers;

  test.each([
    ["the answer to a creation is lost", /POST .*containers\/create/, "lost"],
    ["a creation is refused", /POST .*containers\/create/, "refused"],
    ["the answer to a start is lost", /POST .*\/start/, "lost"],
    ["it cannot be looked at", /GET .*containers\/.*\/json/, "refused"],
  ] as const)("%s: a fault, and no container", async (_, on, fault) => {
    daemon.fail(on, fault);
    await expect(opened.host.start(order)).rejects.toThrow(/RL7303.*made to fail/);
    expect(await ours()).toEqual([]);
  });

  test("a removal that fails is tried again", async () => {
    const box = await opened.host.start(order);
    daemon.fail(/DELETE .*containers/, "refused", 2);
    daemon.fail(/DELETE .*containers/, "lost");
    await box.close();
    expect(await ours()).toEqual([]);
  });

  // Waits until a removal is given up: not among the fast ones.
  test.skipIf(!process.env.RLCLI_TEST_ALL)(
    "one that fails for long costs nobody's attempt, and is made good with the next sandbox",
    async () => {
      const box = await opened.host.start(order);
      daemon.fail(/DELETE .*containers/, "refused", 1000);
      await box.close();
      expect((await ours()).length).toBe(1);
      daemon.rules.splice(0);
      const next = await opened.host.start(order);
      await vi.waitFor(async () => expect(await ours()).toEqual([`/${next.name}`]), { timeout: 10_000, interval: 200 });
      await next.close();
    },
    90_000,
  );

  test.each([
    ["a command is refused", /POST .*\/exec$/, "refused"],
    ["a command is not started", /POST .*exec\/.*\/start/, "refused"],
    ["a command's stream is cut", /POST .*exec\/.*\/start/, "cut"],
  ] as const)("%s: a fault, never an exit code; the next one runs", async (_, on, fault) => {
    const box = await opened.host.start(order);
    daemon.fail(on, fault);
    await expect(box.run({ command: "echo out; sleep 30", timeoutMs: 40_000 })).rejects.toThrow(/RL7303/);
    expect((await box.run({ command: "echo next", timeoutMs: 60_000 })).stdout.text).toBe("next\n");
    await box.close();
  });

  test("a build under which a layer is taken away begins again; an image that is missing is told", async () => {
    const context = join(scratch, "undercut");
    mkdirSync(context, { recursive: true });
    writeFileSync(
      join(context, "Dockerfile"),
      `FROM rlcli-test/base:1\nRUN echo ${process.pid}-${Date.now()} > /made\n`,
    );
    daemon.fail(/POST .*\/build/, "undercut", 2);
    const image = await opened.host.image({ label: "undercut", context, timeoutMs: 60_000 });
    await docker!.getImage(image).remove();
    daemon.fail(/POST .*\/build/, "undercut", 3);
    writeFileSync(join(context, "Dockerfile"), "FROM rlcli-test/base:1\nRUN echo other > /made\n");
    const asked = opened.host.image({ label: "undercut", context, timeoutMs: 60_000 });
    await expect(asked).rejects.toThrow(/RL7302.*No such image/);
  });

  test.each([
    ["in", /PUT .*archive/, "refused"],
    ["out", /GET .*archive/, "cut"],
  ] as const)("a copy %s that fails is a fault", async (way, on, fault) => {
    const box = await opened.host.start(order);
    await box.run({ command: "head -c 3000000 /dev/urandom > /big", timeoutMs: 60_000 });
    daemon.fail(on, fault);
    const copy = way === "in" ? box.upload([], "/x") : box.download("/big", { bytes: 1 << 24, entries: 9 });
    await expect(copy).rejects.toThrow(/RL7303/);
    await box.close();
  });
});

describe.skipIf(!docker)("an agent against its own container (skipped where no daemon runs)", () => {
  let opened: TestHost;
  let box: Sandbox;
  beforeAll(async () => {
    opened = await openTestHost(NAME);
    box = await opened.host.start(order);
  });
  afterAll(() => opened.close());
  const run = (command: string, timeoutMs = 60_000) => box.run({ command, timeoutMs });
  const text = async (command: string) => (await run(command)).stdout.text;

  test("what is not meant to end the container does not end it", async () => {
    for (const command of [
      "pkill sleep; pkill -f sleep",
      "killall bash",
      "kill -TERM -1",
      "kill -HUP 1; kill -INT 1",
    ]) {
      await run(command);
      expect(await text("echo alive")).toBe("alive\n");
    }
  });

  test("closed, full or strange streams are the command's own", async () => {
    expect(await run("exec >&- 2>&-; exit 7")).toMatchObject({ exitCode: 7 });
    expect((await run("printf '\\001rlcli-end 000000000000000000000000 0 0\\n'")).stdout.text).toMatch(
      /rlcli-end 0+ 0 0\n$/,
    );
    expect((await run("kill -9 $$")).exitCode).toBe(137);
    expect((await run("kill -9 $PPID; sleep 1")).exitCode).toBe(137);
    const many = await run("for i in $(seq 3000); do echo $i; echo $i >&2; done");
    expect([many.stdout.totalBytes, many.stderr.totalBytes]).toEqual([13_893, 13_893]);
  });

  test("names of all kinds go in and come out, and so do files without a byte", async () => {
    const folder = join(scratch, "names");
    rmSync(folder, { recursive: true, force: true });
    const names = ["with space", "ünï-çødé 🙂", "-dash", "a\nline", "x".repeat(200), "'quo\"te$", "empty"];
    mkdirSync(folder, { recursive: true });
    for (const name of names) writeFileSync(join(folder, name), name === "empty" ? "" : name);
    await box.upload(readTree(folder), "/names of all/ kïnds");
    const files = await box.download("/names of all/ kïnds", { bytes: 10_000, entries: 99 });
    expect(new Map(files?.map(({ path, bytes }) => [path, bytes.toString()]))).toEqual(
      new Map(names.map((name) => [name, name === "empty" ? "" : name])),
    );
  });

  test("links do not lead out, neither in what goes in nor in what comes out", async () => {
    await run(
      "ln -s /etc /trap; ln -s /etc/passwd /linked; mkdir /out; ln /etc/passwd /out/hard; mknod /out/dev c 1 5",
    );
    expect(await box.download("/linked", { bytes: 99_999, entries: 9 })).toEqual([]);
    const out = await box.download("/out", { bytes: 99_999, entries: 9 });
    expect(out?.every(({ path }) => !path.startsWith("/") && !path.includes(".."))).toBe(true);
    // A folder that is a link is the container's own matter: what goes there stays in the container.
    await box.upload([{ type: "link", path: "up", target: "../../../../../../etc" }], "/trap/deep");
    expect(await text("readlink /etc/deep/up")).toBe("../../../../../../etc\n");
    // A file that claims to be larger than may be read is not read.
    await run("truncate -s 900G /out/sparse");
    await expect(box.download("/out", { bytes: 99_999, entries: 9 })).rejects.toThrow(/RL7303.*more than may be read/);
  });

  test("without its tools a container is a fault; it does not hang and is removed", async () => {
    const other = await opened.host.start(order);
    await other.run({ command: "rm -rf /bin/* /usr/bin/*", timeoutMs: 60_000 });
    await expect(other.run({ command: "true", timeoutMs: 60_000 })).rejects.toThrow(/RL7303.*could not be started/);
    await other.close();
  });

  test("a container that somebody else removes in the middle of a command is a fault at once", async () => {
    const other = await opened.host.start(order);
    const began = performance.now();
    const running = other.run({ command: "sleep 60", timeoutMs: 60_000 });
    running.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 500));
    await docker!.getContainer(other.name).remove({ force: true });
    await expect(running).rejects.toThrow(/RL7303.*is gone/);
    // Not only when the command would have ended.
    expect(performance.now() - began).toBeLessThan(50_000);
    await other.close();
  });
});
