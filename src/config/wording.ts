/** Errors of the schema check in words: what is wrong, what the field takes, what may have been meant. */
import type { DiagnosticCode } from "../codes.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { closest, didYouMean, listNames } from "../suggest.ts";
import { kindOfKey } from "./blocks.ts";
import { blockInfo, type FieldInfo, fieldAt, fieldsOf } from "./fields.ts";
import type { Place } from "./place.ts";
import { child, entriesOf, type MapTree, type Tree, textOf } from "./tree.ts";
import type { ShapeError } from "./validate.gen.mjs";
import { article, capital, expectation, typeWords, valueWords } from "./words.ts";

/** What a diagnostic points at. */
type Mark = Pick<Tree, "source" | "span">;
type Wording = readonly [code: DiagnosticCode, detail: string, at: Mark];

export function wordError(root: MapTree, error: ShapeError, place: Place): Diagnostic {
  const [code, detail, at] = wordingOf(error, place, keyMark(root, place));
  const options = place.address === undefined ? {} : { address: place.address };
  return at.source.diagnostic(code, detail, at.span, options);
}

/** Where to point for something that is missing: the key that holds the block, or the file's first key. */
function keyMark(root: MapTree, place: Place): Mark {
  const first = root.entries.values().next().value;
  return (
    place.entry?.key ?? first?.key ?? { source: root.source, span: { start: root.span.start, end: root.span.start } }
  );
}

function wordingOf(error: ShapeError, place: Place, key: Mark): Wording {
  const field = fieldAt(place.block, place.path);
  const { value, label } = place;
  const stands = `here it is ${valueWords(value)}`;
  switch (error.keyword) {
    case "additionalProperties":
      return unknownKey(String(error.params.additionalProperty), place);
    case "required":
      return missing(String(error.params.missingProperty), place, key);
    case "const":
      return ["RL1107", `This rlcli knows version 1 of the spec language: write \`rlcli: 1\`; ${stands}.`, value];
    case "enum":
      return value.type === "scalar" && value.value !== null
        ? unknownValue(error.params.allowedValues as readonly string[], place)
        : wrongType(field, place, key);
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum": {
      const range = field?.range ?? `${error.params.comparison} ${error.params.limit}`;
      return ["RL1104", `\`${label}\` must be ${range}; ${stands}.`, value];
    }
    case "pattern":
      return error.propertyName === undefined
        ? ["RL1105", `\`${label}\` must be ${field?.form ?? "of another form"}; ${stands}.`, value]
        : badName(error.propertyName, value);
    case "minItems":
      return ["RL1104", `\`${label}\` needs at least one item.`, value];
    default:
      return wrongType(field, place, key);
  }
}

function unknownValue(values: readonly string[], { value, label }: Place): Wording {
  const names = listNames(values, 12, "or");
  const text = textOf(value);
  const hint = text === undefined ? "" : didYouMean(text, values);
  return ["RL1103", `\`${label}\` must be ${names}; here it is ${valueWords(value)}.${hint}`, value];
}

function wrongType(field: FieldInfo | undefined, place: Place, key: Mark): Wording {
  const { value, label } = place;
  if (field?.isSecret && value.type === "scalar" && value.value !== null)
    return ["RL1102", `\`${label}\` takes \`\${secret.NAME}\`; here it is something else.`, value];
  const isItem = field?.type === "list" && field.path !== place.path;
  const expected = isItem ? "texts" : takenBy(field, place);
  if (value.type === "scalar" && value.value === null)
    return ["RL1102", `\`${label}\` has no value; it takes ${expected}. Give it one or remove the key.`, key];
  // A map or list may be long: its key says enough.
  const at = value.type === "scalar" ? value : key;
  const hint = expectation(isItem ? { ...field, type: "string" } : field, value);
  return ["RL1102", `\`${label}\` takes ${expected}; here it is ${valueWords(value)}.${hint}`, at];
}

function takenBy(field: FieldInfo | undefined, { block, path, label }: Place): string {
  if (block !== "spec") return path === "" ? `a map with the fields of ${article(block)}` : typeWords(field);
  return kindOfKey(label) || label === "variables" ? `a map of ${label} by name` : typeWords(field);
}

function badName(name: string, value: Tree): Wording {
  const detail = `\`${name}\` cannot be a name: a letter comes first, then letters, digits, \`_\` or \`-\`, at most 63 in all.`;
  return ["RL1108", detail, entriesOf(value).get(name)?.key ?? value];
}

function unknownKey(name: string, place: Place): Wording {
  const key = entriesOf(place.value).get(name)?.key ?? place.value;
  const siblings = siblingKeys(place);
  const known = (place.block === "spec" ? pluralOf(name) : undefined) ?? otherName(name, place);
  const meant = known ?? closest(name, siblings);
  const hint = meant === undefined ? "" : ` Did you mean \`${meant}\`?`;
  const value = child(place.value, name);
  if (value && meant !== undefined && fieldAt(place.block, meant)?.isSecret) value.source.hide(value.span);
  const has = ` It has ${listNames(siblings, 30)}.`;
  return ["RL1101", `${whereWords(place)} has no field \`${name}\`.${hint || has}`, key];
}

/** `run` → `runs`; undefined where the name is no singular of a key that holds blocks. */
function pluralOf(name: string): string | undefined {
  return [`${name}s`, `${name}es`].find((plural) => kindOfKey(plural) !== undefined);
}

/** The field that other tools know by this name. */
function otherName(name: string, { block, path }: Place): string | undefined {
  if (path !== "") return undefined;
  return blockInfo(block).fields.find((field) => field.also?.includes(name))?.path;
}

/** The keys that may stand here, without those that mean nothing with the block's type or backend. */
function siblingKeys({ block, path, value }: Place): string[] {
  const prefix = path === "" ? "" : `${path}.`;
  return [...fieldsOf(block).values()]
    .filter((field) => field.path.startsWith(prefix) && !field.path.slice(prefix.length).includes("."))
    .filter(({ when }) => {
      const decided = path === "" && when && textOf(child(value, when.path));
      return !decided || when.values.includes(decided);
    })
    .map((field) => field.path.slice(prefix.length));
}

function whereWords({ block, path }: Place): string {
  if (path !== "") return `\`${path}\``;
  return block === "spec" ? "A spec" : capital(article(block));
}

function missing(name: string, place: Place, key: Mark): Wording {
  const field = fieldAt(place.block, place.path === "" ? name : `${place.path}.${name}`);
  const example = field?.examples?.[0];
  const hint =
    example === undefined || typeof example === "object" ? "" : `, for instance \`${name}: ${String(example)}\``;
  return ["RL1106", `${whereWords(place)} needs \`${name}\`${hint}. ${field?.description ?? ""}`.trimEnd(), key];
}
