/** What the daemon remembers of a container that is gone already: its last events. */
import type Docker from "dockerode";
import { within } from "./daemon.ts";

const TIMEOUT_MS = 5_000;

/**
 * Whether a process of the container was killed because its memory was used up, since a time in seconds since 1970. False where the
 * daemon has forgotten (it keeps 256 events) or does not answer: this only explains a fault.
 */
export async function hasRunOutOfMemory(docker: Docker, id: string, sinceS: number): Promise<boolean> {
  const filters = JSON.stringify({ type: ["container"], container: [id], event: ["oom"] });
  try {
    return await within(TIMEOUT_MS, isAnythingIn(docker, { since: sinceS, until: Date.now() / 1000 + 1, filters }), "");
  } catch {
    return false;
  }
}

async function isAnythingIn(docker: Docker, options: Docker.GetEventsOptions): Promise<boolean> {
  const stream = await docker.getEvents(options);
  try {
    for await (const chunk of stream) if (chunk.length > 0) return true;
    return false;
  } finally {
    (stream as unknown as { destroy?: () => void }).destroy?.();
  }
}
