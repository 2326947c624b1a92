/** Waiting for saves that a server has taken, whether or not their client still waits. */
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";

/** A large model takes minutes to write. */
const LIMIT_MS = 900_000;
const RETRY_MS = 500;

/** Resolves when no save is under way any more, or the server does not answer, or after a quarter of an hour. */
export async function finishSaves(url: string, saves: ReadonlySet<string>): Promise<void> {
  const until = performance.now() + LIMIT_MS;
  await Promise.all(
    [...saves].map(async (id) => {
      while (performance.now() < until && (await isUnderWay(url, id))) await sleep(RETRY_MS);
    }),
  );
}

/** A poll is held until the future is done or 300 s are over, which is 408. */
async function isUnderWay(url: string, id: string): Promise<boolean> {
  try {
    const { statusCode, body } = await request(`${url}/api/v1/retrieve_future`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ request_id: id }),
      headersTimeout: LIMIT_MS,
    });
    await body.dump();
    return statusCode === 408;
  } catch {
    return false;
  }
}
