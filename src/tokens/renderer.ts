/**
 * Conversations to tokens. `encode` is the plain direction: a conversation as the model would see it. `render` makes
 * training examples from it, with a loss weight for each token.
 *
 * Templates may rewrite history (Qwen3 drops the thinking of earlier turns), so a conversation is not simply one
 * sequence in which some parts are trained. Each trained turn is rendered twice, as the prompt that asks for it and
 * with it appended; the difference is what the model must learn to say after exactly that prompt. While a prompt
 * extends the tokens collected so far, turns share one datum; where it does not, a new datum begins.
 */
import { fail, messageOf } from "../diagnostic.ts";
import type { TrainOn } from "../run-record.ts";
import type { Conversation, Message, TokenDatum } from "./conversation.ts";
import { DatumBuilder } from "./datum.ts";
import { type MarkedText, Shield } from "./shield.ts";
import { type ChatTemplate, TEMPLATE_DATE } from "./template.ts";
import type { Tokenizer } from "./tokenizer.ts";

export interface RenderOptions {
  readonly train_on: TrainOn;
  /** Datums longer than this many tokens are cut at the right. */
  readonly max_length?: number;
  readonly template_kwargs?: Readonly<Record<string, unknown>>;
  /** Instead of the conversation's own tools. */
  readonly tools?: readonly unknown[];
  /** Adds the prompt for the next assistant turn as an untrained end (to look at, not to train on). */
  readonly add_generation_prompt?: boolean;
  /** What templates see as today; fixed by default, so that equal rows give equal tokens on any day. */
  readonly now?: Date;
}

export interface Rendering {
  /** Those with at least one trained token. */
  readonly datums: readonly TokenDatum[];
  /** Datums that `max_length` cut, whether or not they still train anything. */
  readonly truncated: number;
  /** Turns whose prompt at inference is not a prefix of how the template writes them down afterwards. */
  readonly inexactTurns: number;
  /** Turns that could not be trained because the template refuses the prompt before them. */
  readonly skippedTurns: number;
}

export type EncodeOptions = Pick<RenderOptions, "template_kwargs" | "tools" | "add_generation_prompt" | "now">;

/** What the policy said, as tokens and as text without the token that ended it. */
export interface SampledAnswer {
  /** [P] what it was asked with. */
  readonly prompt: Int32Array;
  /** [T] */
  readonly tokens: Int32Array;
  readonly text: string;
}

interface RendererParts {
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  /** Used instead where tools are given. */
  readonly toolTemplate?: ChatTemplate;
  /** `bos_token` and the like. */
  readonly variables: Readonly<Record<string, string>>;
  /** Ids at which the model's makers say that generation ends. */
  readonly stops?: readonly number[];
}

const PROBE: readonly Message[] = [
  { role: "user", content: "a" },
  { role: "assistant", content: "b" },
  { role: "user", content: "c" },
];
const SYSTEM: Message = { role: "system", content: "s" };

export class Renderer {
  readonly tokenizer: Tokenizer;
  readonly #parts: RendererParts;
  #stopTokens: readonly number[] | undefined;

