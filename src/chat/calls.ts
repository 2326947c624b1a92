/**
 * Tool calls in an answer that is still being written: what stands before the first is text and goes on at once, what follows is held
 * until the answer is whole, since only then a call can be read.
 */
import { parseCalls, type ToolCall } from "../tokens/calls.ts";

export interface Heard {
  /** What is said beside the calls, beyond what was handed on before. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

const OPENING = "<tool_call>";
const THOUGHT_END = "</think>";

export class CallListener {
  #text = "";
  #handed = 0;
  /** Where the text stops being thought about; a call in thinking is none. */
  #thoughtTo: number;

  /** `isThinking`: the prompt has begun the thinking already. */
  constructor(isThinking: boolean) {
    this.#thoughtTo = isThinking ? Number.POSITIVE_INFINITY : 0;
  }

  /** What of the text can be handed on now. */
  push(text: string): string {
    this.#text += text;
    return this.#hand(this.#settled());
  }

  /** The rest, once the answer is whole. A call that cannot be read stays text. */
  end(): Heard {
    const from = this.#callsFrom();
    if (from === undefined) return { text: this.#hand(this.#text.length), calls: [] };
    const { calls, said } = parseCalls(this.#text.slice(from), this.#isBare ? "llama" : "auto");
    if (calls.length === 0) return { text: this.#hand(this.#text.length), calls };
    const before = this.#hand(this.#text.slice(0, from).trimEnd().length);
    return { text: said === "" ? before : `${before}${this.#handed > 0 ? "\n" : ""}${said}`, calls };
  }

  #hand(to: number): string {
    const text = this.#text.slice(this.#handed, to);
    this.#handed = Math.max(this.#handed, to);
    return text;
  }

  /** Up to where a call has begun or may begin, and without the white space before it. */
  #settled(): number {
    if (this.#thinks()) return this.#text.length - partial(this.#text, THOUGHT_END);
    const from = this.#callsFrom() ?? this.#text.length - partial(this.#text, OPENING);
    return Math.max(this.#handed, this.#text.slice(0, from).trimEnd().length);
  }

  /** Where the first call begins; undefined where there is none. */
  #callsFrom(): number | undefined {
    if (this.#thinks()) return undefined;
    if (this.#isBare) return this.#start;
    const at = this.#text.indexOf(OPENING, this.#start);
    return at < 0 ? undefined : at;
  }

  /** Llama 3 writes a call as the whole answer: JSON, perhaps after a tag. */
  get #isBare(): boolean {
    const said = this.#text.slice(this.#start).trimStart();
    return said.startsWith("{") || ("<|python_tag|>".startsWith(said.slice(0, 14)) && said !== "");
  }

  get #start(): number {
    return Number.isFinite(this.#thoughtTo) ? this.#thoughtTo : 0;
  }

  #thinks(): boolean {
    if (this.#thoughtTo === 0 && /^\s*<think>/.test(this.#text)) this.#thoughtTo = Number.POSITIVE_INFINITY;
    if (this.#thoughtTo !== Number.POSITIVE_INFINITY) return false;
    const end = this.#text.indexOf(THOUGHT_END);
    if (end < 0) return true;
    this.#thoughtTo = end + THOUGHT_END.length;
    return false;
  }
}

/** How many units at the end of `text` may be the beginning of `word`. */
function partial(text: string, word: string): number {
  for (let length = Math.min(word.length - 1, text.length); length > 0; length--)
    if (text.endsWith(word.slice(0, length))) return length;
  return 0;
}
