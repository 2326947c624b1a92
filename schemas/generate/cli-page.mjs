// docs/reference/cli.md: every command with its arguments and options, from the tables that the program itself parses by.

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ");

function optionTable(all) {
  const options = all.filter(({ hidden }) => !hidden);
  if (options.length === 0) return [];
  const rows = options.map((option) => {
    const choices = option.argChoices ? ` (${option.argChoices.map((c) => `\`${c}\``).join(", ")})` : "";
    const fallback =
      option.defaultValue === undefined || option.negate ? "" : `\`${JSON.stringify(option.defaultValue)}\``;
    return `| \`${cell(option.flags)}\` | ${fallback} | ${cell(option.description)}${choices} |`;
  });
  return [["| option | default | meaning |", "|---|---|---|", ...rows].join("\n")];
}

function usage(command, path) {
  const args = command.registeredArguments.map((a) => {
    const name = a.variadic ? `${a.name()}...` : a.name();
    return a.required ? `<${name}>` : `[${name}]`;
  });
  return [path, ...(command.options.length > 0 ? ["[options]"] : []), ...args].join(" ");
}

/** Without commands that only programs call. */
const visible = (command) => command.commands.filter((inner) => !inner._hidden);

/** A command that can be run has to show how. */
function exampleBlock(command, path, examplesOf) {
  const examples = examplesOf(path.replace(/^rlcli /, ""));
  if (examples.length === 0 && command.commands.length > 0) return [];
  if (examples.length === 0) throw new Error(`${path} has no examples: add some to src/cli/examples.ts`);
  const lines = examples.map(({ line, about }) => `# ${about}\n${line}`);
  return [`\`\`\`sh\n${lines.join("\n")}\n\`\`\``];
}

function section(command, path, level, examplesOf) {
  const args = command.registeredArguments
    .filter((a) => a.description)
    .map((a) => `- \`${a.name()}\`: ${a.description}`);
  const own =
    command.commands.length > 0 && command.registeredArguments.length === 0 && command.options.length === 0
      ? []
      : [`    ${usage(command, path)}`];
  return [
    `${"#".repeat(level)} ${path}`,
    command.description(),
    ...own,
    ...(args.length > 0 ? [args.join("\n")] : []),
    ...exampleBlock(command, path, examplesOf),
    ...optionTable(command.options),
    ...visible(command).flatMap((sub) => section(sub, `${path} ${sub.name()}`, level + 1, examplesOf)),
  ].filter((part) => part !== "");
}

export function cliPage(program, examplesOf) {
  const parts = visible(program).flatMap((command) => section(command, `rlcli ${command.name()}`, 2, examplesOf));
  return `<!-- Generated from src/cli/register.ts by schemas/generate.mjs; do not edit. -->

# Commands

\`rlcli COMMAND --help\` prints the same. Exit codes: [exit-codes.md](exit-codes.md). Which flag is which field of a spec, and the flags of
the Python predecessor: [flags.md](flags.md).

## Global options

${optionTable(program.options).join("\n\n")}

${parts.join("\n\n")}
`;
}
