// docs/reference/spec.md: every field of rlcli.yaml.

const CHANGE_WORDS = {
  replace: "replaces it",
  restart: "restarts it",
  extend: "extends it",
  update: "updates it in place",
  none: "does nothing to what exists",
  rule: "depends: see `rlcli explain`",
};

const HEADINGS = {
  spec: "The file",
  variable: "`variables.NAME`",
  server: "`servers.NAME`",
  dataset: "`datasets.NAME`",
  loss: "`losses.NAME`",
  environment: "`environments.NAME`",
  run: "`runs.NAME`",
  eval: "`evals.NAME`",
  deployment: "`deployments.NAME`",
};

const code = (value) => `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;

function defaultWords(field) {
  if (field.isRequired) return "**required**";
  if (field.default !== undefined) return code(field.default);
  return field.defaultText ?? "";
}

function valueWords(field) {
  if (field.values) return field.values.map(code).join(", ");
  const type = { integer: "whole number", string: "text", group: "block", scalar: "text, number or boolean" }[
    field.type
  ];
  return [type ?? field.type, field.range, field.form].filter(Boolean).join("; ");
}

function row(field) {
  const only = field.when ? ` Only with ${field.when.path} ${field.when.values.map(code).join(", ")}.` : "";
  const change = field.change ? CHANGE_WORDS[field.change] : "";
  const cells = [code(field.path), valueWords(field), defaultWords(field), change, field.description + only];
  return `| ${cells.map((c) => c.replaceAll("|", "\\|")).join(" | ")} |`;
}

function groupWords(group) {
  const keys = group.keys.map(code).join(", ");
  const where = group.path ? ` in \`${group.path}\`` : "";
  return group.isRequired ? `Exactly one of ${keys}${where}.` : `At most one of ${keys}${where}.`;
}

export function specPage(blocks) {
  const sections = blocks.map((block) =>
    [
      `## ${HEADINGS[block.name]}`,
      block.description,
      ["| field | value | default | a change | meaning |", "|---|---|---|---|---|", ...block.fields.map(row)].join(
        "\n",
      ),
      ...block.groups.map(groupWords),
    ].join("\n\n"),
  );
  return `<!-- Generated from schemas/rlcli.schema.json by schemas/generate.mjs; do not edit. -->

# rlcli.yaml

Every field of the spec. \`rlcli explain run.learning_rate\` says the same for one field.

${sections.join("\n\n")}
`;
}
