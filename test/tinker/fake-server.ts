/**
 * A Tinker server in the test process: JSON only, work done at once, deduplicated by `seq_id`, and with a hook through
 * which a test makes it answer 429, hang, drop the connection half-way, forget a session …
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type ToyAdam, ToyModel } from "./toy-model.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, any>;
  readonly text: string;
}

/** What to do instead of, or after, answering. `drop` cuts the connection before or after the work is done. */
export type Fault =
  | {
      readonly type: "answer";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
    }
  | { readonly type: "hang" }
  | { readonly type: "drop"; readonly when: "before" | "after" };

interface Stored {
  readonly model: ToyModel;
  readonly path: string;
  readonly type: "training" | "sampler";
}

class HttpError extends Error {
  readonly status: number;
  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

export class FakeServer {
  readonly requests: SeenRequest[] = [];
  readonly models = new Map<string, ToyModel>();
  readonly checkpoints = new Map<string, Stored>();
  /** Answers of futures, by request id. */
  readonly futures = new Map<string, unknown>();
  /** Called for every request; undefined is normal service. */
  fault: (request: SeenRequest) => Fault | undefined = () => undefined;
  /** Polls answered "not yet" before a result is given. */
  slowPolls = 0;
  /** Changes when the server forgets, as a new process would. */
  life = "life-0";
  #sessions = new Set<string>();
  #sequence = new Map<string, { digest: string; id: string }>();
  /** The number each model expects next: a gap would make a real server wait for ever, and is refused here. */
  #expected = new Map<string, number>();
  #polls = new Map<string, number>();
  #ids = 0;
  #server: Server | undefined;
  url = "";