  constructor(parts: RendererParts) {
    this.tokenizer = parts.tokenizer;
    this.#parts = parts;
    this.tokenizer.protect(this.#turnMarkers());
  }

  /** Ids at which generation of a turn ends: end of sequence, what the model's makers list, what closes a turn here. */
  stopTokens(): readonly number[] {
    this.#stopTokens ??= this.#findStopTokens();
    return this.#stopTokens;
  }

  #findStopTokens(): readonly number[] {
    const stops = new Set<number>(this.#parts.stops);
    const eos = this.#parts.variables.eos_token;
    if (eos !== undefined) stops.add(this.tokenizer.idOf(eos) ?? -1);
    const turn = this.render({ messages: PROBE.slice(0, 2) }, { train_on: "last_assistant" }).datums[0];
    const last = turn?.tokens.at(-1);
    if (last !== undefined && this.tokenizer.isProtected(last)) stops.add(last);
    stops.delete(-1);
    return [...stops];
  }

  /** The conversation's tokens in one piece, as `transformers` would give them. Fails with RL6103. */
  encode(conversation: Conversation, options: EncodeOptions = {}): Int32Array {
    const view = this.#view(conversation, options);
    return Int32Array.from(view.tokens(conversation.messages.length, options.add_generation_prompt ?? false));
  }

  /** Training examples of a conversation. Fails with RL6103 where the template refuses it. */
  render(conversation: Conversation, options: RenderOptions): Rendering {
    const view = this.#view(conversation, options);
    const build = options.train_on === "all" ? allTokens : assistantTurns;
    const { builders, inexactTurns, skippedTurns } = build(view, conversation.messages, options);
    if (options.add_generation_prompt) addPrompt(view, conversation.messages.length, builders);
    const limit = options.max_length ?? Number.POSITIVE_INFINITY;
    return {
      datums: builders.map((b) => b.finish(limit)).filter((d) => options.add_generation_prompt || isTrained(d)),
      truncated: builders.filter((b) => b.length > limit).length,
      inexactTurns,
      skippedTurns,
    };
  }

  /**
   * The prompt for the answer after `replies`, which are said to an answer that was sampled. While the template writes the
   * conversation down as it was said, that is the tokens so far, unchanged, and what the template puts behind them; where it
   * rewrites what was said before (thinking of earlier turns, white space), it is the conversation rendered anew.
   */
  extend(before: Conversation, answer: SampledAnswer, replies: readonly Message[], options: EncodeOptions): Int32Array {
    const said: Message = { role: "assistant", content: answer.text };
    const count = before.messages.length;
    const view = this.#view({ ...before, messages: [...before.messages, said, ...replies] }, options);
    const whole = view.raw(count + 1 + replies.length, true);
    const start = view.raw(count, true) + view.cover(answer.text);
    if (!whole.startsWith(start)) return Int32Array.from(view.encodeRaw(whole));
    const rest = view.encodeRaw(whole.slice(start.length));
    // The token that ended the answer stands where the template closes it, also where it is another of the model's ends: Llama ends a
    // call with <|eom_id|>, and its template every turn with <|eot_id|>.
    const ends = this.stopTokens();
    const last = answer.tokens.at(-1) as number;
    const isClosed = last === rest[0] || (ends.includes(last) && ends.includes(rest[0] as number));
    return Int32Array.from([...answer.prompt, ...answer.tokens, ...(isClosed ? rest.slice(1) : rest)]);
  }

  #view({ messages, tools }: Conversation, options: EncodeOptions): View {
    const filled = messages.map(({ weight: _, ...m }) => (m.content == null ? { ...m, content: "" } : m));
    const given = options.tools ?? tools ?? null;
    const template = given?.length && this.#parts.toolTemplate ? this.#parts.toolTemplate : this.#parts.template;
    const spellings = this.tokenizer.protectedTokens.map((t) => t.content);
    const shield = new Shield(spellings, filled, given, template.source, options.template_kwargs);
    const covered = shield.cover(filled);
    const shared = {
      documents: null,
      ...this.#parts.variables,
      tools: shield.cover(given),
      ...options.template_kwargs,
    };
    const write = (count: number, prompt: boolean) =>
      template.render(
        { ...shared, messages: covered.slice(0, count), add_generation_prompt: prompt },
        options.now ?? TEMPLATE_DATE,
      );
    return new View(this.tokenizer, shield, write);
  }

  /**
   * Added tokens that the template writes around turns, special or not: those of which there are more when turns are
   * added. Tokens that it only mentions in a preamble (as `<think>` in a default system text) are not markers.
   */
  #turnMarkers(): number[] {
    const one = PROBE.slice(0, 1);
    const [base, long, system] = [one, PROBE, [SYSTEM, ...one]].map((messages) => this.#countAdded(messages));
    return [...(long ?? []), ...(system ?? [])].filter(([id, n]) => n > (base?.get(id) ?? 0)).map(([id]) => id);
  }

  /** How often each added token occurs; empty where the template refuses the messages. */
  #countAdded(messages: readonly Message[]): Map<number, number> {
    const added = new Set(this.tokenizer.addedTokens.map((t) => t.id));
    const counts = new Map<number, number>();
    let ids: Int32Array;
    try {
      ids = this.encode({ messages });
    } catch {
      return counts;
    }
    for (const id of ids) if (added.has(id)) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  }
}

