/** Listening, and where a listening server is reached. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isIPv6 } from "node:net";
import { fail, messageOf } from "../diagnostic.ts";

/** `port` 0 takes a free one. Fails with RL5004 where the port is taken, RL5003 where listening fails otherwise. */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port, backlog: 1024 }, resolve);
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE")
      fail("RL5004", `Port ${port} on ${host} is in use by another program. Choose another port, or 0 for a free one.`);
    fail("RL5003", `The server cannot listen on ${host}:${port}: ${messageOf(error)}.`, { cause: error });
  }
}

/** Where this machine reaches it. */
export function urlOf(server: Server, scheme: "http" | "https", host: string): string {
  const { port } = server.address() as AddressInfo;
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${scheme}://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}
