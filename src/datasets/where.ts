/** Conditions on a log line: `metadata.env=prod`, `latency<3`, `tags=gold`, `user!=test`, `model~^gpt-4`. */
import { fail } from "../diagnostic.ts";
import { unwrapped } from "./logs.ts";
import { isRecord } from "./row.ts";

const OPERATORS = ["=", "!=", ">", ">=", "<", "<=", "~"] as const;
type Operator = (typeof OPERATORS)[number];

export interface Condition {
  holds(line: unknown): boolean;
  /** Where its name is looked for: the parts of it, or with a prefix before them. */
  readonly paths: readonly (readonly string[])[];
}

/** Parses a condition. Fails with RL6013. A name is looked for on the line, then in its metadata. */
export function parseCondition(text: string): Condition {
  const parts = /^\s*([\w$.@/-]+)\s*(!=|>=|<=|=|>|<|~)\s*(.*?)\s*$/s.exec(text);
  if (!parts) {
    fail(
      "RL6013",
      `\`${text}\` is not a condition. Write NAME OPERATOR VALUE, with one of ${OPERATORS.join(" ")}, as in \`metadata.env=prod\`.`,
    );
  }
  const [, name = "", operator, wanted = ""] = parts as unknown as [string, string, Operator, string];
  const test = tester(operator, wanted, text);
  const path = name.split(".");
  const paths = [path, ...METADATA.map((prefix) => [...prefix, ...path])];
  return {
    paths,
    holds(line) {
      const found = firstOf(line, paths);
      // A list, such as tags, fits where one of its members does; what is not there fits only `!=`.
      if (Array.isArray(found)) return operator === "!=" ? found.every(test) : found.some(test);
      return found === undefined ? operator === "!=" : test(found);
    },
  };
}

function tester(operator: Operator, wanted: string, text: string): (found: unknown) => boolean {
  if (operator === "=") return (found) => equals(found, wanted);
  if (operator === "!=") return (found) => !equals(found, wanted);
  if (operator === "~") {
    const pattern = compile(wanted, text);
    return (found) => (typeof found === "string" || typeof found === "number") && pattern.test(String(found));
  }
  return (found) => compare(found, operator, wanted);
}

const equals = (found: unknown, wanted: string): boolean =>
  isRecord(found)
    ? false
    : String(found) === wanted || (typeof found === "number" && wanted !== "" && found === Number(wanted));

function compare(found: unknown, operator: Operator, wanted: string): boolean {
  const number = Number(wanted);
  const isNumber = typeof found === "number" && wanted !== "" && !Number.isNaN(number);
  if (!isNumber && typeof found !== "string") return false;
  // Texts compare by their characters, which orders ISO dates.
  const [a, b] = isNumber ? [found, number] : [String(found), wanted];
  if (operator === ">") return a > b;
  if (operator === ">=") return a >= b;
  return operator === "<" ? a < b : a <= b;
}

function compile(source: string, text: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    return fail("RL6013", `In \`${text}\`, what follows ~ is not a regular expression.`);
  }
}

/** Where loggers keep what the caller said about a call. */
const METADATA = [["metadata"], ["extra", "metadata"], ["request", "metadata"], ["attributes"]];

function firstOf(line: unknown, paths: readonly (readonly string[])[]): unknown {
  for (const path of paths) {
    const found = follow(line, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

function follow(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const [at, name] of path.entries()) {
    found = unwrapped(found);
    if (Array.isArray(found) && /^\d+$/.test(name)) found = (found as unknown[])[Number(name)];
    else if (isRecord(found) && Object.hasOwn(found, name)) found = found[name];
    // Attribute names may hold dots themselves.
    else
      return isRecord(found) && Object.hasOwn(found, path.slice(at).join("."))
        ? found[path.slice(at).join(".")]
        : undefined;
  }
  return found;
}
