/**
 * A scripted policy: a server of the protocol whose answers to prompts are written in a test, in text, and whose faults come on
 * schedule. Everything else (training a toy model, sequence numbers, checkpoints, the traits of a kind of server) is
 * `test/tinker/fake-server.ts`, which is there as `server`.
 *
 *   const policy = await startPolicyServer({
 *     answer: (prompt, { sample }) => (sample === 0 ? "right" : "wrong"),
 *     faults: [{ path: "/asample", at: 2, fault: BUSY }],
 *   });
 */
import { FakeServer, type Fault, faultSchedule, type SeenRequest } from "../tinker/fake-server.ts";

/** How the tokens of prompts and answers become text; bytes, as with builtin:tiny, where a test says nothing. */
export interface TextCodec {
  readonly encode: (text: string) => readonly number[];
  readonly decode: (tokens: readonly number[]) => string;
}

export interface AskedFor {
  /** Within its request, from 0. */
  readonly sample: number;
  /** How many requests for samples have come before, over all prompts. */
  readonly request: number;
  /** How often this very prompt was asked before. */
  readonly repeat: number;
  readonly params: Readonly<Record<string, any>>;
}

/** An answer's text, or with how it ended and what each of its tokens weighs. */
export type Answer =
  | string
  | { readonly text: string; readonly stop?: "stop" | "length"; readonly logprob?: number; readonly endToken?: number };

export interface PolicyOptions {
  readonly answer: (prompt: string, asked: AskedFor) => Answer;
  readonly codec?: TextCodec;
  /** The n-th request on a path (from 1) gets the fault. */
  readonly faults?: readonly { readonly path: string; readonly at: number; readonly fault: Fault }[];
  /** Before it listens: its kind, its flags. */
  readonly prepare?: (server: FakeServer) => void;
}

export interface PolicyServer {
  readonly url: string;
  readonly server: FakeServer;
  /** Prompts in the order of their requests. */
  readonly prompts: readonly string[];
  stop(): Promise<void>;
}

/** Log-probability of each token of an answer that does not say it, in nats. */
const LOGPROB = -0.5;

const BYTES: TextCodec = {
  encode: (text) => [...Buffer.from(text)],
  decode: (tokens) => Buffer.from(tokens).toString(),
};

export const BUSY: Fault = {
  type: "answer",
  status: 429,
  body: { detail: "slow down" },
  headers: { "retry-after-ms": "5" },
};
export const BROKEN: Fault = { type: "answer", status: 500, body: "Internal Server Error" };
export const HANG: Fault = { type: "hang" };
export const DROP_HALF_WAY: Fault = { type: "drop", when: "half-way" };
/** The work is done, and the answer is lost. */
export const DROP_AFTER: Fault = { type: "drop", when: "after" };
/** The future that is asked for is forgotten. */
export const EXPIRE: Fault = { type: "expire", what: "future" };
/** The server has started anew: sessions, models and futures are gone, checkpoints are not. */
export const RESTART: Fault = { type: "expire", what: "all" };

export async function startPolicyServer({
  answer,
  codec = BYTES,
  faults = [],
  prepare,
}: PolicyOptions): Promise<PolicyServer> {
  const server = new FakeServer();
  const prompts: string[] = [];
  const asked = new Map<string, number>();
  server.script = (tokens, sample, params) => {
    const prompt = codec.decode(tokens);
    if (sample === 0) {
      prompts.push(prompt);
      asked.set(prompt, (asked.get(prompt) ?? -1) + 1);
    }
    const place = { sample, request: prompts.length - 1, repeat: asked.get(prompt) ?? 0, params };
    return sampled(answer(prompt, place), codec, params);
  };
  const scheduled = faultSchedule(faults);
  server.fault = (request: SeenRequest) => scheduled(request);
  prepare?.(server);
  await server.start();
  return { url: server.url, server, prompts, stop: () => server.stop() };
}

/** Cut at what was asked for at most, as any server would. */
function sampled(answer: Answer, codec: TextCodec, { max_tokens }: Readonly<Record<string, any>>) {
  const { text, stop = "stop", logprob = LOGPROB, endToken } = typeof answer === "string" ? { text: answer } : answer;
  const all = [...codec.encode(text), ...(endToken === undefined ? [] : [endToken])];
  const tokens = typeof max_tokens === "number" ? all.slice(0, max_tokens) : all;
  const ending: "stop" | "length" = tokens.length < all.length ? "length" : stop;
  return { tokens, logprobs: tokens.map(() => logprob), stop: ending };
}
