/** Daemons over TLS and ssh, and several as one: real ones of the test's own. Slow, and needs root: with RLCLI_TEST_ALL=1. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openDocker } from "../../src/environments/sandbox/docker.ts";
import { openHosts } from "../../src/environments/sandbox/hosts.ts";
import type { Sandbox, SandboxHost, SandboxOrder } from "../../src/environments/sandbox/sandbox.ts";
import { freePort } from "../../src/servers/ports.ts";
import { type RemoteBox, sshd, startBox } from "../servers/skyrl/sshd.ts";
import { canStartDaemons, TestDaemon } from "../support/dockerd.ts";

const BRIDGE = "rlclitest0";

/** A certificate authority, a server's and a client's certificate, as `docker` wants them in a folder. */
function makeCertificates(folder: string): void {
  const openssl = (...words: string[]) => {
    const { status, stderr } = spawnSync("openssl", words, { cwd: folder, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  };
  openssl(
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-keyout",
    "ca-key.pem",
    "-out",
    "ca.pem",
    "-subj",
    "/CN=ca",
  );
  for (const [name, extension] of [
    ["server", "subjectAltName=IP:127.0.0.1"],
    ["", "extendedKeyUsage=clientAuth"],
  ] as const) {
    const [key, cert] = name === "" ? ["key.pem", "cert.pem"] : [`${name}-key.pem`, `${name}-cert.pem`];
    writeFileSync(join(folder, "extensions"), extension);
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", "request", "-subj", `/CN=${name || "us"}`);
    const signed = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-extfile", "extensions"];
    openssl("x509", "-req", "-in", "request", "-out", cert, ...signed);
  }
}

const order: SandboxOrder = {
  label: "hosts",
  image: "rlcli-test/base:1",
  env: {},
  memoryBytes: 128 << 20,
  pids: 64,
  network: "none",
  security: "compat",
  lifetimeMs: 600_000,
  startTimeoutMs: 60_000,
};

describe.skipIf(!canStartDaemons || !sshd)(
  "daemons elsewhere (skipped without RLCLI_TEST_ALL, root, dockerd and sshd)",
  () => {
    const scratch = mkdtempSync(join(tmpdir(), "rlcli-hosts-"));
    const certificates = join(scratch, "certificates");
    const behindSsh = new TestDaemon();
    let overTls: TestDaemon;
    let box: RemoteBox;
    let tls: string;
    let ssh: string;
    let env: Record<string, string>;

    beforeAll(async () => {
      spawnSync("mkdir", [certificates]);
      makeCertificates(certificates);
      const ip = (...words: string[]) => spawnSync("ip", words);
      ip("link", "add", BRIDGE, "type", "bridge");
      ip("addr", "add", "10.213.7.1/24", "dev", BRIDGE);
      ip("link", "set", BRIDGE, "up");
      const port = await freePort();
      tls = `tcp://127.0.0.1:${port}`;
      const file = (name: string) => join(certificates, name);
      overTls = new TestDaemon(
        [
          ["--host", tls, "--bridge", BRIDGE, "--tlsverify"],
          ["--tlscacert", file("ca.pem"), "--tlscert", file("server-cert.pem"), "--tlskey", file("server-key.pem")],
        ].flat(),
        false,
      );
      await Promise.all([behindSsh.up(), overTls.up()]);
      for (const daemon of [behindSsh, overTls]) daemon.makeBase();
      box = await startBox({});
      ssh = `ssh://${box.host}${behindSsh.host.slice("unix://".length)}`;
      env = { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: certificates, RLCLI_SSH: box.command };
    }, 180_000);
    afterAll(async () => {
      box?.close();
      await Promise.all([behindSsh.close(), overTls?.close()]);
      spawnSync("ip", ["link", "del", BRIDGE]);
      rmSync(scratch, { recursive: true, force: true });
    }, 120_000);

    const options = (more = {}) => ({
      env: { ...env, ...more },
      cacheFolder: join(scratch, "cache"),
      project: "test",
      run: "hosts",
      concurrency: 2,
    });
    const say = (sandbox: Sandbox, command: string) => sandbox.run({ command, timeoutMs: 20_000 });
    const left = async () =>
      (await Promise.all([behindSsh, overTls].map(({ docker }) => docker.listContainers({ all: true })))).map(
        ({ length }) => length,
      );

    async function works(host: SandboxHost): Promise<void> {
      const context = join(scratch, "context");
      spawnSync("mkdir", ["-p", context]);
      writeFileSync(join(context, "Dockerfile"), "FROM rlcli-test/base:1\nCOPY data /data\n");
      writeFileSync(join(context, "data"), "x".repeat(1_000_000));
      const image = await host.image({ label: "hosts", context, timeoutMs: 60_000 });
      const sandbox = await host.start({ ...order, image });
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, at) => say(sandbox, `echo ${at}; wc -c < /data`)),
      );
      expect(results.map(({ stdout }) => stdout.text)).toEqual(results.map((_, at) => `${at}\n1000000\n`));
      const files = await sandbox.download("/data", { bytes: 2_000_000, entries: 1 });
      expect(files?.[0]?.bytes.length).toBe(1_000_000);
      expect(await sandbox.run({ command: "sleep 60", timeoutMs: 500 })).toMatchObject({ hasTimedOut: true });
      await sandbox.close();
      await host.close();
      expect(await left()).toEqual([0, 0]);
    }

    test("over TLS, and not without certificates", async () => {
      await works(await openDocker({ ...options(), host: tls }));
      await expect(openDocker({ ...options({ DOCKER_CERT_PATH: "/not/there" }), host: tls })).rejects.toThrow(/RL7301/);
    }, 60_000);

    test("over ssh, by one connection that ends with its host", async () => {
      const connections = () =>
        spawnSync("pgrep", ["-fc", `${behindSsh.folder}/docker.sock -- `], { encoding: "utf8" }).stdout.trim();
      const host = await openDocker({ ...options(), host: ssh });
      await works(host);
      expect(connections()).toBe("0");
      await expect(openDocker({ ...options({ RLCLI_SSH: "false" }), host: ssh })).rejects.toThrow(
        /RL7301.*cannot be reached by ssh/,
      );
      await expect(openDocker({ ...options(), host: `ssh://${box.host}/not/there.sock` })).rejects.toThrow(/RL7301/);
    }, 90_000);

    test("several as one: each its share, a dead one is left out, and is back when it answers", async () => {
      const changes: string[] = [];
      const onHost = (text: string) => void changes.push(text);
      const pool = await openHosts({ ...options(), concurrency: 3, hosts: [tls, ssh], onHost });
      const boxes = await Promise.all(Array.from({ length: 4 }, () => pool.start(order)));
      expect(await left()).toEqual([2, 2]);
      const ofTls = new Set((await overTls.docker.listContainers()).map(({ Names }) => String(Names[0]).slice(1)));
      const [lost, other] = boxes.filter(({ name }) => ofTls.has(name)) as [Sandbox, Sandbox];
      const [kept, freed] = boxes.filter(({ name }) => !ofTls.has(name)) as [Sandbox, Sandbox];
      await overTls.down("SIGKILL");
      // What ran there is lost; the others go on, and what is asked for now is elsewhere.
      await expect(say(lost, "true")).rejects.toThrow(/RL7303/);
      expect((await say(kept, "echo on")).stdout.text).toBe("on\n");
      await freed.close();
      const ahead = pool.expect(order);
      const moved = await pool.start(order);
      expect((await say(moved, "echo moved")).stdout.text).toBe("moved\n");
      await moved.close();
      const second = await ahead.start();
      expect((await say(second, "echo second")).stdout.text).toBe("second\n");
      expect(changes).toEqual([`The Docker daemon ${tls} does not answer and is left out until it does.`]);
      await Promise.all([second, kept, freed].map((one) => one.close()));
      await overTls.up();
      await Promise.all([lost, other].map((one) => one.close()));
      await vi.waitFor(
        async () => {
          const one = await pool.start(order);
          await one.close();
          expect(changes.at(-1)).toBe(`The Docker daemon ${tls} is back.`);
        },
        { timeout: 60_000, interval: 1000 },
      );
      await pool.close();
      expect(await left()).toEqual([0, 0]);
    }, 180_000);

    test("all away is one readable fault; one of two is enough", async () => {
      const away = "tcp://127.0.0.1:9";
      await expect(openHosts({ ...options(), hosts: [away, "unix:///not/there.sock"] })).rejects.toThrow(/RL7301/);
      const changes: string[] = [];
      const pool = await openHosts({
        ...options(),
        hosts: [away, ssh],
        onHost: (text) => void changes.push(text),
      });
      expect(changes).toEqual([`The Docker daemon ${away} does not answer and is left out until it does.`]);
      const one = await pool.start(order);
      await one.close();
      await pool.close();
    }, 60_000);
  },
);
