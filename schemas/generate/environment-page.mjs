// docs/reference/environment.md: the variables of the environment that rlcli reads.

export function environmentPage({ about, rows }) {
  const lines = rows.map(({ term, about: words }) => `| \`${term}\` | ${words} |`);
  return `<!-- Generated from src/cli/pages.ts by schemas/generate.mjs; do not edit. -->

# Environment variables

${about} \`rlcli explain environment-variables\` prints this list.

| variable | |
|---|---|
${lines.join("\n")}
`;
}
