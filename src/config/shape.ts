/**
 * The check against the schema: ajv's errors, worded from the field table and placed in the file. The checked form has no
 * alternatives (see schemas/generate/resolve.mjs), so one fault is one error.
 */
import { type Address, addressOf, KINDS } from "../address.ts";
import type { DiagnosticCode } from "../codes.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { didYouMean, listNames } from "../suggest.ts";
import { isSecret } from "../value.ts";
import { kindOfKey } from "./blocks.ts";
import { type BlockName, blockInfo, type FieldInfo, fieldAt, fieldsOf } from "./fields.ts";
import type { Span } from "./source.ts";
import { child, type Entry, entriesOf, type MapTree, plainOf, type Tree, textOf } from "./tree.ts";
import { type ShapeError, validateSpecShape } from "./validate.gen.mjs";
import { expectation, typeWords, valueWords } from "./words.ts";

/** Checks the whole spec. Of faulty addresses not everything is known, so their meaning is not judged. */
export function checkShape(root: MapTree, diagnostics: Diagnostic[]): { readonly faulty: ReadonlySet<Address> } {
  const faulty = new Set<Address>();
  for (const address of unavailableRuns(root, diagnostics)) faulty.add(address);
  const unavailable = new Set(faulty);
  if (validateSpecShape(plainOf(root, SECRET_STAND_IN))) return { faulty };
  for (const error of validateSpecShape.errors ?? []) {
    // The wrapper of a name's own error.
    if (error.keyword === "propertyNames") continue;
    const place = placeOf(root, error);
    if (place.address !== undefined) {
      if (unavailable.has(place.address)) continue;
      // A misspelt key leaves its field unset, which rules would report as a fault of its own.
      if (error.keyword === "additionalProperties") faulty.add(place.address);
    }
    if (place.value.type === "scalar" && place.value.isFaulty) continue;
    diagnostics.push(wordError(root, error, place));
  }
  return { faulty };
}

/** Stands in the checked value where a secret will be. */
const SECRET_STAND_IN = (value: unknown): unknown => (isSecret(value) ? "secret" : value);

/** Where an error is: its value with the entry that holds it, and which block and field that is. */
interface Place {
  readonly value: Tree;
  readonly entry: Entry | undefined;
  readonly block: BlockName;
  /** Dotted, within the block. */
  readonly path: string;
  /** The last key or index. */
  readonly label: string;
  readonly address: Address | undefined;
}

function placeOf(root: MapTree, error: ShapeError): Place {
  const keys = error.instancePath
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  let value: Tree = root;
  let entry: Entry | undefined;
  for (const key of keys) {
    if (value.type === "list") value = value.items[Number(key)] ?? value;
    else {
      entry = value.type === "map" ? (value.entries.get(key) ?? entry) : entry;
      value = entry?.value ?? value;
    }
  }
  const [top = "", name, ...rest] = keys;
  const kind = kindOfKey(top);
  const label = keys.at(-1) ?? "";
  if (name !== undefined && kind !== undefined)
    return { value, entry, block: kind as BlockName, path: rest.join("."), label, address: addressOf(kind, name) };
  if (name !== undefined && top === "variables")
    return { value, entry, block: "variable", path: rest.join("."), label, address: undefined };
  return { value, entry, block: "spec", path: keys.join("."), label, address: undefined };
}

/** Runs of a type that a later version does. What else such a block holds is not judged. */
function unavailableRuns(root: MapTree, diagnostics: Diagnostic[]): Address[] {
  const found: Address[] = [];
  for (const [name, { value }] of entriesOf(child(root, "runs"))) {
    const type = child(value, "type");
    if (type === undefined || textOf(type) !== "rl") continue;
    const address = addressOf("run", name);
    found.push(address);
    const detail =
      "This version trains supervised runs only (`type: sl`); reinforcement learning comes in a later one.";
    diagnostics.push(type.source.diagnostic("RL1110", detail, type.span, { address }));
  }
  return found;
}

type Wording = readonly [
  code: DiagnosticCode,
  detail: string,
  at: { readonly source: Tree["source"]; readonly span: Span },
];

function wordError(root: MapTree, error: ShapeError, place: Place): Diagnostic {
  const [code, detail, at] = wordingOf(root, error, place);
  const options = place.address === undefined ? {} : { address: place.address };
  return at.source.diagnostic(code, detail, at.span, options);
}

