/** Whether an existing Ray cluster is there. Asked before SkyRL starts, which would wait for a missing one for ever, without a word. */
import { connect } from "node:net";

const LIMIT_MS = 10_000;

/** What is wrong with the cluster at `host:port`, in words; undefined where it answers, and for `auto`, which Ray resolves itself. */
export async function clusterFault(address: string | undefined): Promise<string | undefined> {
  const [, host, port] = /^(.+):(\d+)$/.exec(address ?? "") ?? [];
  if (host === undefined) return undefined;
  const socket = connect({ host: host.replace(/^\[|\]$/g, ""), port: Number(port), timeout: LIMIT_MS });
  const reason = await new Promise<string | undefined>((resolve) => {
    socket.once("connect", () => resolve(undefined));
    socket.once("timeout", () => resolve("it does not answer"));
    socket.on("error", (error) => resolve(error.message));
  });
  socket.destroy();
  return reason === undefined
    ? undefined
    : `No Ray cluster is at ${address} (${reason}). Start its head there with \`ray start --head --port ${port}\`, or correct \`ray.address\`.`;
}
