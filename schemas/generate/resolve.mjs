// The spec's schema describes what a user may write, for editors. By the time rlcli checks a spec, variables are filled in
// and shorthands expanded. This derives the schema of that form: without alternatives, so that a fault gives one error.

const INTERPOLATED = "#/$defs/interpolated";

/** The one branch of an `anyOf` that remains after interpolation and after expanding shorthands. */
function remainingBranch(schema) {
  const branches = schema.anyOf.filter((b) => b.$ref !== INTERPOLATED);
  if (branches.length === 1) return branches[0];
  if (schema["x-shorthand"]) return branches.at(-1);
  throw new Error(`anyOf with ${branches.length} branches that are neither interpolation nor a shorthand`);
}

/** Merges the remaining branch of an `anyOf` into its parent; the result may still hold a `$ref`. */
export function collapse(schema) {
  if (!schema.anyOf) return schema;
  const { anyOf: _, ...rest } = schema;
  return { ...rest, ...remainingBranch(schema) };
}

const DROPPED = new Set(["examples", "default", "not", "oneOf"]);

function walk(schema, isProperty) {
  const flat = collapse(schema);
  const out = {};
  for (const [key, value] of Object.entries(flat)) {
    if (key.startsWith("x-") || DROPPED.has(key) || (isProperty && key === "title")) continue;
    if (key === "properties" || key === "$defs")
      out[key] = Object.fromEntries(
        Object.entries(value).map(([name, sub]) => [name, walk(sub, key === "properties")]),
      );
    else if (["items", "additionalProperties", "propertyNames"].includes(key) && typeof value === "object")
      out[key] = walk(value, false);
    else out[key] = value;
  }
  return out;
}

export function resolvedForm(source) {
  const schema = walk(source, false);
  delete schema.properties.server;
  delete schema.$defs.interpolated;
  return schema;
}

const INTERPOLATED_TYPE = "`${string}\\${${string}}${string}`";

/** The schema of what a program may write, for types: shorthands and interpolation stay; properties are documented where they stand. */
export function sourceForm(source) {
  const untitled = (schema, isProperty) => {
    if (Array.isArray(schema)) return schema.map((inner) => untitled(inner, false));
    if (typeof schema !== "object" || schema === null) return schema;
    return Object.fromEntries(
      Object.entries(schema)
        .filter(([key]) => !((key === "title" && isProperty) || ["not", "oneOf"].includes(key)))
        .map(([key, value]) => {
          if (key !== "properties") return [key, untitled(value, false)];
          const inner = Object.entries(value).map(([name, property]) => [name, untitled(property, true)]);
          return [key, Object.fromEntries(inner)];
        }),
    );
  };
  const schema = untitled(source, false);
  schema.title = "SpecSource";
  schema.$defs.interpolated.tsType = INTERPOLATED_TYPE;
  return schema;
}
