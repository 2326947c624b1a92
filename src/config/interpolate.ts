/**
 * Step 2c: `${var.x}`, `${env.X}` and `${secret.X}` in the values of blocks. A reference that is the whole value keeps its
 * type; within a text it becomes text. `$${` is a literal `${`. Nothing that came out is looked at again.
 */
import { type Address, addressOf, type KindName } from "../address.ts";
import type { DiagnosticCode } from "../codes.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { digestBytes } from "../digest.ts";
import type { SpecInput } from "../spec.ts";
import type { Scalar, SecretRef } from "../value.ts";
import { kindOfKey } from "./blocks.ts";
import { type BlockName, fieldAt } from "./fields.ts";
import type { Span } from "./source.ts";
import { type MapTree, mapAt, mapEntries, type ScalarTree, type Tree } from "./tree.ts";
import { readAs, type Variables } from "./variables.ts";

/** Writes a text so that it is read as it is: `${` gets its escape. */
export function escapeInterpolation(text: string): string {
  // A function, since `$` means something in a replacement text.
  return text.replaceAll("${", () => "$${");
}

export interface InterpolateOptions {
  readonly variables: Variables;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Interpolated {
  readonly tree: MapTree;
  /** Environment variables that were read. */
  readonly inputs: readonly SpecInput[];
}

const REFERENCE = /^\s*(var|env|secret)\.([A-Za-z_][A-Za-z0-9_-]*)\s*$/;

/** A piece of a text: literal, or the inside of `${…}`. */
type Piece = { readonly text: string } | { readonly reference: string; readonly raw: string };

/** Splits a text; an unclosed `${` becomes a reference that runs to the end, with the fault seen later. */
function split(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let literal = "";
  let at = 0;
  for (let open = text.indexOf("${"); open >= 0; open = text.indexOf("${", at)) {
    if (open > at && text[open - 1] === "$") {
      literal += `${text.slice(at, open - 1)}\${`;
      at = open + 2;
      continue;
    }
    literal += text.slice(at, open);
    if (literal !== "") pieces.push({ text: literal });
    literal = "";
    const close = text.indexOf("}", open);
    at = close < 0 ? text.length : close + 1;
    pieces.push({ reference: text.slice(open + 2, close < 0 ? text.length : close), raw: text.slice(open, at) });
  }
  literal += text.slice(at);
  if (literal !== "") pieces.push({ text: literal });
  return pieces;
}

export function interpolate(root: MapTree, options: InterpolateOptions, diagnostics: Diagnostic[]): Interpolated {
  const interpolator = new Interpolator(options, diagnostics);
  let tree = root;
  for (const key of root.entries.keys()) {
    const kind = kindOfKey(key);
    tree = mapAt(tree, [key], (value) => {
      if (kind === undefined) return interpolator.forbid(value, key);
      return value.type === "map" ? mapEntries(value, (body, name) => interpolator.block(body, kind, name)) : value;
    }) as MapTree;
  }
  return { tree, inputs: interpolator.inputs };
}

class Interpolator {
  readonly inputs: SpecInput[] = [];
  readonly #options: InterpolateOptions;
  readonly #diagnostics: Diagnostic[];
  readonly #seenEnv = new Set<string>();
  /** Of the block that is walked. */
  #address: Address | undefined;

  constructor(options: InterpolateOptions, diagnostics: Diagnostic[]) {
    this.#options = options;
    this.#diagnostics = diagnostics;
  }

  block(body: Tree, kind: KindName, name: string): Tree {
    this.#address = addressOf(kind, name);
    const done = this.walk(body, kind as BlockName, "");
    this.#address = undefined;
    return done;
  }

  walk(tree: Tree, block: BlockName, path: string): Tree {
    switch (tree.type) {
      case "scalar":
        return typeof tree.value === "string" && tree.value.includes("${")
          ? this.#scalar(tree, tree.value, block, path)
          : tree;
      case "list": {
        const items = tree.items.map((item) => this.walk(item, block, path));
        return items.every((item, i) => item === tree.items[i]) ? tree : { ...tree, items };
      }
      case "map":
        return mapEntries(tree, (value, key) => this.walk(value, block, path === "" ? key : `${path}.${key}`));
      default:
        return tree satisfies never;
    }
  }

  /** The top level is read before there are variables. */
  forbid(tree: Tree, key: string): Tree {
    if (tree.type === "map") return mapEntries(tree, (value) => this.forbid(value, key));
    if (tree.type !== "scalar" || typeof tree.value !== "string" || !/(^|[^$])\$\{/.test(tree.value)) return tree;
    this.#report(
      tree,
      "RL1301",
      `\`${key}\` is read before variables are, so it cannot use \`\${…}\`. Write the value itself.`,
      tree.span,
    );
    return { ...tree, isFaulty: true };
  }

