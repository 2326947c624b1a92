/**
 * Chat templates: Jinja sources as Hugging Face models carry them, rendered as `transformers` renders them. The library
 * does the work; two things are put right here: the `strip` methods and the `trim` filter are rewritten in the parsed
 * tree into calls of our own (python.ts), and today's date is not read from the clock but passed in, because a training
 * row must give the same tokens tomorrow.
 */
import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { fail, messageOf } from "../diagnostic.ts";
import { pythonStrftime, pythonStrip } from "./python.ts";

/** What templates see as today where the caller does not say: the date that Llama's own template falls back to. */
export const TEMPLATE_DATE = new Date("2024-07-26T00:00:00Z");

type Program = ReturnType<typeof parse>;
interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

const STRIP_SIDES = { strip: "both", lstrip: "left", rstrip: "right" } as const;
/** Names that no template can collide with: Jinja identifiers have no `:`. */
const stripName = (method: string) => `rlcli:${method}`;
const identifier = (value: string): Node => ({ type: "Identifier", value });

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

/** `x.strip(a)` → `rlcli:strip(x, a)`; `x | trim` → `rlcli:strip(x)`. Anything else is returned as it is. */
function withOwnStrip(node: Node): Node {
  if (node.type === "FilterExpression") {
    const filter = node.filter as Node;
    const trims = filter.type === "Identifier" && filter.value === "trim";
    return trims ? { type: "CallExpression", callee: identifier(stripName("strip")), args: [node.operand] } : node;
  }
  if (node.type !== "CallExpression") return node;
  const callee = node.callee as Node;
  if (callee.type !== "MemberExpression" || callee.computed === true) return node;
  const method = (callee.property as Node).value;
  if (typeof method !== "string" || !(method in STRIP_SIDES)) return node;
  const args = [callee.object, ...(node.args as unknown[])];
  return { type: "CallExpression", callee: identifier(stripName(method)), args };
}

/** Applies `change` to every node, children first. */
function mapTree(value: unknown, change: (node: Node) => Node): unknown {
  if (Array.isArray(value)) return value.map((item) => mapTree(item, change));
  // Object literals of the template hold their entries in a Map whose keys are nodes too.
  if (value instanceof Map) {
    return new Map([...value].map(([k, v]) => [mapTree(k, change), mapTree(v, change)]));
  }
  if (!isNode(value)) return value;
  const copy = Object.create(Object.getPrototypeOf(value), Object.getOwnPropertyDescriptors(value)) as Node;
  const fields = copy as unknown as Record<string, unknown>;
  for (const key of Object.keys(copy)) fields[key] = mapTree(copy[key], change);
  return change(copy);
}

function newEnvironment(now: Date): Environment {
  const env = new Environment();
  for (const [name, value] of [
    ["true", true],
    ["false", false],
    ["none", null],
  ] as const) {
    env.set(name, value);
    env.set(`${name[0]?.toUpperCase()}${name.slice(1)}`, value);
  }
  env.set("raise_exception", (message: string) => {
    throw new Error(message);
  });
  env.set("range", (start: number, stop?: number, step = 1) => {
    const [from, to] = stop === undefined ? [0, start] : [start, stop];
    return Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, i) => from + i * step);
  });
  env.set("strftime_now", (format: string) => pythonStrftime(now, format));
  for (const [method, side] of Object.entries(STRIP_SIDES)) {
    env.set(stripName(method), (text: unknown, chars?: string | null) => {
      if (typeof text !== "string") throw new Error(`${method}() needs a string`);
      return pythonStrip(text, chars, side);
    });
  }
  return env;
}

/** `{% generation %}` only marks the assistant's text for other tools' masks; the library does not know it. */
function withoutGenerationTags(source: string): string {
  return source.replace(
    /(\{%[-+]?\s*)(end)?generation(\s*[-+]?%\})/g,
    (_, open: string, end: string | undefined, close: string) =>
      end ? `${open}endif${close}` : `${open}if true${close}`,
  );
}

/** A compiled chat template. */
export class ChatTemplate {
  readonly source: string;
  readonly #program: Program;
  /** `file` is where the template came from, for the diagnostic of one that does not parse. */
  constructor(source: string, file: string) {
    this.source = source;
    try {
      const parsed = parse(tokenize(withoutGenerationTags(source), { lstrip_blocks: true, trim_blocks: true }));
      this.#program = mapTree(parsed, withOwnStrip) as Program;
    } catch (error) {
      fail("RL6102", `The chat template in ${file} does not parse: ${messageOf(error)}.`, { cause: error });
    }
  }
  /** The text for `variables`; throws what the template raises. */
  render(variables: Readonly<Record<string, unknown>>, now: Date = TEMPLATE_DATE): string {
    const env = newEnvironment(now);
    for (const [name, value] of Object.entries(variables)) env.set(name, value);
    return (new Interpreter(env).run(this.#program) as { value: string }).value;
  }
}
