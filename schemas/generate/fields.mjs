// The schema as a flat table of fields per block: what a change does, what is referred to, defaults, words for people.
import { collapse } from "./resolve.mjs";

/** `$defs` entries that are blocks, in the order of the reference page; the spec's own top level comes first. */
const BLOCKS = ["variable", "server", "dataset", "loss", "environment", "run", "eval", "deployment"];

function deref(schema, root) {
  const flat = collapse(schema);
  if (!flat.$ref) return flat;
  const { $ref, ...rest } = flat;
  const target = deref(root.$defs[$ref.replace("#/$defs/", "")], root);
  return { ...target, ...rest };
}

/** Ranges as a reader says them; undefined where every value of the type is allowed. */
function rangeWords(s) {
  const low =
    s.exclusiveMinimum !== undefined
      ? `greater than ${s.exclusiveMinimum}`
      : s.minimum !== undefined
        ? `at least ${s.minimum}`
        : undefined;
  const high =
    s.exclusiveMaximum !== undefined
      ? `less than ${s.exclusiveMaximum}`
      : s.maximum !== undefined
        ? `at most ${s.maximum}`
        : undefined;
  return low && high ? `${low} and ${high}` : (low ?? high);
}

function typeOf(s) {
  if (s.const !== undefined) return "integer";
  if (s.enum) return "string";
  if (s.type === "array") return "list";
  if (s.type === "object") return s.properties ? "group" : "map";
  return Array.isArray(s.type) ? "scalar" : s.type;
}

function fieldOf(path, s, parent, parentPath, inherited) {
  const own = Object.entries(s["x-when"] ?? {})[0];
  const when = own ? { path: parentPath + own[0], values: own[1] } : inherited;
  const field = {
    path,
    title: s.title,
    description: s.description,
    type: typeOf(s),
    isRequired: (parent.required ?? []).includes(path.slice(parentPath.length)),
    change: s["x-change"],
    changeNote: s["x-change-note"],
    default: s.default,
    defaultText: s["x-default"],
    values: s.const !== undefined ? [s.const] : s.enum,
    range: rangeWords(s),
    form: s["x-form"] ?? s.items?.["x-form"],
    ref: s["x-ref"],
    isPath: s["x-path"],
    isSecret: s["x-secret"],
    shorthand: s["x-shorthand"],
    when,
    also: s["x-also"],
    examples: s.examples,
  };
  return Object.fromEntries(Object.entries(field).filter(([, v]) => v !== undefined));
}

/** Which of several keys must or may stand together: read from `oneOf` and `not` of `required` lists. */
function groupsOf(s, path) {
  const groups = [];
  if (s.oneOf) groups.push({ path, keys: s.oneOf.map((o) => o.required[0]), isRequired: true });
  if (s.not) groups.push({ path, keys: s.not.required, isRequired: false });
  return groups;
}

function collect(schema, root, prefix, out, inherited) {
  out.groups.push(...groupsOf(schema, prefix.replace(/\.$/, "")));
  for (const [key, raw] of Object.entries(schema.properties)) {
    const s = deref(raw, root);
    if (!s.title || !s.description || !s.examples)
      if (!s.properties) throw new Error(`${prefix}${key} lacks a title, a description or examples`);
    const field = fieldOf(prefix + key, s, schema, prefix, inherited);
    if (!field.change && field.type !== "group" && out.name !== "spec")
      throw new Error(`${out.name}.${field.path} lacks x-change`);
    out.fields.push(field);
    if (field.type === "group" && out.name !== "spec") collect(s, root, `${prefix}${key}.`, out, field.when);
  }
}

function blockOf(name, schema, root) {
  const block = { name, title: schema.title, description: schema.description, fields: [], groups: [] };
  collect(schema, root, "", block);
  return block;
}

export function fieldTable(root) {
  const blocks = [blockOf("spec", root, root), ...BLOCKS.map((name) => blockOf(name, root.$defs[name], root))];
  const code = `/** Generated from schemas/rlcli.schema.json by schemas/generate.mjs; do not edit. */
import type { BlockInfo, BlockName } from "./fields.ts";

export const BLOCKS: Readonly<Record<BlockName, BlockInfo>> = ${JSON.stringify(Object.fromEntries(blocks.map((b) => [b.name, b])), null, 1)};
`;
  return { blocks, code };
}
