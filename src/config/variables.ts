/** Step 2b: the spec's variables: what is declared, what sets them, and which of it is used. */
import type { Diagnostic } from "../diagnostic.ts";
import { diagnostic } from "../diagnostic.ts";
import { digestBytes } from "../digest.ts";
import type { SpecInput } from "../spec.ts";
import { didYouMean, listNames } from "../suggest.ts";
import { withoutCredentials } from "../url.ts";
import type { Scalar } from "../value.ts";
import type { Source } from "./source.ts";
import { child, type Entry, entriesOf, type MapTree, type Tree, textOf } from "./tree.ts";

/** The environment variable that sets a variable begins with this. */
const VARIABLE_PREFIX = "RLCLI_VAR_";

export type VariableType = "string" | "number" | "integer" | "boolean";

export interface Variable {
  /** Undefined where a fault was already reported. */
  readonly value: Scalar | undefined;
  readonly entry: Entry;
}

export interface VariableSources {
  /** From --var, as text. */
  readonly given: Readonly<Record<string, string>>;
  /** From --var-file, in order. */
  readonly files: readonly MapTree[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

const TYPE_WORDS: Readonly<Record<VariableType, string>> = {
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "`true` or `false`",
};

/** Reads a text as a variable's type; undefined if it is not one. */
export function readAs(type: VariableType, text: string): Scalar | undefined {
  switch (type) {
    case "string":
      return text;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : undefined;
    case "integer":
    case "number": {
      const isNumber = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(text);
      const value = isNumber ? Number(text) : Number.NaN;
      return Number.isFinite(value) && (type === "number" || Number.isSafeInteger(value)) ? value : undefined;
    }
    default:
      return type satisfies never;
  }
}

function fits(type: VariableType, value: unknown): value is Scalar {
  switch (type) {
    case "integer":
      return Number.isSafeInteger(value);
    case "number":
      return typeof value === "number" && Number.isFinite(value);
    default:
      return typeof value === type;
  }
}

function isVariableType(text: string | undefined): text is VariableType {
  return text !== undefined && Object.hasOwn(TYPE_WORDS, text);
}

/** A value from a file or a default: already typed by YAML. */
function checkTree(name: string, type: VariableType, tree: Tree, diagnostics: Diagnostic[]): Scalar | undefined {
  if (tree.type === "scalar" && fits(type, tree.value)) return tree.value;
  const hint = type === "string" && tree.type === "scalar" ? " Put it in quotes." : "";
  const what = tree.type === "scalar" ? `\`${withoutCredentials(String(tree.value))}\`` : `a ${tree.type}`;
  diagnostics.push(
    tree.source.diagnostic(
      "RL1304",
      `Variable \`${name}\` takes ${TYPE_WORDS[type]}; here it is ${what}.${hint}`,
      tree.span,
    ),
  );
  return undefined;
}

/** A value from the command line or the environment: text, read as the declared type. */
function checkText(
  name: string,
  type: VariableType,
  text: string,
  from: string,
  diagnostics: Diagnostic[],
): Scalar | undefined {
  const value = readAs(type, text);
  if (value === undefined)
    diagnostics.push(
      diagnostic(
        "RL1304",
        `Variable \`${name}\` takes ${TYPE_WORDS[type]}; ${from} sets it to \`${withoutCredentials(text)}\`.`,
      ),
    );
  return value;
}

/** All variables of a spec with their values. Lookups are recorded, so that unused ones can be named. */
export class Variables {
  readonly inputs: SpecInput[] = [];
  readonly #variables = new Map<string, Variable>();
  readonly #used = new Set<string>();

  constructor(root: MapTree, sources: VariableSources, diagnostics: Diagnostic[]) {
    for (const [name, entry] of entriesOf(child(root, "variables")))
      this.#variables.set(name, { entry, value: this.#valueOf(name, entry, sources, diagnostics) });
    this.#reportStrays(sources, diagnostics);
  }

  #valueOf(name: string, entry: Entry, sources: VariableSources, diagnostics: Diagnostic[]): Scalar | undefined {
    const type = textOf(child(entry.value, "type"));
    // A declaration of another shape is reported with the shape of the whole spec.
    if (!isVariableType(type)) return undefined;
    const fallback = child(entry.value, "default");
    const checkedDefault = fallback && checkTree(name, type, fallback, diagnostics);
    if (Object.hasOwn(sources.given, name))
      return checkText(name, type, sources.given[name] ?? "", "--var", diagnostics);
    const written = sources.files.map((file) => file.entries.get(name)).findLast((e) => e !== undefined);
    if (written !== undefined) return checkTree(name, type, written.value, diagnostics);
    const key = VARIABLE_PREFIX + name;
    const text = sources.env[key];
    if (text !== undefined) {
      this.inputs.push({ type: "env", name: key, digest: digestBytes(text) });
      return checkText(name, type, text, `the environment variable ${key}`, diagnostics);
    }
    if (fallback !== undefined) return checkedDefault;
    const { source, span } = entry.key;
    const how = `Set it with --var ${name}=VALUE, in a --var-file, or with the environment variable ${key}`;
    diagnostics.push(
      source.diagnostic("RL1303", `Variable \`${name}\` has no default and nothing sets it. ${how}.`, span),
    );
    return undefined;
  }

  #reportStrays({ given, files }: VariableSources, diagnostics: Diagnostic[]): void {
    for (const name of Object.keys(given))
      if (!this.#variables.has(name))
        diagnostics.push(
          diagnostic("RL1302", `--var sets \`${name}\`, which the spec does not declare.${this.hint(name)}`),
        );
    for (const file of files)
      for (const [name, { key }] of file.entries)
        if (!this.#variables.has(name))
          diagnostics.push(
            key.source.diagnostic(
              "RL1302",
              `The spec does not declare a variable \`${name}\`.${this.hint(name)}`,
              key.span,
              {
                severity: "warning",
              },
            ),
          );
  }

  get(name: string): Variable | undefined {
    this.#used.add(name);
    return this.#variables.get(name);
  }

  /** What to say after naming a variable that does not exist. */
  hint(name: string): string {
    const names = [...this.#variables.keys()];
    if (names.length === 0) return ` Declare it: \`variables: { ${name}: { type: string } }\`.`;
    return didYouMean(name, names) || ` It has ${listNames(names)}.`;
  }

  reportUnused(diagnostics: Diagnostic[]): void {
    for (const [name, { entry }] of this.#variables)
      if (!this.#used.has(name)) {
        const { source, span }: { source: Source; span: Entry["key"]["span"] } = entry.key;
        diagnostics.push(
          source.diagnostic("RL1305", `Nothing uses \`\${var.${name}}\`. Remove the variable or use it.`, span),
        );
      }
  }
}