  #scalar(tree: ScalarTree, text: string, block: BlockName, path: string): ScalarTree {
    const pieces = split(text);
    const field = fieldAt(block, path);
    const values = pieces.map((piece) => {
      if ("text" in piece) return piece.text;
      return this.#resolve(tree, piece.reference, piece.raw, pieces.length === 1, field?.isSecret === true);
    });
    if (values.includes(undefined)) return { ...tree, value: null, isFaulty: true };
    if (values.length !== 1) return { ...tree, value: values.join("") };
    let value = values[0] as Scalar | SecretRef;
    const type = field?.type;
    // The environment knows only text: a field that takes something else has it read as that.
    if (
      typeof value === "string" &&
      /^\$\{\s*env\./.test(text) &&
      (type === "integer" || type === "number" || type === "boolean")
    )
      value = readAs(type, value) ?? value;
    return { ...tree, value };
  }

  /** The value of one reference; undefined if it has none, which is then reported. */
  #resolve(
    tree: ScalarTree,
    reference: string,
    raw: string,
    isWhole: boolean,
    isSecretField: boolean,
  ): Scalar | SecretRef | undefined {
    const span = spanWithin(tree, raw);
    const match = REFERENCE.exec(reference);
    if (!match || !raw.endsWith("}")) {
      this.#report(tree, "RL1301", badReference(reference, raw), span);
      return undefined;
    }
    const name = match[2]!;
    switch (match[1]) {
      case "var":
        return this.#variable(tree, name, span);
      case "env":
        return this.#environment(tree, name, span);
      default:
        if (isWhole && isSecretField) return Object.freeze({ $secret: name });
        this.#report(tree, "RL1307", isSecretField ? WHOLE_SECRET : SECRET_ELSEWHERE, span);
        return undefined;
    }
  }

  #variable(tree: ScalarTree, name: string, span: Span): Scalar | undefined {
    const { variables } = this.#options;
    const variable = variables.get(name);
    if (variable === undefined)
      this.#report(tree, "RL1302", `The spec does not declare a variable \`${name}\`.${variables.hint(name)}`, span);
    return variable?.value;
  }

  #environment(tree: ScalarTree, name: string, span: Span): string | undefined {
    const value = this.#options.env[name];
    if (value === undefined)
      this.#report(
        tree,
        "RL1306",
        `The environment variable \`${name}\` is not set. Set it, or use a variable with a default.`,
        span,
      );
    else if (!this.#seenEnv.has(name)) {
      this.#seenEnv.add(name);
      this.inputs.push({ type: "env", name, digest: digestBytes(value) });
    }
    return value;
  }

  #report(tree: Tree, code: DiagnosticCode, detail: string, span: Span): void {
    const options = this.#address === undefined ? {} : { address: this.#address };
    this.#diagnostics.push(tree.source.diagnostic(code, detail, span, options));
  }
}

const SECRET_ELSEWHERE =
  "This field is not kept secret: its value would be shown in plans and stored. `${secret.…}` may stand only in `api_key`.";
const WHOLE_SECRET =
  "A secret must be the whole value, since only its name is stored: `${secret.NAME}` and nothing beside it.";

function badReference(reference: string, raw: string): string {
  if (!raw.endsWith("}")) return "This `${` is not closed by a `}`. A literal `${` is written `$${`.";
  if (/^\s*(run|server|dataset|eval|deployment)s?\./.test(reference))
    return `\`${raw}\` would be known only after apply, which this version does not do. Refer to blocks by name in their fields: \`from: warmup\`.`;
  if (/^\s*(var|env|secret)\./.test(reference))
    return `\`${raw}\` does not end in a name of letters, digits, \`_\` or \`-\`.`;
  return `\`${raw}\` is none of \`\${var.NAME}\`, \`\${env.NAME}\` and \`\${secret.NAME}\`. A literal \`\${\` is written \`$\${\`.`;
}

/** The place of a reference within its scalar, where the text is written as it is read; else the whole scalar. */
function spanWithin(tree: ScalarTree, raw: string): Span {
  const written = tree.source.text.slice(tree.span.start, tree.span.end);
  const at = written.indexOf(raw);
  return at < 0 ? tree.span : { start: tree.span.start + at, end: tree.span.start + at + raw.length };
}
