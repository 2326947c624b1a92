import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { __RLCLI_VERSION__: JSON.stringify("0.0.0-test") },
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/setup/build.ts"],
    alias: [{ find: /^fast-check$/, replacement: new URL("setup/fast-check.ts", import.meta.url).pathname }],
    // Of a busy machine, where all takes five times as long; what is polled for is there in milliseconds otherwise.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    pool: "forks",
    maxWorkers: 2,
    // Servers of tests are nobody's to see.
    env: { XDG_STATE_HOME: join(tmpdir(), "rlcli-test-state") },
    ...(process.env.RLCLI_TEST_REPORT
      ? { reporters: ["default", "json"], outputFile: { json: process.env.RLCLI_TEST_REPORT } }
      : {}),
  },
});
