/** A server within the test's process (its compute thread is the bundle's), and a plain JSON client of it. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureBuiltinModel } from "../../../src/servers/builtin.ts";
import { type RunningServer, type ServerSettings, startServer } from "../../../src/servers/embedded/server.ts";

export const TOKEN = "tml-test";
export const cacheFolder = join(tmpdir(), "rlcli-test-cache");

export interface Answer {
  readonly status: number;
  readonly body: any;
}

export class TestServer {
  readonly folder: string;
  readonly server: RunningServer;
  readonly faults: unknown[];
  constructor(folder: string, server: RunningServer, faults: unknown[]) {
    this.folder = folder;
    this.server = server;
    this.faults = faults;
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(`${this.server.url}/api/v1${path}`, {
      method,
      headers: { "X-API-Key": TOKEN, "Content-Type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  async post(path: string, body: unknown): Promise<Answer["body"]> {
    return (await this.call("POST", path, body)).body;
  }

  /** The outcome of a submitted request. */
  async outcome(submitted: { request_id: string }): Promise<Answer["body"]> {
    for (;;) {
      const { status, body } = await this.call("POST", "/retrieve_future", { request_id: submitted.request_id });
      if (status !== 200) throw new Error(`retrieve_future answered ${status} ${JSON.stringify(body)}`);
      if (body.type !== "try_again") return body;
    }
  }

  /** Submits and waits. */
  async run(path: string, body: unknown): Promise<Answer["body"]> {
    const { status, body: submitted } = await this.call("POST", path, body);
    if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(submitted)}`);
    return this.outcome(submitted);
  }

  async newSession(): Promise<string> {
    const body = { tags: [], user_metadata: { who: "test" }, sdk_version: "0", type: "create_session" };
    return (await this.post("/create_session", body)).session_id;
  }

  /** A model of its own session; all weights are trained unless `rank` is given. */
  async newModel(rank = 0): Promise<{ session: string; model: string }> {
    const session = await this.newSession();
    const body = { session_id: session, model_seq_id: 0, base_model: "builtin:tiny", lora_config: { rank, seed: 3 } };
    const { model_id: model } = await this.run("/create_model", body);
    return { session, model };
  }
}

export async function startTestServer(changes: Partial<ServerSettings> = {}): Promise<TestServer> {
  const folder = changes.serverFolder ?? mkdtempSync(join(tmpdir(), "rlcli-server-"));
  const faults: unknown[] = [];
  const server = await startServer({
    model: "builtin:tiny",
    modelFolder: ensureBuiltinModel("builtin:tiny", cacheFolder),
    serverFolder: folder,
    serverRun: "0123456789abcdef",
    sessionTimeoutMs: 300_000,
    holdMs: 2000,
    token: TOKEN,
    host: "127.0.0.1",
    port: 0,
    slots: 4,
    idleTimeoutMs: 0,
    bodyLimitBytes: 1_000_000,
    onFault: (error) => faults.push(error),
    ...changes,
  });
  return new TestServer(folder, server, faults);
}

/** The tokens of a text for builtin:tiny, whose tokens are bytes. */
export function bytesOf(text: string): number[] {
  return [...Buffer.from(text)];
}

/** A datum in the wire's JSON form. */
export function wireDatum(tokens: readonly number[], changes: Record<string, unknown> = {}): unknown {
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: tokens.slice(0, -1) }] },
    loss_fn_inputs: {
      target_tokens: { data: tokens.slice(1), dtype: "int64", shape: [tokens.length - 1] },
      weights: { data: tokens.slice(1).map(() => 1), dtype: "float32", shape: [tokens.length - 1] },
      ...changes,
    },
  };
}

export function passBody(model: string, seq: number | undefined, texts: readonly string[]): Record<string, unknown> {
  const data = texts.map((text) => wireDatum(bytesOf(text)));
  return { model_id: model, seq_id: seq, forward_backward_input: { data, loss_fn: "cross_entropy" } };
}

export function stepBody(model: string, seq: number | undefined, learningRate = 1e-3): Record<string, unknown> {
  return { model_id: model, seq_id: seq, adam_params: { learning_rate: learningRate }, type: "optim_step" };
}
