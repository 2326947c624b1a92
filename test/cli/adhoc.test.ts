/** From flags to what a verb without a spec stands for: command lines, and the check of the loss against a server. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { commandWords } from "../../src/cli/adhoc/environment.ts";
import { checkLoss } from "../../src/cli/adhoc/loss-guard.ts";
import { adhocServer, adhocSpec } from "../../src/cli/adhoc.ts";
import type { CommandContext } from "../../src/cli/context.ts";
import { RlcliError } from "../../src/diagnostic.ts";

describe("an address with a secret", () => {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-adhoc-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const context = { cwd: folder, env: {} } as unknown as CommandContext;

  test.each(["http://bob:s3cret@127.0.0.1:9", "http://127.0.0.1:9/?api_key=s3cret"])(
    "is refused before anything is written or asked, and not repeated: %s",
    async (address) => {
      const faults = [
        () => adhocServer(context, { baseUrl: address, model: "m" }),
        async () => adhocSpec(context, "train", { environments: { e: { parts: [{ type: "http", url: address }] } } }),
        async () => adhocSpec(context, "train", { environments: { e: { tasks: "bench", registry: address } } }),
        async () => adhocSpec(context, "train", { environments: { e: { command: ["sh", "-c", `curl ${address}`] } } }),
      ].map((work) => work().then(String, (error: unknown) => error));
      for (const fault of await Promise.all(faults)) {
        expect(fault).toBeInstanceOf(RlcliError);
        expect((fault as RlcliError).diagnostics[0]?.code).toBe("RL1308");
        expect(String(fault)).not.toContain("s3cret");
      }
      expect(readdirSync(folder)).toEqual([]);
    },
  );
});

describe("a command line", () => {
  const root = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");
  const words = (line: string) => commandWords({ cwd: root }, line);

  test.each([
    ["python3 -m grade", ["python3", "-m", "grade"]],
    ["sh -c 'echo \"1\"'", ["sh", "-c", 'echo "1"']],
    ['a "b c"d \\  e\\"f', ["a", "b cd", " ", 'e"f']],
    ['a ""', ["a", ""]],
  ])("%s", (line, expected) => {
    expect(words(line)).toEqual(expected);
  });

  test("files that are there become absolute, other words stay", () => {
    expect(words("node ./package.json src package.json none.js")).toEqual([
      "node",
      `${root}/package.json`,
      "src",
      `${root}/package.json`,
      "none.js",
    ]);
  });

  test.each(["'open", "", "  "])("`%s` is refused", (line) => {
    expect(() => words(line)).toThrow(RlcliError);
  });
});

describe("the loss that a server is to compute", () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  /** A server that tells as much of itself as the official ones do. */
  async function serve(routes: Readonly<Record<string, unknown>>): Promise<string> {
    const started = createServer((request, response) => {
      const body = routes[request.url ?? ""];
      response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(body ?? { detail: "Not Found" }));
    });
    server = started;
    await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(started.address() as AddressInfo).port}`;
  }

  const context = { cwd: tmpdir(), err: () => {} } as unknown as CommandContext;
  const check = (baseUrl: string, loss: string, more: object = {}) => checkLoss(context, { baseUrl, loss, ...more });
  const EMBEDDED = { "/api/v1/healthz": { status: "ok", serverRun: "1" } };
  const HOSTED = { "/api/v1/healthz": { status: "ok" } };

  test("is asked of the server", async () => {
    await check(await serve(EMBEDDED), "dppo");
    server?.close();
    const url = await serve(HOSTED);
    await check(url, "gspo");
    await expect(check(url, "dppo")).rejects.toThrow(/hosted server, which does not compute dppo/);
    await check(url, "dppo", { lossStrategy: "two_pass" });
  });

  test("is known where the user says what the server is, without asking", async () => {
    const nobody = "http://127.0.0.1:1";
    await check(nobody, "gspo", { backend: "fsdp" });
    await expect(check(nobody, "gspo", { backend: "jax" })).rejects.toThrow(/jax server/);
    await expect(check(nobody, "dro", { backend: "megatron" })).rejects.toThrow(/embedded, hosted/);
  });

  test("a server that does not answer stops nothing: the run itself will say so", async () => {
    await check("http://127.0.0.1:1", "gspo");
  });
});
