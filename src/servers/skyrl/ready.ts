/**
 * Whether a SkyRL server serves. Its API answers long before its engine has loaded the model, and goes on answering when the
 * engine's workers are dead, so ready means that a request went through the engine: on jax a sampled token. fsdp and megatron load
 * their model when the first run makes one; there a request that the engine itself refuses shows that it is at work.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { TinkerClient } from "../../tinker/client.ts";
import { TinkerError } from "../../tinker/errors.ts";
import type { SkyrlBackend } from "./settings.ts";

const POLL_MS = 500;
const SAMPLE_LIMIT_MS = 1_800_000;
/** No model has this name. */
const NOBODY = "rlcli-looks-whether-the-engine-answers";

/** Resolves when the server at `url` serves; rejects when it cannot or `signal` is aborted. */
export async function waitUntilServing(
  url: string,
  backend: SkyrlBackend,
  model: string,
  signal: AbortSignal,
): Promise<void> {
  const client = new TinkerClient({ baseUrl: url });
  try {
    while (!(await answers(client, signal))) await sleep(POLL_MS, undefined, { signal });
    if (backend === "jax") await sample(client, model, signal);
    else await askEngine(client, signal);
  } finally {
    await client.close();
  }
}

async function answers(client: TinkerClient, signal: AbortSignal): Promise<boolean> {
  try {
    await client.health({ signal, timeoutMs: 5000 });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TinkerError) return false;
    throw error;
  }
}

async function sample(client: TinkerClient, baseModel: string, signal: AbortSignal): Promise<void> {
  const session = await client.createSession({ tags: ["rlcli ready"], signal });
  const sampler = await session.createSampler({ baseModel }, { signal });
  const request = { prompt: Int32Array.of(1), params: { maxTokens: 1, temperature: 0, seed: 0, stop: [] } };
  const { sequences } = await (await sampler.sample(request, { signal })).result({
    signal,
    deadlineMs: SAMPLE_LIMIT_MS,
  });
  if (sequences[0]?.tokens.length !== 1) throw new Error("the server's answer to a first sample is empty");
}

async function askEngine(client: TinkerClient, signal: AbortSignal): Promise<void> {
  const session = await client.createSession({ tags: ["rlcli ready"], signal });
  const sampler = await session.createSampler({ baseModel: NOBODY }, { signal });
  const request = { prompt: Int32Array.of(1), params: { maxTokens: 1, stop: [] } };
  try {
    await (await sampler.sample(request, { signal })).result({ signal, deadlineMs: SAMPLE_LIMIT_MS });
  } catch (error) {
    const isRefusal =
      error instanceof TinkerError && (error.kind === "failed" || error.kind === "gone") && error.status === 400;
    if (!isRefusal) throw error;
  }
}
