// docs/reference/environment.md and exit-codes.md: topics that `rlcli explain` prints too, as pages.

function topicPage({ title, about, name, rows, head, more = "" }) {
  const lines = rows.map(({ term, about: words }) => `| \`${term}\` | ${words} |`);
  return `<!-- Generated from src/cli/pages.ts by schemas/generate.mjs; do not edit. -->

# ${title}

${about} \`rlcli explain ${name}\` prints this list.

| ${head} |
|---|---|
${lines.join("\n")}
${more}`;
}

export const environmentPage = (page) => topicPage({ ...page, title: "Environment variables", head: "variable |" });

export const exitCodesPage = (page) =>
  topicPage({
    ...page,
    title: "Exit codes",
    head: "code | meaning",
    more: `
The first Ctrl-C or SIGTERM lets a command reach a safe point: an apply stops at the end of its step with a checkpoint, and
exits with 1, since not all that was planned is done. The next \`rlcli plan\` offers to resume.

The result of a command goes to stdout, everything else to stderr. With \`--json\` the result is JSON, also that of a failure:
an object with \`formatVersion\` and \`diagnostics\` ([forms](json.md)). A reader that closes the pipe early (\`rlcli explain run | head\`) is no
failure.
`,
  });
