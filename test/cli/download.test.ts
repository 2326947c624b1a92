import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { downloadFolder } from "../../src/cli/commands/checkpoint-download.ts";
import { TinkerClient } from "../../src/tinker/index.ts";

const PATH = "tinker://run/weights/step";
/** Larger than what a stream takes at once, and of another byte at each place. */
const CONTENT = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * i) % 251));

async function tarOf(name: string): Promise<Buffer> {
  const tar = pack();
  tar.entry({ name }, CONTENT);
  tar.finalize();
  return buffer(tar);
}

describe("a checkpoint's archive", () => {
  let folder: string;
  let server: Server;
  let client: TinkerClient;
  let send: (response: ServerResponse) => void;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "rlcli-download-"));
    server = createServer(({ url }, response) => {
      if (url === "/file") send(response);
      else response.writeHead(302, { location: "/file" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    client = new TinkerClient({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
  afterEach(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });

  const download = (archive: Buffer, sentBytes = archive.length) => {
    send = (response) => {
      response.setHeader("content-length", archive.length);
      response.write(archive.subarray(0, sentBytes), () => {
        if (sentBytes < archive.length) response.destroy();
        else response.end();
      });
    };
    return downloadFolder(client, PATH, join(folder, "to"));
  };

  test.each(["tar", "tar.gz"])("as %s becomes a folder", async (format) => {
    const tar = await tarOf("deep/weights");
    await download(format === "tar" ? tar : gzipSync(tar));
    expect(readFileSync(join(folder, "to/deep/weights")).equals(CONTENT)).toBe(true);
  });

  test.each<[string, (tar: Buffer) => Promise<void>, object]>([
    ["whose connection breaks", (tar) => download(tar, 100_000), { kind: "network" }],
    ["whose connection breaks while it is unzipped", (tar) => download(gzipSync(tar), 1000), { kind: "network" }],
    ["that ends too soon", (tar) => download(tar.subarray(0, 100_000)), { message: /RL5013.*damaged/ }],
    ["whose gzip ends too soon", (tar) => download(gzipSync(tar).subarray(0, 1000)), { message: /RL5013.*damaged/ }],
    ["that is none", () => download(CONTENT), { message: /RL5013.*damaged/ }],
  ])("%s is a fault with words, and leaves nothing", async (_, work, { message, ...fields }: { message?: RegExp }) => {
    const fault = work(await tarOf("weights"));
    await (message ? expect(fault).rejects.toThrow(message) : expect(fault).rejects.toMatchObject(fields));
    expect(readdirSync(folder)).toEqual([]);
  });

  test("with a name that leads out of the folder is refused", async () => {
    await expect(download(await tarOf("../out"))).rejects.toThrow(/RL5013.*no plain file/);
    expect(readdirSync(folder)).toEqual([]);
  });
});
