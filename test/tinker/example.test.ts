// The example of docs/guide/tinker-client.md runs as it stands there, against the embedded server.
import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startTestServer, TOKEN } from "../servers/embedded/server.ts";

const file = fileURLToPath(new URL("../../examples/tinker-client/train.mjs", import.meta.url));

test("the guide shows the example", () => {
  const guide = readFileSync(new URL("../../docs/guide/tinker-client.md", import.meta.url), "utf8");
  expect(guide).toContain(`\`\`\`js\n${readFileSync(file, "utf8")}\`\`\``);
});

test("it trains, samples, saves and goes on", async () => {
  const server = await startTestServer();
  try {
    const env = { ...process.env, TINKER_BASE_URL: server.server.url, TINKER_API_KEY: TOKEN };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { env });
    expect(stderr).toBe("");
    const losses = [...stdout.matchAll(/loss ([\d.]+) nats/g)].map(([, loss]) => Number(loss));
    expect(losses).toHaveLength(3);
    expect(losses[2]).toBeLessThan(losses[0]! * 0.8);
    expect(stdout).toMatch(/before: .*\n(.*\n)*after: .*\nsaved tinker:\/\/\S+, went on as \S+\n$/);
    const wrong = promisify(execFile)(process.execPath, [file], { env: { ...env, TINKER_API_KEY: "tml-wrong" } });
    await expect(wrong).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^rejected: .*HTTP 401/) });
  } finally {
    await server.server.close();
    rmSync(server.folder, { recursive: true, force: true });
  }
});