/** A conversation's prefixes as text and tokens. */
class View {
  readonly #tokenizer: Tokenizer;
  readonly #shield: Shield;
  readonly #write: (count: number, prompt: boolean) => string;
  constructor(tokenizer: Tokenizer, shield: Shield, write: (count: number, prompt: boolean) => string) {
    this.#tokenizer = tokenizer;
    this.#shield = shield;
    this.#write = write;
  }
  /** The first `count` messages as the template writes them, sentinels included; with `prompt`, asking for one more. */
  raw(count: number, prompt: boolean): string {
    try {
      return this.#write(count, prompt);
    } catch (error) {
      return fail("RL6103", `The chat template refuses the conversation: ${messageOf(error)}.`, { cause: error });
    }
  }
  /** A text as it stands within raw text. */
  cover(text: string): string {
    return this.#shield.cover(text);
  }
  encodeRaw(raw: string): number[] {
    const marked: MarkedText = this.#shield.uncover(raw);
    return this.#tokenizer.encode(marked);
  }
  tokens(count: number, prompt: boolean): number[] {
    return this.encodeRaw(this.raw(count, prompt));
  }
  /** How many of a turn's tokens are the turn: up to its last protected token, if only white space follows that. */
  turnLength(completion: readonly number[]): number {
    let end = completion.length;
    while (end > 0 && !this.#tokenizer.isProtected(completion[end - 1] as number)) end -= 1;
    const rest = this.#tokenizer.decode(completion.slice(end));
    return end > 0 && rest.trim() === "" ? end : completion.length;
  }
}

interface Built {
  readonly builders: DatumBuilder[];
  readonly inexactTurns: number;
  readonly skippedTurns: number;
}

const isTrained = (datum: TokenDatum) => datum.weights.some((w) => w !== 0);

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const limit = Math.min(a.length, b.length);
  let n = 0;
  while (n < limit && a[n] === b[n]) n += 1;
  return n;
}

function assistantTurns(view: View, messages: readonly Message[], options: RenderOptions): Built {
  let turns = [...messages.keys()].filter((i) => messages[i]?.role === "assistant");
  if (options.train_on === "last_assistant") turns = turns.slice(-1);
  const builders: DatumBuilder[] = [];
  let inexactTurns = 0;
  let skippedTurns = 0;
  for (const turn of turns) {
    const weight = messages[turn]?.weight ?? 1;
    if (weight === 0) continue;
    const split = splitTurn(view, turn);
    if (!split) {
      skippedTurns += 1;
      continue;
    }
    if (!split.isExact) inexactTurns += 1;
    let open = builders.at(-1);
    if (!open?.extendTo(split.context)) {
      open = DatumBuilder.from(split.context);
      builders.push(open);
    }
    open.push(split.completion.slice(0, view.turnLength(split.completion)), weight);
  }
  // A template that refuses every prompt refuses the conversation; say so with its own words.
  if (builders.length === 0 || skippedTurns > 0) view.raw(messages.length, false);
  return { builders, inexactTurns, skippedTurns };
}

/** The tokens that ask for message `turn`, and those of the turn itself; undefined where the template will not ask. */
function splitTurn(view: View, turn: number) {
  const fullRaw = view.raw(turn + 1, false);
  let promptRaw: string;
  try {
    promptRaw = view.raw(turn, true);
  } catch {
    return undefined;
  }
  const full = view.encodeRaw(fullRaw);
  const prompt = view.encodeRaw(promptRaw);
  const shared = commonPrefix(full, prompt);
  if (shared === prompt.length) return { context: prompt, completion: full.slice(shared), isExact: true };
  // The turn continues the prompt's text but its first token swallows the prompt's end: keep the prompt as it is asked.
  if (fullRaw.startsWith(promptRaw)) {
    return { context: prompt, completion: view.encodeRaw(fullRaw.slice(promptRaw.length)), isExact: true };
  }
  return { context: full.slice(0, shared), completion: full.slice(shared), isExact: false };
}

function allTokens(view: View, messages: readonly Message[]): Built {
  const tokens = view.tokens(messages.length, false);
  const builder = DatumBuilder.from([]);
  builder.push(tokens, 1);
  messages.forEach((message, i) => {
    if (message.weight === undefined || message.weight === 1) return;
    const start = commonPrefix(tokens, i === 0 ? [] : view.tokens(i, false));
    builder.reweigh(start, commonPrefix(tokens, view.tokens(i + 1, false)), message.weight);
  });
  return { builders: [builder], inexactTurns: 0, skippedTurns: 0 };
}

function addPrompt(view: View, count: number, builders: DatumBuilder[]): void {
  const prompt = view.tokens(count, true);
  if (!builders.at(-1)?.extendTo(prompt)) builders.push(DatumBuilder.from(prompt));
}
