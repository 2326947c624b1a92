/** Words for values and types, as diagnostics say them. */
import { withoutCredentials } from "../url.ts";
import type { FieldInfo } from "./fields.ts";
import type { Tree } from "./tree.ts";

/** Longer texts are cut: the line is printed beside the message anyway. */
const LONGEST_TEXT = 40;

function shorten(text: string): string {
  const oneLine = withoutCredentials(text).replace(/\s+/g, " ");
  return oneLine.length > LONGEST_TEXT ? `${oneLine.slice(0, LONGEST_TEXT - 1)}…` : oneLine;
}

/** What stands there. */
export function valueWords(value: Tree): string {
  if (value.type !== "scalar") return `a ${value.type}`;
  const { value: scalar } = value;
  switch (typeof scalar) {
    case "string":
      return scalar === "" ? "empty text" : `the text \`${shorten(scalar)}\``;
    case "number":
      return Number.isFinite(scalar) ? `\`${scalar}\`` : "not a finite number";
    case "boolean":
      return `\`${scalar}\``;
    default:
      return scalar === null ? "empty" : "a secret";
  }
}

/** What a field takes. */
export function typeWords(field: FieldInfo | undefined): string {
  if (field?.shorthand === "list") return "text or a list of texts";
  if (field?.shorthand !== undefined) return `a map, or its ${field.shorthand} alone`;
  switch (field?.type) {
    case "integer":
      return "a whole number";
    case "number":
      return "a number";
    case "boolean":
      return "`true` or `false`";
    case "string":
      return "text";
    case "scalar":
      return "text, a number or a boolean";
    case "list":
      return "a list of texts";
    default:
      return "a map";
  }
}

/** The hint for a value of the wrong type: what such a writing means in YAML 1.2. */
export function expectation(field: FieldInfo | undefined, value: Tree): string {
  if (value.type !== "scalar") return "";
  const text = value.value;
  switch (field?.type) {
    case "boolean":
      if (typeof text === "string" && /^(y|yes|on)$/i.test(text)) return " YAML 1.2 reads that as text: write `true`.";
      if (typeof text === "string" && /^(n|no|off)$/i.test(text)) return " YAML 1.2 reads that as text: write `false`.";
      return "";
    case "integer":
    case "number":
      if (typeof text === "string" && /^[-+]?\d+([_,' ]\d+)+(\.\d+)?$/.test(text))
        return " Numbers are written without separators.";
      if (typeof text === "string" && /^\s*[-+]?[\d.]+([eE][-+]?\d+)?\s*$/.test(text)) return " Remove the quotes.";
      return "";
    case "string":
      return typeof text === "number" || typeof text === "boolean" ? " Put it in quotes." : "";
    default:
      return "";
  }
}

/** `a run`, `an eval`. */
export function article(name: string): string {
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}

export function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
