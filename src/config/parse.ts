/**
 * Step 1 of loading: YAML text to a tree with positions. Reports what YAML itself forbids and what a spec does not want
 * of it (duplicate keys, keys that are not text, unknown tags). Linear in the size of the text: duplicate keys are found
 * here with a map, since the YAML library's own check compares each key with all others.
 */
import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  Parser,
  parseDocument,
  Scalar,
  type YAMLError,
  type YAMLMap,
} from "yaml";
import type { DiagnosticCode } from "../codes.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { didYouMean } from "../suggest.ts";
import type { Source, Span } from "./source.ts";
import type { Entry, MapTree, ScalarTree, Tree } from "./tree.ts";

const MAX_DEPTH = 64;
/** Values that aliases may stand for in a file beyond those written out. */
const MAX_ALIASED = 100_000;
/** Syntax faults reported of one file: the later ones are mostly consequences. */
const MAX_SYNTAX_FAULTS = 20;

export interface Parsed {
  /** Absent where the text is not YAML or is empty. */
  readonly tree?: Tree;
  readonly diagnostics: readonly Diagnostic[];
}

export function parseYaml(source: Source): Parsed {
  const bracket = endlessBrackets(source.text);
  if (bracket !== undefined)
    return { diagnostics: [source.diagnostic("RL1009", TOO_DEEP, { start: bracket, end: bracket + 1 })] };
  const document = parseQuickly(source.text);
  if (document.errors.length > 0) return { diagnostics: syntaxFaults(source, document.errors) };
  const converter = new Converter(source);
  for (const warning of document.warnings) converter.report(...warningWords(source, warning));
  if (document.contents === null || isEmpty(document.contents)) {
    converter.report("RL1007", `\`${source.file}\` holds nothing. ${EMPTY_HINT}`, { start: 0, end: 0 });
    return { diagnostics: converter.diagnostics };
  }
  const tree = converter.convert(document.contents, 0);
  return { tree, diagnostics: converter.diagnostics };
}

const EMPTY_HINT = "A spec begins with `rlcli: 1` and `project: NAME`; `rlcli init` writes one.";
const TOO_DEEP = `Maps and lists are nested more than ${MAX_DEPTH} deep here. Is the indentation right, or a bracket one too many?`;

function isEmpty(node: Node): boolean {
  return isScalar(node) && node.value === null && (node.source === "" || node.source === undefined);
}

function parseQuickly(text: string): Document {
  // A file of faults makes the library create as many errors, whose stack traces no one reads but everyone waits for.
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return parseDocument(text, { schema: "core", uniqueKeys: false, prettyErrors: false, logLevel: "error" });
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** Opening brackets with nothing between them that cannot be meant: the library would take seconds to find that out. */
const MOST_BRACKETS = 1_000;

function endlessBrackets(text: string): number | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > MOST_BRACKETS) return at;
    } else if (code > 0x20) depth = 0;
  }
  return undefined;
}

