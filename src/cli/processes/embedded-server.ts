/** Process of an embedded server: `node embedded-server.js <ServerOrder as JSON>`. Its output goes to the server's log. */
import { RlcliError } from "../../diagnostic.ts";
import { runServer } from "../../servers/embedded/main.ts";
import type { ServerOrder, StartMessage } from "../../servers/launch.ts";

const log = (text: string) => console.error(`${new Date().toISOString()} ${text}`);

const tell = (message: StartMessage) => {
  // Whoever started it may be gone: the server goes on without.
  if (process.connected) process.send?.(message, undefined, {}, () => {});
};

const signalled = new Promise<string>((resolve) => {
  process.on("SIGTERM", () => resolve("SIGTERM"));
  process.on("SIGINT", () => resolve("SIGINT"));
});

process.on("disconnect", () => {});

try {
  await runServer(JSON.parse(process.argv[2] ?? "{}") as ServerOrder, { log, tell, signalled });
  process.exit(0);
} catch (error) {
  if (error instanceof RlcliError) {
    for (const { code, detail } of error.diagnostics) log(`${code}: ${detail}`);
    tell({ t: "failed", diagnostics: error.diagnostics });
  } else {
    log(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  // Gives the message time to leave before the channel goes with the process.
  setTimeout(() => process.exit(1), 50);
}
