/** Process of a SkyRL server's supervisor: `node skyrl-server.js <SkyrlOrder as JSON>`. Its output goes to the server's log. */
import { RlcliError } from "../../diagnostic.ts";
import type { StartMessage } from "../../servers/launch.ts";
import { superviseSkyrl } from "../../servers/skyrl/main.ts";
import type { SkyrlOrder } from "../../servers/skyrl/order.ts";

const log = (text: string) => console.error(`${new Date().toISOString()} ${text}`);

const tell = (message: StartMessage) => {
  // Whoever started it may be gone: the server goes on without.
  if (process.connected) process.send?.(message, undefined, {}, () => {});
};

const signalled = new Promise<string>((resolve) => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve(signal));
});

const orphaned = new Promise<void>((resolve) => {
  process.on("disconnect", () => resolve());
});

try {
  const order = JSON.parse(process.argv[2] ?? "{}") as SkyrlOrder;
  await superviseSkyrl(order, { log, tell, signalled, orphaned, env: process.env });
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