/** Where to point when nesting ended the parser: the line with the most brackets or the deepest indentation. */
function deepestLine(source: Source): Span {
  let best: Span = { start: 0, end: 0 };
  let most = -1;
  for (let start = 0; start < source.text.length; ) {
    const found = source.text.indexOf("\n", start);
    const end = found < 0 ? source.text.length : found;
    const line = source.text.slice(start, end);
    const depth = line.length - line.trimStart().length + (line.match(/[[{]|- /g)?.length ?? 0);
    if (depth > most) {
      most = depth;
      best = { start: start + (line.length - line.trimStart().length), end };
    }
    start = end + 1;
  }
  return best;
}

/** One fault a line: a line that is not YAML gives several errors for one mistake. */
function syntaxFaults(source: Source, errors: readonly YAMLError[]): Diagnostic[] {
  const faults: Diagnostic[] = [];
  const lines = new Set<number>();
  for (const error of errors) {
    const span = { start: error.pos[0], end: Math.max(error.pos[1], error.pos[0] + 1) };
    const line = source.position(span.start).line;
    if (lines.has(line)) continue;
    lines.add(line);
    faults.push(source.diagnostic(...syntaxWords(source, error, span)));
    if (faults.length === MAX_SYNTAX_FAULTS) break;
  }
  return faults;
}

type Report = [code: DiagnosticCode, detail: string, span: Span];

function syntaxWords(source: Source, error: YAMLError, span: Span): Report {
  const line = source.line(source.position(span.start).line);
  if (error.code === "TAB_AS_INDENT" || (/^\s*\t/.test(line) && error.code !== "MULTIPLE_DOCS"))
    return [
      "RL1004",
      "This line is indented with a tab. YAML indents with spaces: replace it by two.",
      tabSpan(source, span),
    ];
  // The library composes recursively; nesting beyond any use ends its stack.
  if (error.code === "RESOURCE_EXHAUSTION") return ["RL1009", TOO_DEEP, deepestLine(source)];
  if (error.code === "MULTIPLE_DOCS")
    return [
      "RL1006",
      "A second YAML document begins here. Put it into a file of its own and pass both with -f, or remove the `---`.",
      { start: span.start, end: span.start + 3 },
    ];
  // In flow style `{ steps: ${var.steps} }` the braces of the reference are YAML's own.
  if (error.code === "UNEXPECTED_TOKEN" && line.includes("${"))
    return [
      "RL1301",
      'Inside `{ }` and `[ ]` a `${…}` must be in quotes, since YAML reads its braces as a map: `"${var.steps}"`.',
      dollarSpan(source, span),
    ];
  if (error.message.startsWith("Missing closing"))
    return ["RL1003", "This quote is never closed.", openingQuote(source, error.pos[0] - 1) ?? span];
  return ["RL1003", `${plainWords(error)}`, textStart(source, firstLine(source, span))];
}

/** The library's commonest messages in words that say what to do. */
function plainWords({ code, message }: YAMLError): string {
  switch (code) {
    case "BLOCK_AS_IMPLICIT_KEY":
      return "There is a second `: ` after a value. Put the text in quotes if the colon belongs to it, or check the indentation of this line and the next.";
    case "MULTILINE_IMPLICIT_KEY":
      return "This line has no `: ` after its key, or goes on where a key should be.";
    case "BAD_INDENT":
      return message.startsWith("Flow")
        ? `A \`${message.includes("map") ? "{" : "["}\` is not closed before this place.`
        : "The indentation of this line fits no block above it: keys of one map start at the same column. Or does the line before lack its `:`?";
    case "BAD_SCALAR_START":
      return `${message}. Put the text in quotes.`;
    case "MISSING_CHAR":
      return message.startsWith("Implicit map key") ? "This key has no `: ` after it." : `${message}.`;
    case "UNEXPECTED_TOKEN":
      return `${message}. Is there a quote, a bracket or a comma too many, or one missing before it?`;
    default:
      return `${message}.`;
  }
}

/** Without the white space at the start of a line. */
function textStart(source: Source, { start, end }: Span): Span {
  const skipped = /^ */.exec(source.text.slice(start))?.[0].length ?? 0;
  return { start: start + skipped, end: Math.max(end, start + skipped + 1) };
}

/** Where the quoted text begins that the end of the file (or a line of lesser indentation) cut off. */
function openingQuote(source: Source, end: number): Span | undefined {
  let found: number | undefined;
  const visit = (token: unknown): void => {
    if (typeof token !== "object" || token === null) return;
    const { type, offset, source: text } = token as { type?: unknown; offset?: number; source?: string };
    const isQuoted = type === "double-quoted-scalar" || type === "single-quoted-scalar";
    if (isQuoted && offset !== undefined && text !== undefined && offset <= end && end <= offset + text.length)
      found = offset;
    for (const inner of Object.values(token)) if (typeof inner === "object") visit(inner);
  };
  for (const token of new Parser().parse(source.text)) visit(token);
  return found === undefined ? undefined : { start: found, end: found + 1 };
}

function tabSpan(source: Source, span: Span): Span {
  const { line, column } = source.position(span.start);
  const start = span.start - column + 1 + source.line(line).indexOf("\t");
  return { start, end: start + 1 };
}

function dollarSpan(source: Source, span: Span): Span {
  const { line, column } = source.position(span.start);
  const text = source.line(line);
  const at = text.indexOf("${");
  const close = text.indexOf("}", at);
  const start = span.start - column + 1 + at;
  return { start, end: start + (close < 0 ? 2 : close - at + 1) };
}

function firstLine(source: Source, { start, end }: Span): Span {
  const newline = source.text.indexOf("\n", start);
  return { start, end: newline < 0 || newline >= end ? end : Math.max(newline, start + 1) };
}

function warningWords(source: Source, warning: YAMLError): Report {
  const span = { start: warning.pos[0], end: warning.pos[1] };
  return warning.code === "TAG_RESOLVE_FAILED"
    ? ["RL1012", `The tag \`${source.text.slice(span.start, span.end)}\` has no meaning in a spec. Remove it.`, span]
    : ["RL1003", `${warning.message}.`, span];
}

/** Walks the library's nodes once, in the order of the text, so that an alias finds the latest anchor before it. */
class Converter {
  readonly diagnostics: Diagnostic[] = [];
  readonly #source: Source;
  readonly #anchors = new Map<string, { tree: Tree; size: number }>();
  /** Anchors whose value is being converted: an alias to one would contain itself. */
  readonly #open = new Set<string>();
  #aliased = 0;
  /** Nodes converted so far, counting what aliases stand for. */
  #size = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  report(code: DiagnosticCode, detail: string, span: Span): void {
    this.diagnostics.push(this.#source.diagnostic(code, detail, span));
  }

  convert(node: Node, depth: number): Tree {
    const span = spanOf(node);
    if (depth > MAX_DEPTH) {
      this.report("RL1009", TOO_DEEP, firstLine(this.#source, span));
      return this.#faulty(span);
    }
    if (isAlias(node)) return this.#alias(node.source, span);
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    const before = this.#size++;
    if (anchor !== undefined) this.#open.add(anchor);
    const tree = this.#convertPlain(node, span, depth);
    if (anchor !== undefined) {
      this.#open.delete(anchor);
      this.#anchors.set(anchor, { tree, size: this.#size - before });
    }
    return tree;
  }

  #convertPlain(node: Node, span: Span, depth: number): Tree {
    if (isScalar(node)) return this.#scalar(node, span);
    if (isSeq(node)) {
      const items = node.items.map((item) =>
        isPair(item) ? this.#faulty(span) : this.convert((item as Node | null) ?? emptyAt(span.end), depth + 1),
      );
      return { type: "list", items, source: this.#source, span };
    }
    if (isMap(node)) return this.#map(node, span, depth);
    return this.#faulty(span);
  }

  #scalar(node: Scalar, span: Span): ScalarTree {
    const value = node.value;
    if (typeof value === "number" && node.type === Scalar.PLAIN && /^[-+]?0[0-9]/.test(node.source ?? ""))
      this.report(
        "RL1011",
        `\`${node.source}\` is read as ${value}. Write it without the leading zero${/^[-+]?0[0-7]+$/.test(node.source ?? "") ? `, or as \`${node.source?.replace("0", "0o")}\` if octal is meant` : ""}.`,
        span,
      );
    if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      return { type: "scalar", value, source: this.#source, span };
    return { type: "scalar", value: String(value), source: this.#source, span };
  }

  #map(node: YAMLMap, span: Span, depth: number): MapTree {
    const entries = new Map<string, Entry>();
    const merges: { value: Tree; span: Span }[] = [];
    for (const pair of node.items) {
      const keyNode = pair.key as Node | null;
      const keySpan = keyNode === null ? { start: span.start, end: span.start + 1 } : spanOf(keyNode);
      const value = this.convert((pair.value as Node | null) ?? emptyAt(keySpan.end), depth + 1);
      if (!isScalar(keyNode) || (keyNode.value === null && !keyNode.source)) {
        this.report("RL1010", "A key must be text; here it is a map, a list, an alias or nothing.", keySpan);
        continue;
      }
      const key = keyNode.type === Scalar.PLAIN ? (keyNode.source ?? "") : String(keyNode.value);
      if (key === "<<" && keyNode.type === Scalar.PLAIN) merges.push({ value, span: keySpan });
      else if (entries.has(key)) this.#duplicate(key, entries.get(key)!, keySpan);
      else entries.set(key, { key: { source: this.#source, span: keySpan }, value });
    }
    for (const merge of merges) this.#merge(entries, merge.value, merge.span);
    return { type: "map", entries, source: this.#source, span };
  }

  #duplicate(key: string, first: Entry, span: Span): void {
    const line = first.key.source.position(first.key.span.start).line;
    this.report("RL1005", `\`${key}\` is already set on line ${line}. Keep one of the two.`, span);
  }

  /** Merge keys give what the map itself does not set; of several maps the first wins. */
  #merge(entries: Map<string, Entry>, value: Tree, span: Span): void {
    if (value.type === "scalar" && value.isFaulty) return;
    for (const map of value.type === "list" ? value.items : [value]) {
      if (map.type !== "map") {
        this.report("RL1008", "`<<` takes a map or a list of maps, usually as an alias: `<<: *base`.", span);
        return;
      }
      for (const [key, entry] of map.entries) if (!entries.has(key)) entries.set(key, entry);
    }
  }

  #alias(name: string, span: Span): Tree {
    if (this.#open.has(name)) {
      this.report("RL1008", `\`*${name}\` stands inside the value of \`&${name}\` and would contain itself.`, span);
      return this.#faulty(span);
    }
    const anchor = this.#anchors.get(name);
    if (anchor === undefined) {
      const known = didYouMean(name, this.#anchors.keys());
      this.report("RL1008", `There is no anchor \`&${name}\` before this alias.${known}`, span);
      return this.#faulty(span);
    }
    this.#aliased += anchor.size;
    this.#size += anchor.size;
    if (this.#aliased <= MAX_ALIASED) return anchor.tree;
    if (this.#aliased - anchor.size <= MAX_ALIASED)
      this.report("RL1008", `The aliases of this file stand for more than ${MAX_ALIASED} values.`, span);
    return this.#faulty(span);
  }

  #faulty(span: Span): ScalarTree {
    return { type: "scalar", value: null, isFaulty: true, source: this.#source, span };
  }
}

/** Stands for a value that is not there: `key:` and nothing after it. */
function emptyAt(offset: number): Node {
  const node = new Scalar(null);
  node.range = [offset, offset, offset];
  return node;
}

function spanOf(node: Node): Span {
  const range = node.range ?? [0, 0, 0];
  return { start: range[0], end: range[1] };
}
