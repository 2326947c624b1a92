/** Ports for servers that are told theirs and take it later, which nobody else gets meanwhile by asking the system for any. */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

/** Below those that systems give to whoever asks for any; above those that Ray gives to its workers. */
const OURS = { from: 20_000, to: 29_999 } as const;
const MOST_TRIES = 50;

/** A port of loopback that is free now: one of those that the system hands out itself is somebody's a moment later. */
export async function freePort(): Promise<number> {
  const [first, last] = handedOut();
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const port = randomInt(OURS.from, OURS.to + 1);
    if ((port < first || port > last) && (await portIfFree(port)) !== undefined) return port;
  }
  const port = await portIfFree(0);
  if (port === undefined) throw new Error("there is no free port");
  return port;
}

/** Undefined where it is not free; 0 is any. */
function portIfFree(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => {
      const { port: found } = server.address() as { port: number };
      server.close(() => resolve(found));
    });
  });
}

/** First and last port of those that the system gives to clients and to servers that take any. */
function handedOut(): readonly [number, number] {
  try {
    const [first, last] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8")
      .trim()
      .split(/\s+/)
      .map(Number);
    return [first as number, last as number];
  } catch {
    // As everywhere but on Linux.
    return [49_152, 65_535];
  }
}
