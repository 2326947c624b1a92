/** Chat models for tests: one whose answers are written in the test, token by token, over a scripted server. */
import { join } from "node:path";
import type { AnswerToken, AnswerWishes, ChatModel, Piece } from "../../src/chat/answer.ts";
import { answer } from "../../src/chat/answer.ts";
import { ensureBuiltinModel } from "../../src/servers/builtin.ts";
import { TinkerClient } from "../../src/tinker/client.ts";
import { loadRenderer } from "../../src/tokens/load.ts";
import { cacheFolder } from "../servers/embedded/server.ts";
import { FakeServer } from "../tinker/fake-server.ts";

/** A byte each, as builtin:tiny has them. */
export const bytesOf = (text: string): number[] => [...Buffer.from(text)];

export const tinyRenderer = () => loadRenderer(ensureBuiltinModel("builtin:tiny", join(cacheFolder)));

/** Text as builtin:tiny has it, for a scripted server. */
export async function tinyCodec() {
  const { tokenizer } = await tinyRenderer();
  return {
    encode: (text: string) => tokenizer.encodeText(text),
    decode: (tokens: readonly number[]) => tokenizer.decode(tokens),
  };
}

export interface Scripted {
  readonly model: ChatModel;
  readonly server: FakeServer;
  close(): Promise<void>;
}

/** Always says these tokens, whatever it is asked, going on where the prompt leaves off; `promptLength` tokens are the question. */
export async function scriptedModel(said: readonly number[], promptLength: number): Promise<Scripted> {
  const server = new FakeServer();
  server.script = (prompt, _sample, { max_tokens }) => {
    const from = prompt.length - promptLength;
    const tokens = said.slice(from, from + max_tokens);
    return {
      tokens,
      logprobs: tokens.map((_, i) => -(from + i + 1) / 100),
      stop: from + tokens.length === said.length ? "stop" : "length",
    };
  };
  await server.start();
  const client = new TinkerClient({ baseUrl: server.url });
  const session = await client.createSession();
  const sampler = await session.createSampler({ baseModel: "builtin:tiny" });
  const model = { sampler, renderer: await tinyRenderer(), contextLength: undefined, seedsGoOn: false };
  return {
    model,
    server,
    close: async () => {
      await client.close();
      await server.stop();
    },
  };
}

export interface Collected {
  readonly texts: readonly string[];
  readonly tokens: readonly AnswerToken[];
  readonly reason: string;
}

export async function collect(model: ChatModel, prompt: Int32Array, wishes: AnswerWishes): Promise<Collected> {
  const pieces = answer(model, prompt, wishes, new AbortController().signal);
  const all: Piece[] = [];
  for (;;) {
    const { value, done } = await pieces.next();
    if (done)
      return { texts: all.map(({ text }) => text), tokens: all.flatMap(({ tokens }) => tokens), reason: value.reason };
    all.push(value);
  }
}
