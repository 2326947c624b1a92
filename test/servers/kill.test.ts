/** SIGKILL of the server at any moment leaves a folder with whole checkpoints only, from which a new server goes on. */
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { isAlive, signalProcess } from "../../src/process.ts";
import { listCheckpoints, listRuns } from "../../src/servers/checkpoints.ts";
import { ensureEmbedded } from "../../src/servers/embedded/ensure.ts";
import { readRuntime, type ServerRuntime, stopServer } from "../../src/servers/runtime.ts";
import { temporaryFolder } from "./embedded/support.ts";

const cacheFolder = join(tmpdir(), "rlcli-test-cache");
const KILLS = process.env.RLCLI_TEST_ALL ? 40 : 6;

type Body = Record<string, never>;

class Client {
  readonly #runtime: ServerRuntime;
  answers = 0;
  constructor(runtime: ServerRuntime) {
    this.#runtime = runtime;
  }

  async post(path: string, body: unknown): Promise<Body> {
    const response = await fetch(`${this.#runtime.url}/api/v1${path}`, {
      method: "POST",
      headers: { "X-API-Key": this.#runtime.token },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Body;
    this.answers += 1;
    return answer;
  }

  async run(path: string, body: unknown): Promise<Body> {
    const { request_id } = await this.post(path, body);
    return this.post("/retrieve_future", { request_id });
  }

  async newSession(): Promise<string> {
    return String((await this.post("/create_session", { tags: [] })).session_id);
  }
}

/** Trains and saves as fast as it can until the server is gone. */
async function workUntilDead(client: Client): Promise<void> {
  const session_id = await client.newSession();
  const { model_id } = await client.run("/create_model", { session_id, model_seq_id: 0, base_model: "builtin:tiny" });
  const tokens = [1, 2, 3, 4];
  const data = [{ model_input: { chunks: [{ tokens }] }, loss_fn_inputs: { target_tokens: { data: tokens } } }];
  for (let step = 0; ; step++) {
    await client.run("/forward_backward", { model_id, forward_backward_input: { data, loss_fn: "cross_entropy" } });
    await client.run("/optim_step", { model_id, adam_params: { learning_rate: 1e-3 } });
    await client.run("/save_weights", { model_id, path: `step-${step}` });
    await client.run("/save_weights_for_sampler", { model_id, path: `step-${step}` });
    await client.run("/save_weights_for_sampler", { model_id, sampling_session_seq_id: step });
  }
}

test(`${KILLS} kills`, { timeout: 600_000 }, async () => {
  const folder = join(temporaryFolder(), "server");
  for (let kill = 0; kill < KILLS; kill++) {
    const runtime = await ensureEmbedded({ folder, model: "builtin:tiny", cacheFolder });
    const client = new Client(runtime);
    const working = workUntilDead(client).catch((error: unknown) => error);
    // The first while a shape compiles; then spread over training and the saves, whatever the machine's speed.
    const answers = kill === 0 ? 3 : 13 + ((kill * 7) % 20);
    while (client.answers < answers) await delay(1);
    await delay((kill * 5) % 17);
    signalProcess(runtime.process, "SIGKILL");
    expect(String(await working)).toMatch(/fetch failed|terminated|closed|reset/);
    while (isAlive(runtime.process)) await delay(10);
    expect(readRuntime(folder).state).toBe("died");
  }
  const runtime = await ensureEmbedded({ folder, model: "builtin:tiny", cacheFolder });
  const client = new Client(runtime);
  const session_id = await client.newSession();
  const all = listRuns(folder).flatMap(({ run }) => listCheckpoints(folder, run));
  expect(all.length).toBeGreaterThan(0);
  for (const [i, { run, kind, name }] of all.entries()) {
    const path = `tinker://${run}/${kind}/${name}`;
    const outcome =
      kind === "weights"
        ? await client.run("/load_weights", { session_id, model_seq_id: i, path, optimizer: true })
        : await client.run("/asample", { model_path: path, prompt: { chunks: [{ tokens: [1] }] } });
    expect(outcome, path).not.toHaveProperty("error");
    if (kind === "weights") await client.run("/unload_model", { model_id: outcome.model_id });
  }
  const rubbish = readdirSync(folder, { recursive: true }).filter((name) => /\.tmp|unnamed\/./.test(String(name)));
  expect(rubbish).toEqual([]);
  await stopServer(folder, { timeoutMs: 10_000 });
});
