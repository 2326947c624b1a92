/**
 * A scripted Tinker server in the test process. It trains a toy model for real, answers prompts from a script, takes JSON
 * and protobuf, deduplicates by `seq_id`, and has a hook through which a test makes it answer 429, hang, drop the
 * connection half-way, forget a future or everything … on schedule. Its traits are those of the kind of server it plays.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PROTOBUF_TYPE } from "../../src/tinker/encoding.ts";
import { readPassBody, writeResult } from "./fake-protobuf.ts";
import { type Reduction, type ToyAdam, ToyModel } from "./toy-model.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, any>;
  readonly text: string;
}

/**
 * What to do instead of, or after, answering. `drop` cuts the connection before the work is done, after it, or in the
 * middle of the answer. `expire` forgets the asked-for future, or everything, and then answers.
 */
export type Fault =
  | {
      readonly type: "answer";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
    }
  | { readonly type: "hang" }
  | { readonly type: "drop"; readonly when: "before" | "after" | "half-way" }
  | { readonly type: "expire"; readonly what: "future" | "all" };

/** One answer to a prompt, as the server's model would sample it. */
export interface ScriptedSample {
  readonly tokens: readonly number[];
  readonly logprobs?: readonly number[];
  readonly stop?: "stop" | "length";
}

/** `sample` counts the samples of one request. */
export type Script = (prompt: readonly number[], sample: number, params: Record<string, any>) => ScriptedSample;

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
  /** Answers prompts. */
  script: Script = (_prompt, sample) => ({ tokens: [sample, 7], logprobs: [-0.5, -0.25] });
  /** Whether bodies and results may be protobuf. */
  takesProtobuf = true;
  /** Flags of client/config; undefined for a server without that call. */
  config: Record<string, unknown> | undefined = { pjwt_auth_enabled: false };
  /** Undoes a content encoding. */
  decompress: ((body: Uint8Array, encoding: string) => Uint8Array) | undefined;
  reduction: Reduction = "sum";
  /** Whether losses with advantages multiply by `weights`; hosted servers do not. */
  readsRlWeights = true;
  /** Plays SkyRL: what it says of itself, what its results hold, which calls it lacks. */
  skyrl: "jax" | "fsdp" | undefined;
  /** Plays the embedded server. */
  isEmbedded = false;
  /** Most samples taken but not yet fetched. */
  mostOpenSamples = 0;
  #openSamples = new Set<string>();
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
    // A connection that is closed for want of use in the moment of its use would be another try, and tries are counted.
    this.#server.keepAliveTimeout = 0;
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
    const coding = request.headers["content-encoding"];
    const sent = Buffer.concat(chunks);
    const raw = coding === undefined ? sent : Buffer.from(this.decompress!(sent, coding));
    const isProtobuf = request.headers["content-type"] === PROTOBUF_TYPE;
    const text = isProtobuf ? raw.toString("hex") : raw.toString();
    const body = isProtobuf ? readPassBody(raw) : text === "" ? {} : (JSON.parse(text) as Record<string, any>);
    const isRoot = !(request.url ?? "").startsWith("/api/v1/");
    const url = (request.url ?? "").replace(/^\/api\/v1/, "").replace(/\?.*/, "");
    const path = isRoot ? `root ${url}` : url;
    const seen: SeenRequest = { method: request.method ?? "", path, headers: request.headers, body, text };
    this.requests.push(seen);
    const fault = this.fault(seen);
    if (fault?.type === "hang") return;
    if (fault?.type === "drop" && fault.when === "before") return void request.socket.destroy();
    if (fault?.type === "answer") return send(response, fault.status, fault.body ?? "", fault.headers);
    if (fault?.type === "expire" && fault.what === "all") this.forget();
    if (fault?.type === "expire" && fault.what === "future") {
      this.futures.delete(body.request_id as string);
      return send(response, 410, { detail: "Promise expired" });
    }
    try {
      if (isProtobuf && !this.takesProtobuf) throw new HttpError(422, "Input should be a valid dictionary");
      const answer = this.#serve(isProtobuf && body.forward_input ? { ...seen, path: "/forward" } : seen);
      if (fault?.type === "drop" && fault.when === "after") return void request.socket.destroy();
      if (fault?.type === "drop") return dropHalfWay(response, answer);
      const accepts = String(request.headers.accept).includes(PROTOBUF_TYPE) && this.takesProtobuf;
      const binary = accepts ? writeResult(answer) : undefined;
      if (binary) response.writeHead(200, { "content-type": PROTOBUF_TYPE }).end(binary);
      else send(response, answer === undefined ? 204 : 200, answer);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      send(response, error.status, { detail: error.message });
    }
  }

  #serve({ method, path, body, text }: SeenRequest): unknown {
    const rest = /^\/training_runs\/([^/]+)\/checkpoints(?:\/(\w+)\/(.+))?$/.exec(path);
    if (rest) return this.#checkpointCall(method, rest[1]!, rest[2], rest[3]);
    switch (path) {
      case "root /":
        if (!this.skyrl) throw new HttpError(404, "Not Found");
        return { name: "Tinker API Mock", endpoints: { training: ["/api/v1/forward_backward"] } };
      case "/healthz":
        return { status: "ok", ...(this.isEmbedded ? { serverRun: this.life } : {}) };
      case "/client/config":
        if (!this.config) throw new HttpError(404, "Not Found");
        return this.config;
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
        return this.#sample(body);
      case "/weights_info": {
        if (!this.checkpoints.has(body.tinker_path)) throw new HttpError(404, "Checkpoint not found");
        return { base_model: "toy", is_lora: true, lora_rank: 4 };
      }
      default:
        return this.#modelCall(path, body, text);
    }
  }

  #sample(body: Record<string, any>): unknown {
    const prompt = body.prompt.chunks[0].tokens as number[];
    const samples = Array.from({ length: body.num_samples as number }, (_, i) =>
      this.script(prompt, i, body.sampling_params),
    );
    // jax leaves the first, undefined entry out.
    const first = this.skyrl === "jax" ? [] : [null];
    const taken = this.#future({
      sequences: samples.map(({ tokens, logprobs, stop = "stop" }) => ({
        stop_reason: stop,
        tokens,
        logprobs: logprobs ?? tokens.map(() => -1),
      })),
      prompt_logprobs: body.prompt_logprobs ? [...first, ...prompt.slice(1).map(() => -1)] : null,
      ...(body.topk_prompt_logprobs ? { topk_prompt_logprobs: [null, ...prompt.slice(1).map((t) => [[t, -1]])] } : {}),
    });
    this.#openSamples.add(taken.request_id);
    this.mostOpenSamples = Math.max(this.mostOpenSamples, this.#openSamples.size);
    return this.skyrl ? taken : { ...taken, sample_sequence_ids: samples.map((_, i) => `seq-${body.seq_id}-${i}`) };
  }

  #modelCall(path: string, body: Record<string, any>, text: string): unknown {
    if (path === "/create_model") {
      this.#session(body.session_id);
      const id = `${body.session_id}:train:${body.model_seq_id}`;
      if (!this.models.has(id)) this.models.set(id, new ToyModel());
      return this.#future({ model_id: id });
    }
    if (path === "/load_weights" && body.model_id === undefined) return this.#loadAsNew(body);
    const model = this.models.get(body.model_id);
    if (!model) throw new HttpError(404, "Model not found");
    if (path === "/get_info") return { model_id: body.model_id, model_data: { model_name: "toy" }, lora_rank: 4 };
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

  /** Creates a model from a checkpoint in one call, which SkyRL does not know. */
  #loadAsNew(body: Record<string, any>): unknown {
    if (this.skyrl) throw new HttpError(422, "model_id: Field required");
    this.#session(body.session_id);
    const stored = this.checkpoints.get(body.path as string);
    if (!stored) throw new HttpError(404, `Checkpoint not found: ${body.path}`);
    const id = `${body.session_id}:train:${body.model_seq_id}`;
    this.models.set(id, stored.model.copy(body.optimizer as boolean));
    return this.#future({ model_id: id, type: "load_weights" });
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
        const { data, loss_fn } = (body.forward_input ?? body.forward_backward_input) as any;
        const toy = data.map((d: any) => ({
          tokens: d.model_input.chunks[0].tokens,
          targets: d.loss_fn_inputs.target_tokens.data,
          weights: this.#weightsOf(d, loss_fn as string),
          logprobs: d.loss_fn_inputs.logprobs?.data,
          advantages: d.loss_fn_inputs.advantages?.data,
        }));
        const outputs = model.pass(toy, path === "/forward_backward", loss_fn, this.reduction);
        const tensor = (o: number[]) => ({ data: o, dtype: "float32", shape: [o.length] });
        return {
          loss_fn_output_type: "scalar",
          loss_fn_outputs: outputs.map((o) => ({
            logprobs: tensor(o),
            ...(this.skyrl === "jax" ? { elementwise_loss: tensor(o.map((l) => -l)) } : {}),
          })),
          metrics: this.skyrl === "jax" ? {} : { "num_tokens:sum": outputs.flat().length },
        };
      }
      case "/optim_step":
        return { metrics: { "skyrl.ai/grad_norm": model.step(body.adam_params as ToyAdam) } };
      case "/save_weights":
      case "/save_weights_for_sampler": {
        if (body.path === undefined) return { path: null, sampling_session_id: `sampling-${++this.#ids}` };
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

  #weightsOf(datum: any, loss: string): number[] {
    const isRead = loss === "cross_entropy" || this.readsRlWeights;
    const ones = datum.model_input.chunks[0].tokens.map(() => 1);
    return isRead ? (datum.loss_fn_inputs.weights?.data ?? ones) : ones;
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
    if (polls >= this.slowPolls) this.#openSamples.delete(id);
    if (polls < this.slowPolls) return { type: "try_again", request_id: id, queue_state: "active" };
    return this.futures.get(id);
  }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body);
  const type = typeof body === "string" ? "text/plain" : "application/json";
  response.writeHead(status, { "content-type": type, ...headers }).end(text);
}

/** The head of the answer and half of its body, and then nothing. */
function dropHalfWay(response: ServerResponse, body: unknown): void {
  const text = JSON.stringify(body ?? {});
  response.writeHead(200, { "content-type": "application/json", "content-length": text.length });
  response.write(text.slice(0, text.length / 2), () => response.socket?.destroy());
}

/** Gives the n-th request on a path (from 1) the fault written for it. */
export function faultSchedule(
  faults: readonly { readonly path: string; readonly at: number; readonly fault: Fault }[],
): (request: SeenRequest) => Fault | undefined {
  const seen = new Map<string, number>();
  return ({ path }) => {
    const count = (seen.get(path) ?? 0) + 1;
    seen.set(path, count);
    return faults.find((f) => f.path === path && f.at === count)?.fault;
  };
}

/** Gives faults in turn to requests on a path, then normal service. */
export function faultsOn(path: string, ...faults: Fault[]): (request: SeenRequest) => Fault | undefined {
  return (request) => (request.path === path ? faults.shift() : undefined);
}
