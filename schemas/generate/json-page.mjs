// docs/reference/json.md: what each command prints with --json, from schemas/output.schema.json. A command that is missing there is an error.

const typeWords = (schema) => {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ");
  if (schema.$ref) return linkOf(schema.$ref);
  if (schema.type === "array") return `list of ${typeWords(schema.items ?? {})}`;
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  if (schema.type === "object" && schema.required)
    return `{ ${Object.keys(schema.properties)
      .map((name) => (schema.required.includes(name) ? name : `${name}?`))
      .join(", ")} }`;
  return schema.type ?? "any";
};

const linkOf = (ref) => {
  if (ref === "#/$defs/address") return "address";
  const [file, inner] = ref.split("#/$defs/");
  return file === "" ? `\`${inner}\`` : `[${inner ?? file.replace(".schema.json", "")}](../../schemas/${file})`;
};

const cell = (text) => text.replaceAll("|", "\\|");

function formSection(name, schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([key, value]) => {
    const isOptional = !schema.required?.includes(key);
    return `| \`${key}\`${isOptional ? " (not always)" : ""} | ${cell(typeWords(value))} | ${cell(value.description ?? "")} |`;
  });
  const forms = (schema.oneOf ?? []).flatMap((one) => one.allOf ?? [one]);
  const body =
    rows.length > 0
      ? [["| member | is | |", "|---|---|---|", ...rows].join("\n")]
      : forms.map(
          (one) =>
            `- ${Object.keys(one.properties)
              .map((key) => `\`${key}\``)
              .join(", ")}`,
        );
  return [`### ${name}`, ...(schema.description ? [schema.description] : []), body.join("\n")].join("\n\n");
}

/** Names of all commands that can be run, as `train sl`. */
function leavesOf(command, path = []) {
  const inner = command.commands.filter((one) => !one._hidden);
  return inner.length === 0 ? [path.join(" ")] : inner.flatMap((one) => leavesOf(one, [...path, one.name()]));
}

export function jsonPage(program, { "x-commands": commands, $defs: forms }) {
  const leaves = leavesOf(program);
  const missing = leaves.filter((name) => commands[name] === undefined);
  const gone = Object.keys(commands).filter((name) => !leaves.includes(name));
  if (missing.length + gone.length > 0)
    throw new Error(
      `x-commands of schemas/output.schema.json lacks [${missing}] and has [${gone}], which are no commands`,
    );
  const rows = leaves.map((name) => {
    const { prints, schema, orElse, why } = commands[name];
    const form = prints === "text" ? why : [schema, orElse].filter(Boolean).map(linkOf).join(", or without changes ");
    const how = { document: "one document", lines: "an object a line", text: "text" }[prints];
    return `| \`${name}\` | ${how} | ${form} |`;
  });
  const sections = Object.entries(forms)
    .filter(([name]) => name !== "address")
    .map(([name, schema]) => formSection(name, schema));
  return `<!-- Generated from schemas/output.schema.json by schemas/generate.mjs; do not edit. -->

# Output as JSON

Every command takes \`--json\`. Its result then goes to stdout as JSON with a \`formatVersion\`, in the forms below
([schema](../../schemas/output.schema.json)); progress and questions stay on stderr. A command that fails prints
[diagnostics](../../schemas/diagnostics.schema.json) instead and exits with 1. Members may be added to a form; when one is taken away or changes its
meaning, \`formatVersion\` rises.

| command | prints | form |
|---|---|---|
${rows.join("\n")}

## Forms

${sections.join("\n\n")}
`;
}
