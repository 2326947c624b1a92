/**
 * Tool calls in what a model said, in the form that its chat template teaches it. Parsed strictly: what is opened and not closed,
 * or is no JSON object, is a fault that the model is told of, never a guess.
 */
import { messageOf } from "../diagnostic.ts";

export type ToolFormat = "auto" | "hermes" | "qwen_xml" | "llama" | "bash_block";

export interface ToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface ParsedAnswer {
  /** In the order in which they were written. */
  readonly calls: readonly ToolCall[];
  /** One sentence each. */
  readonly faults: readonly string[];
  /** Whether what answers them is a message of the tool; otherwise it is the user's. */
  readonly isToolForm: boolean;
  /** What is said beside the calls; a call that is malformed stays in it. */
  readonly said: string;
}

/** `auto`: tags where there are some, then Llama's bare JSON, then a block of bash at the end. */
export function parseCalls(text: string, format: ToolFormat): ParsedAnswer {
  const { said } = partThinking(text);
  if (format === "llama") return llama(said) ?? { calls: [], faults: [], isToolForm: true, said };
  if (format === "bash_block") return bashBlock(said);
  if (format !== "auto" || said.includes("<tool_call>")) return tagged(said, format);
  return llama(said) ?? bashBlock(said);
}

/** What is thought is not said. Thinking that does not end is all there is from there on; its beginning may stand in the prompt. */
export function partThinking(text: string): { readonly thought: string; readonly said: string } {
  const end = text.indexOf("</think>");
  const [thought, rest] = end < 0 ? ["", text] : [text.slice(0, end), text.slice(end + "</think>".length)];
  const open = rest.indexOf("<think>");
  const said = open < 0 ? rest : rest.slice(0, open);
  const more = open < 0 ? "" : rest.slice(open);
  return { thought: `${thought}${more}`.replaceAll(/<\/?think>/g, "").trim(), said };
}

function tagged(text: string, format: ToolFormat): ParsedAnswer {
  const calls: ToolCall[] = [];
  const faults: string[] = [];
  const beside: string[] = [];
  let rest = text;
  for (let at = rest.indexOf("<tool_call>"); at >= 0; at = rest.indexOf("<tool_call>")) {
    const body = rest.slice(at + "<tool_call>".length);
    const end = body.indexOf("</tool_call>");
    beside.push(rest.slice(0, at));
    if (end < 0) {
      beside.push(rest.slice(at));
      rest = "";
      faults.push("A <tool_call> is not closed by </tool_call>.");
      break;
    }
    const inner = body.slice(0, end).trim();
    const isXml = inner.startsWith("<function=");
    const isOther = (isXml && format === "hermes") || (!isXml && format === "qwen_xml");
    const read = isOther
      ? `A call has another form than this model's (${format}).`
      : isXml
        ? xmlCall(inner)
        : jsonCall(inner);
    if (typeof read === "string") {
      faults.push(read);
      beside.push(rest.slice(at, at + "<tool_call>".length + end + "</tool_call>".length));
    } else calls.push(read);
    rest = body.slice(end + "</tool_call>".length);
  }
  return { calls, faults, isToolForm: true, said: [...beside, rest].join("").trim() };
}

/** `{"name": …, "arguments": {…}}`; the fault otherwise. */
function jsonCall(text: string, key: "arguments" | "parameters" = "arguments"): ToolCall | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `A tool call is no JSON: ${messageOf(error)}.`;
  }
  if (!isRecord(value) || typeof value.name !== "string") return 'A tool call must be a JSON object with a "name".';
  const given = value[key];
  if (!isRecord(given)) return `The "${key}" of the call of ${value.name} must be a JSON object.`;
  return { name: value.name, arguments: given };
}

/** `<function=NAME><parameter=P>value</parameter></function>`; a value is JSON where it parses, else text. */
function xmlCall(text: string): ToolCall | string {
  const [, name, body] = /^<function=([^>\s]+)>([\s\S]*)<\/function>$/.exec(text) ?? [];
  if (name === undefined || body === undefined) return "A <function=…> is not closed by </function>.";
  const given: Record<string, unknown> = {};
  for (let rest = body.trim(); rest !== ""; ) {
    const [opening, key] = /^<parameter=([^>\s]+)>/.exec(rest) ?? [];
    const end = rest.indexOf("</parameter>");
    if (opening === undefined || key === undefined || end < 0)
      return `In the call of ${name} stands something that is no <parameter=…>…</parameter>.`;
    const value = rest.slice(opening.length, end).replace(/^\n/, "").replace(/\n$/, "");
    given[key] = key === "command" ? value : jsonOr(value);
    rest = rest.slice(end + "</parameter>".length).trimStart();
  }
  return { name, arguments: given };
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Llama 3: the whole answer is one JSON object, perhaps after `<|python_tag|>`. Undefined where it is not meant to be one. */
function llama(text: string): ParsedAnswer | undefined {
  const said = text
    .trim()
    .replace(/^<\|python_tag\|>/, "")
    .trim();
  if (!/^\{\s*"(?:name|type|function|parameters)"/.test(said)) return undefined;
  const read = jsonCall(said, "parameters");
  return typeof read === "string"
    ? { calls: [], faults: [read], isToolForm: true, said: text }
    : { calls: [read], faults: [], isToolForm: true, said: "" };
}

const OPENINGS: ReadonlySet<string> = new Set(["```bash", "```sh", "```shell"]);
const FENCE = "```";

/**
 * One block of bash, with nothing behind it: an answer that only shows a command goes on after it. Line by line, since models can say the
 * same for very long, and a pattern that tries again from each of them would not end.
 */
function bashBlock(text: string): ParsedAnswer {
  const lines = text.split("\n").map((line) => ({ line, mark: line.trimEnd() }));
  const none: ParsedAnswer = { calls: [], faults: [], isToolForm: false, said: text };
  const openings = lines.flatMap(({ mark }, at) => (OPENINGS.has(mark) ? [at] : []));
  const [opening] = openings;
  if (opening === undefined) return none;
  const faulty = (fault: string): ParsedAnswer => ({ ...none, faults: [fault] });
  if (openings.length > 1) return faulty("There is more than one block of bash. Write one command at a time.");
  const closing = lines.findIndex(({ mark }, at) => at > opening && mark === FENCE);
  if (closing < 0) return faulty("A block of bash is not closed by ```.");
  const last = lines.findLastIndex(({ mark }) => mark !== "");
  if (last > closing) {
    if (lines[last]?.mark !== FENCE) return none;
    return faulty(
      "Behind the block of bash stands another ```. Nothing may follow it, and no line in it may be ``` alone.",
    );
  }
  const inside = lines.slice(opening + 1, closing).map(({ line }) => `${line}\n`);
  const before = lines.slice(0, opening).map(({ line }) => line);
  const said = before.join("\n").trim();
  return { ...none, calls: [{ name: "bash", arguments: { command: inside.join("") } }], said };
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
