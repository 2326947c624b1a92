// docs/diagnostics.md: the table of codes, by family.

const FAMILIES = {
  RL1: "Spec",
  RL2: "Plan",
  RL3: "State",
  RL4: "Apply",
  RL5: "Servers and protocol",
  RL6: "Datasets",
  RL7: "Environments",
  RL8: "Training",
  RL9: "Command line",
};

function section(family, title, codes) {
  const entries = Object.entries(codes)
    .filter(([code]) => code.startsWith(family))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, info]) => {
      const severity = info.severity === "warning" ? " (warning)" : "";
      return `### <a id="${code.toLowerCase()}"></a>${code}: ${info.summary}${severity}\n\n${info.explanation}\n\n**What to do:** ${info.next}`;
    });
  return entries.length === 0 ? [] : [`## ${title}\n\n${entries.join("\n\n")}`];
}

export function diagnosticsPage(codes) {
  const sections = Object.entries(FAMILIES).flatMap(([family, title]) => section(family, title, codes));
  return `<!-- Generated from src/codes.ts by schemas/generate.mjs; do not edit. -->

# Diagnostics

Every message of rlcli about something that you can mend has a code. \`rlcli explain CODE\` prints the entry of this page; each has an anchor
of its own (\`diagnostics.md#rl1101\`).

${sections.join("\n\n")}
`;
}