function wordingOf(root: MapTree, error: ShapeError, place: Place): Wording {
  const field = fieldAt(place.block, place.path);
  const { value, label } = place;
  const here = { source: value.source, span: value.span };
  const key = keyPlace(root, place);
  switch (error.keyword) {
    case "additionalProperties":
      return unknownKey(String(error.params.additionalProperty), place);
    case "required":
    case "dependentRequired":
      return missing(error, place, key);
    case "const":
      return [
        "RL1107",
        `This rlcli knows version 1 of the spec language: write \`rlcli: 1\`. Here it is ${valueWords(value)}.`,
        here,
      ];
    case "enum": {
      const values = (error.params.allowedValues as readonly string[]) ?? [];
      const text = textOf(value);
      const hint = text === undefined ? "" : didYouMean(text, values);
      if (value.type !== "scalar" || value.value === null) return wrongType(field, place, key);
      return [
        "RL1103",
        `\`${label}\` is ${listNames(values, 12).replace(/ and (`[^`]*`)$/, " or $1")}; here it is ${valueWords(value)}.${hint}`,
        here,
      ];
    }
    case "type":
      return wrongType(field, place, key);
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
      return [
        "RL1104",
        `\`${label}\` must be ${field?.range ?? `${error.params.comparison} ${error.params.limit}`}; here it is ${valueWords(value)}.`,
        here,
      ];
    case "pattern":
      return error.propertyName === undefined
        ? [
            "RL1105",
            `\`${fieldLabel(place)}\` must be ${field?.form ?? "of another form"}; here it is ${valueWords(value)}.`,
            here,
          ]
        : badName(error.propertyName, value);
    case "minItems":
      return ["RL1104", `\`${label}\` needs at least one item.`, here];
    default:
      return ["RL1102", `\`${label}\`: ${error.message ?? error.keyword}.`, here];
  }
}

/** List items have a number for a label; a reader knows the list's name. */
function fieldLabel({ path, label }: Place): string {
  return /^\d+$/.test(label) ? (path.split(".").at(-2) ?? label) : label;
}

/** Where to point for something that is missing: the key that holds the block, or the file's first key. */
function keyPlace(root: MapTree, place: Place): { source: Tree["source"]; span: Span } {
  const first = root.entries.values().next().value;
  return (
    place.entry?.key ?? first?.key ?? { source: root.source, span: { start: root.span.start, end: root.span.start } }
  );
}

function wrongType(field: FieldInfo | undefined, place: Place, key: { source: Tree["source"]; span: Span }): Wording {
  const { value } = place;
  const label = fieldLabel(place);
  const expected = place.path === "" ? blockWords(place.block) : typeWords(field);
  if (value.type === "scalar" && value.value === null)
    return ["RL1102", `\`${label}\` has no value; it takes ${expected}. Give it one or remove the key.`, key];
  // A map or list may be long: its key says enough.
  const at = value.type === "scalar" ? value : key;
  return ["RL1102", `\`${label}\` takes ${expected}; here it is ${valueWords(value)}.${expectation(field, value)}`, at];
}

function blockWords(block: BlockName): string {
  return block === "spec" ? "a map" : `a map with the fields of a ${block}`;
}

function badName(name: string, value: Tree): Wording {
  const key = child(value, name) && entriesOf(value).get(name)?.key;
  const detail = `\`${name}\` cannot be a name: a letter comes first, then letters, digits, \`_\` or \`-\`, at most 63 in all.`;
  return ["RL1108", detail, key ?? value];
}

function unknownKey(name: string, place: Place): Wording {
  const key = entriesOf(place.value).get(name)?.key ?? place.value;
  if (
    place.block === "spec" &&
    KINDS.some((kind) => name === kind || name === `${kind}s`) &&
    !kindOfKey(name) &&
    !singular(name)
  )
    return ["RL1110", `\`${name}\` is part of the language, but this version of rlcli does not do it yet.`, key];
  const siblings = siblingKeys(place);
  const where = whereWords(place);
  const plural = singular(name);
  const hint = plural === undefined ? didYouMean(name, siblings) : ` Did you mean \`${plural}\`?`;
  return ["RL1101", `${where} has no field \`${name}\`.${hint || ` It has ${listNames(siblings, 30)}.`}`, key];
}

/** `run:` for `runs:`; undefined where the name is no singular of a block key. */
function singular(name: string): string | undefined {
  return kindOfKey(`${name}s`) !== undefined
    ? `${name}s`
    : kindOfKey(`${name}es`) !== undefined
      ? `${name}es`
      : undefined;
}

function siblingKeys({ block, path }: Place): string[] {
  const prefix = path === "" ? "" : `${path}.`;
  return [...fieldsOf(block).keys()]
    .filter((key) => key.startsWith(prefix) && !key.slice(prefix.length).includes("."))
    .map((key) => key.slice(prefix.length));
}

function whereWords({ block, path }: Place): string {
  if (path !== "") return `\`${path}\``;
  return block === "spec" ? "A spec" : `A ${block}`;
}

function missing(error: ShapeError, place: Place, key: { source: Tree["source"]; span: Span }): Wording {
  const name = String(error.params.missingProperty);
  if (error.keyword === "dependentRequired") {
    const property = String(error.params.property);
    const at = entriesOf(place.value).get(property)?.key ?? key;
    return ["RL1106", `\`${property}\` means nothing without \`${name}\`. Add it, or remove \`${property}\`.`, at];
  }
  const field = fieldAt(place.block, place.path === "" ? name : `${place.path}.${name}`);
  const example = field?.examples?.[0];
  const hint =
    example === undefined || typeof example === "object" ? "" : `, for instance \`${name}: ${String(example)}\``;
  return [
    "RL1106",
    `${whereWords(place)} needs \`${name}\`${hint}. ${field?.description ?? blockInfo(place.block).description}`,
    key,
  ];
}
