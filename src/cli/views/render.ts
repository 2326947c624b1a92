/** Rendered conversations for a reader: text coloured by what is trained, or with marks where there is no colour. */
import type { TokenDatum } from "../../tokens/conversation.ts";
import type { Tokenizer } from "../../tokens/tokenizer.ts";
import type { Style } from "./style.ts";

/** Around trained text where there is no colour. */
const MARKS = ["⟦", "⟧"] as const;

interface Span {
  readonly weight: number;
  /** A real special token, as against text that only looks like one. */
  readonly isSpecial: boolean;
  readonly text: string;
}

/** Runs of tokens of one kind and weight, decoded together so that characters of several tokens are whole. */
function spansOf({ tokens, weights }: TokenDatum, tokenizer: Tokenizer): Span[] {
  const spans: Span[] = [];
  const isSpecial = (i: number): boolean => tokenizer.isProtected(tokens[i] as number);
  for (let start = 0; start < tokens.length; ) {
    let end = start + 1;
    while (end < tokens.length && weights[end] === weights[start] && isSpecial(end) === isSpecial(start)) end += 1;
    const text = tokenizer.decode(tokens.slice(start, end));
    spans.push({ weight: weights[start] as number, isSpecial: isSpecial(start), text });
    start = end;
  }
  return spans;
}

/** Neighbours of one weight as one: where there is no colour, special tokens look like the text around them. */
function withoutSpecials(spans: readonly Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of spans) {
    const last = merged.at(-1);
    if (last?.weight === span.weight) merged[merged.length - 1] = { ...last, text: last.text + span.text };
    else merged.push(span);
  }
  return merged;
}

/** Control characters of a user's text must not reach the terminal; line breaks and tabs stay. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced.
const visible = (text: string): string => text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, "\uFFFD");

function paintSpan({ weight, isSpecial, text }: Span, style: Style): string {
  const shown = visible(text);
  if (!style.isEnabled) return weight === 0 ? shown : `${MARKS[0]}${shown}${MARKS[1]}`;
  const color = weight === 0 ? style.dim : weight === 1 ? style.green : style.yellow;
  const paint = isSpecial ? (part: string) => style.bold(color(part)) : color;
  // Line by line: a colour that runs over line ends bleeds into pagers.
  return shown.split("\n").map(paint).join("\n");
}

/** All datums of a conversation, each under a line that says what it is. */
export function renderDatums(datums: readonly TokenDatum[], tokenizer: Tokenizer, style: Style): string {
  const parts = datums.map((datum, i) => {
    const trained = datum.weights.reduce((n, w) => n + (w === 0 ? 0 : 1), 0);
    const which = datums.length > 1 ? `datum ${i + 1} of ${datums.length}: ` : "";
    const title = style.bold(`${which}${datum.tokens.length} tokens, ${trained} trained`);
    const spans = spansOf(datum, tokenizer);
    const text = (style.isEnabled ? spans : withoutSpecials(spans)).map((span) => paintSpan(span, style)).join("");
    return `${title}\n${text}${text.endsWith("\n") ? "" : "\n"}`;
  });
  return parts.length > 0 ? parts.join("\n") : `${style.yellow("Nothing of this conversation is trained on.")}\n`;
}

/** One line of JSON a datum: ids and loss weights, of equal length. */
export function datumsJson(datums: readonly TokenDatum[]): string {
  const lines = datums.map(({ tokens, weights }) => ({
    formatVersion: 1,
    tokens: Array.from(tokens),
    weights: Array.from(weights),
  }));
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}
