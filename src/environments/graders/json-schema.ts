/** `type: json_schema` — is the completion JSON of a given shape, and, where a field has the right value, that value? */
import type { ValidateFunction } from "ajv";
import { fail, messageOf } from "../../diagnostic.ts";
import { canonicalJson, type Json, type JsonObject } from "../../value.ts";
import type { Grade, GradeRequest, Grader } from "../grader.ts";

export interface JsonSchemaOptions {
  /** JSON Schema, draft 2020-12. */
  readonly schema: JsonObject;
  /** Field of the row with the right value; without it a valid shape is enough. */
  readonly answer?: string;
}

/** Throws RL7102 for a schema that is none. */
export async function jsonSchemaGrader(options: JsonSchemaOptions): Promise<Grader> {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  let validate: ValidateFunction;
  try {
    validate = new Ajv2020({ strict: false, allErrors: false }).compile(options.schema as object);
  } catch (error) {
    return fail("RL7102", `The schema of a json_schema grader cannot be used: ${messageOf(error)}.`);
  }
  return { grade: async (request) => gradeJson(request, options, validate), close: async () => {} };
}

function gradeJson(
  { completion, row }: GradeRequest,
  { answer }: JsonSchemaOptions,
  validate: ValidateFunction,
): Grade {
  const found = findJson(completion);
  if (!found) return { reward: 0, metrics: { parsed: 0, valid: 0 }, note: "no JSON found" };
  if (!validate(found.value)) {
    const [error] = validate.errors ?? [];
    return {
      reward: 0,
      metrics: { parsed: 1, valid: 0 },
      note: `${error?.instancePath || "the value"} ${error?.message ?? "is not valid"}`,
    };
  }
  if (answer === undefined) return { reward: 1, metrics: { parsed: 1, valid: 1 } };
  if (!(answer in row))
    fail("RL7101", `A row has no field \`${answer}\`. It has ${Object.keys(row).join(", ") || "no fields"}.`);
  const isRight = canonicalJson(found.value) === canonicalJson(row[answer]);
  return { reward: isRight ? 1 : 0, metrics: { parsed: 1, valid: 1, right: isRight ? 1 : 0 } };
}

/** The whole text, else the last fenced block, else the last balanced `{…}` or `[…]` that parses. */
export function findJson(text: string): { readonly value: Json } | undefined {
  const fenced = [...text.matchAll(/```(?:json)?\s*\n([\s\S]*?)```/g)].map((match) => match[1] as string).reverse();
  for (const candidate of [text, ...fenced]) {
    const parsed = parse(candidate);
    if (parsed) return parsed;
  }
  return lastBalanced(text);
}

function parse(text: string): { readonly value: Json } | undefined {
  try {
    return { value: JSON.parse(text) as Json };
  } catch {
    return undefined;
  }
}

/** Bounded, since texts may be all brackets. */
const MOST_TRIES = 200;

/** From the end: each closing bracket with the one that opens it, and where strings mislead that count, with those before. */
function lastBalanced(text: string): { readonly value: Json } | undefined {
  let tries = 0;
  for (let end = text.length - 1; end >= 0 && tries < MOST_TRIES; end--) {
    const close = text[end];
    if (close !== "}" && close !== "]") continue;
    const open = close === "}" ? "{" : "[";
    let start = openingOf(text, end, open, close);
    for (let more = 0; start >= 0 && more < 3; more++, start = start === 0 ? -1 : text.lastIndexOf(open, start - 1)) {
      tries += 1;
      const parsed = parse(text.slice(start, end + 1));
      if (parsed) return parsed;
    }
  }
  return undefined;
}

/** The opening bracket at which counting back from `end` comes to zero; the first of its kind if it never does. */
function openingOf(text: string, end: number, open: string, close: string): number {
  let depth = 0;
  for (let at = end; at >= 0; at--) {
    if (text[at] === close) depth += 1;
    else if (text[at] === open && --depth === 0) return at;
  }
  return text.indexOf(open);
}
