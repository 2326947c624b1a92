/** Chat completions as OpenAI writes them: whole, and as chunks. */
import type { Asked, CallDelta, ChoiceEvent, ContentLogprob } from "./choices.ts";
import type { ChatRequest } from "./request.ts";

export interface CompletionHead {
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly fingerprint: string;
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

const usageOf = (prompt: number, completion: number): Usage => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});

const headOf = (object: string, { model }: ChatRequest, { id, created, fingerprint }: CompletionHead) => ({
  id,
  object,
  created,
  model,
  system_fingerprint: fingerprint,
});

/** One body with all choices. */
export async function wholeCompletion(
  asked: Asked,
  request: ChatRequest,
  head: CompletionHead,
  signal: AbortSignal,
): Promise<object> {
  const texts: string[] = Array.from({ length: request.count }, () => "");
  const calls: CallDelta[][] = texts.map(() => []);
  const logprobs: ContentLogprob[][] = texts.map(() => []);
  const reasons: string[] = [];
  let completed = 0;
  for await (const event of asked.events(signal)) {
    const { index } = event;
    if (event.type === "end") {
      reasons[index] = event.reason;
      completed += event.tokens;
    } else {
      texts[index] += event.text;
      calls[index]?.push(...event.calls);
      for (const token of event.logprobs) logprobs[index]?.push(token);
    }
  }
  const choices = texts.map((text, index) => ({
    index,
    message: {
      role: "assistant",
      content: text === "" && calls[index]?.length ? null : text,
      refusal: null,
      ...(calls[index]?.length ? { tool_calls: calls[index].map(({ index: _, ...call }) => call) } : {}),
    },
    logprobs: request.topLogprobs === undefined ? null : { content: logprobs[index], refusal: null },
    finish_reason: reasons[index],
  }));
  return { ...headOf("chat.completion", request, head), choices, usage: usageOf(asked.promptTokens, completed) };
}

/** Bodies of a stream's events, in their order; `[DONE]` is the caller's. */
export async function* chunks(
  asked: Asked,
  request: ChatRequest,
  head: CompletionHead,
  signal: AbortSignal,
): AsyncGenerator<object> {
  const chunk = (choices: readonly object[]) => ({
    ...headOf("chat.completion.chunk", request, head),
    choices,
    ...(request.includesUsage ? { usage: null } : {}),
  });
  const choice = (
    index: number,
    delta: object,
    logprobs: readonly ContentLogprob[] = [],
    reason: string | null = null,
  ) => ({
    index,
    delta,
    logprobs: logprobs.length === 0 ? null : { content: logprobs, refusal: null },
    finish_reason: reason,
  });
  const begun = new Set<number>();
  let completed = 0;
  for await (const event of asked.events(signal)) {
    if (!begun.has(event.index)) yield chunk([choice(event.index, { role: "assistant", content: "", refusal: null })]);
    begun.add(event.index);
    if (event.type === "end") {
      completed += event.tokens;
      yield chunk([choice(event.index, {}, [], event.reason)]);
    } else if (!isEmpty(event)) yield chunk([choice(event.index, deltaOf(event), event.logprobs)]);
  }
  if (request.includesUsage) yield { ...chunk([]), usage: usageOf(asked.promptTokens, completed) };
}

type Delta = Extract<ChoiceEvent, { type: "delta" }>;

const isEmpty = ({ text, calls, logprobs }: Delta): boolean => text === "" && calls.length + logprobs.length === 0;

const deltaOf = ({ text, calls }: Delta) => ({
  ...(text === "" && calls.length > 0 ? {} : { content: text }),
  ...(calls.length > 0 ? { tool_calls: calls } : {}),
});