  /** `port` lets a restarted server come back where it was. */
  async start(port = 0): Promise<this> {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    await new Promise<void>((done) => this.#server!.listen(port, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((done) => this.#server?.close(done));
  }

  /** What a restart of a server process loses: everything but the checkpoints. */
  forget(): void {
    this.life = `life-${++this.#ids}`;
    this.models.clear();
    this.futures.clear();
    this.#sessions.clear();
    this.#sequence.clear();
  }

  count(path: string): number {
    return this.requests.filter((r) => r.path === path).length;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === "" ? {} : (JSON.parse(text) as Record<string, any>);
    const path = (request.url ?? "").replace(/^\/api\/v1/, "").replace(/\?.*/, "");
    const seen: SeenRequest = { method: request.method ?? "", path, headers: request.headers, body, text };
    this.requests.push(seen);
    const fault = this.fault(seen);
    if (fault?.type === "hang") return;
    if (fault?.type === "drop" && fault.when === "before") return void request.socket.destroy();
    if (fault?.type === "answer") return send(response, fault.status, fault.body ?? "", fault.headers);
    try {
      const answer = this.#serve(seen);
      if (fault?.type === "drop") return void request.socket.destroy();
      send(response, answer === undefined ? 204 : 200, answer);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      send(response, error.status, { detail: error.message });
    }
  }

  #serve({ method, path, body, text }: SeenRequest): unknown {
    const rest = /^\/training_runs\/([^/]+)\/checkpoints(?:\/(\w+)\/(.+))?$/.exec(path);
    if (rest) return this.#checkpointCall(method, rest[1]!, rest[2], rest[3]);
    switch (path) {
      case "/healthz":
        return { status: "ok" };
      case "/get_server_capabilities":
        return { supported_models: [{ model_name: "toy", max_context_length: null }] };
      case "/create_session": {
        const id = `session-${++this.#ids}`;
        this.#sessions.add(id);
        return { session_id: id, type: "create_session" };
      }
      case "/session_heartbeat":
        this.#session(body.session_id);
        return { type: "session_heartbeat" };
      case "/create_sampling_session":
        this.#session(body.session_id);
        return { sampling_session_id: `sampling-${++this.#ids}` };
      case "/retrieve_future":
        return this.#retrieve(body.request_id as string);
      case "/asample":
        return this.#future({
          sequences: Array.from({ length: body.num_samples as number }, (_, i) => ({
            stop_reason: "stop",
            tokens: [i, 7],
            logprobs: [-0.5, -0.25],
          })),
          prompt_logprobs: body.prompt_logprobs ? body.prompt.chunks[0].tokens.slice(1).map(() => -1) : null,
        });
      default:
        return this.#modelCall(path, body, text);
    }
  }

  #modelCall(path: string, body: Record<string, any>, text: string): unknown {
    if (path === "/create_model") {
      this.#session(body.session_id);
      const id = `${body.session_id}:train:${body.model_seq_id}`;
      if (!this.models.has(id)) this.models.set(id, new ToyModel());
      return this.#future({ model_id: id });
    }
    const model = this.models.get(body.model_id);
    if (!model) throw new HttpError(404, "Model not found");
    const key = `${body.model_id} ${body.seq_id}`;
    const digest = createHash("sha256").update(text).digest("hex");
    const known = body.seq_id === undefined ? undefined : this.#sequence.get(key);
    if (known) {
      if (known.digest !== digest) throw new HttpError(409, "Training request sequence number was reused");
      return { request_id: known.id };
    }
    if (body.seq_id !== undefined) this.#checkOrder(body.model_id as string, body.seq_id as number);
    const taken = this.#future(this.#work(path, body, model));
    this.#sequence.set(key, { digest, id: taken.request_id });
    return taken;
  }

  #checkOrder(model: string, seq: number): void {
    const expected = this.#expected.get(model) ?? 1;
    if (seq !== expected) throw new HttpError(400, `seq_id ${seq} where ${expected} is next`);
    this.#expected.set(model, expected + 1);
  }

  #work(path: string, body: Record<string, any>, model: ToyModel): unknown {
    switch (path) {
      case "/forward":
      case "/forward_backward": {
        const { data } = (body.forward_input ?? body.forward_backward_input) as { data: any[] };
        const toy = data.map((d) => ({
          tokens: d.model_input.chunks[0].tokens,
          targets: d.loss_fn_inputs.target_tokens.data,
          weights: d.loss_fn_inputs.weights.data,
        }));
        const outputs = model.pass(toy, path === "/forward_backward");
        return {
          loss_fn_output_type: "scalar",
          loss_fn_outputs: outputs.map((o) => ({ logprobs: { data: o, dtype: "float32", shape: [o.length] } })),
          metrics: {},
        };
      }
      case "/optim_step":
        return { metrics: { "skyrl.ai/grad_norm": model.step(body.adam_params as ToyAdam) } };
      case "/save_weights":
      case "/save_weights_for_sampler": {
        const kind = path === "/save_weights" ? "weights" : "sampler_weights";
        const full = `tinker://${body.model_id}/${kind}/${body.path}`;
        if (this.checkpoints.has(full)) throw new HttpError(409, `Checkpoint '${body.path}' already exists`);
        const type = kind === "weights" ? "training" : "sampler";
        this.checkpoints.set(full, { model: model.copy(true), path: full, type });
        return { path: full, type: path.slice(1) };
      }
      case "/load_weights": {
        const stored = this.checkpoints.get(body.path as string);
        if (!stored) throw new HttpError(404, `Checkpoint not found: ${body.path}`);
        this.models.set(body.model_id as string, stored.model.copy(body.optimizer as boolean));
        return { type: "load_weights" };
      }
      case "/unload_model":
        this.models.delete(body.model_id as string);
        return { status: "unloaded" };
      default:
        throw new HttpError(404, "Not Found");
    }
  }

  #checkpointCall(method: string, run: string, kind?: string, name?: string): unknown {
    if (method === "GET") {
      const own = [...this.checkpoints.values()].filter((c) => c.path.startsWith(`tinker://${run}/`));
      return {
        checkpoints: own.map(({ path, type }) => ({
          checkpoint_id: path.split("/").pop(),
          checkpoint_type: type,
          time: "2026-11-30T19:34:12.778249",
          tinker_path: path,
        })),
      };
    }
    if (!this.checkpoints.delete(`tinker://${run}/${kind}/${name}`)) throw new HttpError(404, "Checkpoint not found");
    return undefined;
  }

  #session(id: string): void {
    if (!this.#sessions.has(id)) throw new HttpError(404, "Session not found");
  }

  #future(result: unknown): { request_id: string } {
    const id = String(++this.#ids);
    this.futures.set(id, result);
    return { request_id: id };
  }

  #retrieve(id: string): unknown {
    if (!this.futures.has(id)) throw new HttpError(404, "Future not found");
    const polls = this.#polls.get(id) ?? 0;
    this.#polls.set(id, polls + 1);
    if (polls < this.slowPolls) return { type: "try_again", request_id: id, queue_state: "active" };
    return this.futures.get(id);
  }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body);
  const type = typeof body === "string" ? "text/plain" : "application/json";
  response.writeHead(status, { "content-type": type, ...headers }).end(text);
}

/** Gives faults in turn to requests on a path, then normal service. */
export function faultsOn(path: string, ...faults: Fault[]): (request: SeenRequest) => Fault | undefined {
  return (request) => (request.path === path ? faults.shift() : undefined);
}
