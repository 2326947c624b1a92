/** The endpoint in the test's process, over a scripted policy whose template writes tools down, or over any chat model. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import type { ChatModel } from "../../../src/chat/answer.ts";
import { fail } from "../../../src/diagnostic.ts";
import { ensureBuiltinModel } from "../../../src/servers/builtin.ts";
import { type EndpointSettings, OpenAiEndpoint } from "../../../src/servers/openai/server.ts";
import { TinkerClient } from "../../../src/tinker/client.ts";
import { loadRenderer } from "../../../src/tokens/load.ts";
import { type PolicyOptions, type PolicyServer, startPolicyServer } from "../../support/policy-server.ts";
import { cacheFolder } from "../embedded/server.ts";

/** In the manner of Qwen: tools in a system message, calls and their answers in tags. */
const TEMPLATE = `{%- if tools %}<|im_start|>system
Tools: {{ tools | tojson }}<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking %}<think>
{% endif %}{% endif %}`;

export async function toolRenderer() {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-tools-"));
  try {
    cpSync(ensureBuiltinModel("builtin:tiny", cacheFolder), folder, { recursive: true });
    writeFileSync(join(folder, "chat_template.jinja"), TEMPLATE);
    return await loadRenderer(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface Endpoint {
  readonly url: string;
  readonly client: OpenAI;
  readonly faults: unknown[];
  close(): Promise<void>;
}

/** Serves one model as `agent`. */
export async function serve(model: ChatModel, settings: Partial<EndpointSettings> = {}): Promise<Endpoint> {
  const faults: unknown[] = [];
  const source = {
    list: async () => [{ id: "agent", created: 1 }],
    use: async <T>(id: string, work: (asked: { model: ChatModel; fingerprint: string }) => Promise<T>) =>
      id === "agent" ? work({ model, fingerprint: "fp_1" }) : fail("RL9009", `There is no run.${id}.`),
  };
  const endpoint = new OpenAiEndpoint(source, {
    host: "127.0.0.1",
    port: 0,
    isLoopback: true,
    bodyLimitBytes: 1_000_000,
    onFault: (error) => faults.push(error),
    ...settings,
  });
  const url = await endpoint.open();
  const client = new OpenAI({ baseURL: url, apiKey: settings.key ?? "none", maxRetries: 0 });
  return { url, client, faults, close: () => endpoint.close() };
}

export interface PolicyEndpoint extends Endpoint {
  readonly policy: PolicyServer;
  /** What was asked, in order; an answer in pieces is asked once. */
  readonly prompts: readonly string[];
}

/** Over a policy whose answers are written in the test; it goes on where the prompt leaves off. */
export async function servePolicy(
  said: (prompt: string) => string,
  { settings, ...options }: Partial<PolicyOptions> & { readonly settings?: Partial<EndpointSettings> } = {},
): Promise<PolicyEndpoint> {
  const prompts: string[] = [];
  const renderer = await toolRenderer();
  const { tokenizer } = renderer;
  const head = tokenizer.encodeText("<|im_start|>assistant\n");
  const thinking = tokenizer.encodeText("<think>\n");
  const policy = await startPolicyServer({ answer: () => "", ...options });
  policy.server.script = (prompt, _sample, { max_tokens: most }) => {
    const start = lastIndexOf(prompt, head) + head.length;
    const from = lastIndexOf(prompt.slice(start), thinking) === 0 ? start + thinking.length : start;
    const asked = tokenizer.decode(prompt.slice(0, start));
    if (prompt.length === from) prompts.push(asked);
    const all = [...tokenizer.encodeText(said(asked)), renderer.stopTokens()[0] as number];
    const tokens = all.slice(prompt.length - from, prompt.length - from + most);
    const isWhole = prompt.length - from + tokens.length === all.length;
    return { tokens, logprobs: tokens.map(() => -0.5), stop: isWhole ? "stop" : "length" };
  };
  const client = new TinkerClient({
    baseUrl: policy.url,
    retry: { deadlineMs: 300, firstDelayMs: 10, maxDelayMs: 20 },
  });
  const session = await client.createSession();
  const sampler = await session.createSampler({ baseModel: "builtin:tiny" });
  const endpoint = await serve({ sampler, renderer, contextLength: 4096, seedsGoOn: false }, settings);
  return {
    ...endpoint,
    policy,
    prompts,
    close: async () => {
      await endpoint.close();
      await client.close();
      await policy.stop();
    },
  };
}

function lastIndexOf(tokens: readonly number[], part: readonly number[]): number {
  for (let at = tokens.length - part.length; at >= 0; at--)
    if (part.every((token, i) => tokens[at + i] === token)) return at;
  return -1;
}
