/** Commands that look at and turn data: import, render. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { ImportFlags } from "../commands/import.ts";
import type { RenderFlags } from "../commands/render.ts";
import { anyNumber, bindSpecOptions, repeat, share, shareBelowOne, wholeNumber } from "../options.ts";
import type { Register } from "../register.ts";

/** Forms of logs that an import knows by name. */
export const FORMAT_NAMES = [
  "auto",
  "messages",
  "openai",
  "anthropic",
  "langsmith",
  "litellm",
  "claude-code",
  "codex",
  "langfuse",
  "otel",
  "alpaca",
];

const registerImport: Register = (program, run) => {
  const command = program
    .command("import")
    .summary("turn other logs into rows to train on")
    .description("Reads chat logs and writes one row of messages a line. Statistics go to standard error.")
    .argument(
      "<files...>",
      "files, globs or folders, https:// and s3:// addresses, - for standard input; also compressed by gzip",
    )
    .addOption(
      new Option("-f, --format <format>", "form of the logs; auto looks").choices(FORMAT_NAMES).default("auto"),
    )
    .option("-o, --output <file>", "where to write, - for standard output", "-");
  bindImportRules(command);
  bindImportLimits(command);
  command
    .option("--emit-spec", "print the dataset of a spec that this command stands for")
    .action((files: string[], flags: ImportFlags) =>
      run(async (context) => (await import("../commands/import.ts")).importRows(context, files, flags)),
    );
};

/** Below a half, nothing could be compared but all with all. */
function nearShare(text: string): number {
  const value = share(text);
  if (value < 0.5) throw new InvalidArgumentError("It takes a number from 0.5 to 1.");
  return value;
}

/** What a conversation must be, and what of it becomes the row. */
function bindImportRules(command: Command): void {
  command
    .option("--keep-tools", "keep tool calls, their results and tool definitions")
    .option("--keep-thinking", "keep the model's thinking, as reasoning_content")
    .option("--role-prefix <role=prefix>", "turns that begin with the prefix have the role, as assistant=AI:", repeat)
    .addOption(new Option("--choices <which>", "answers of a response that become rows").choices(["first", "all"]))
    .option("--min-messages <n>", "leave out shorter conversations", wholeNumber(1), 2)
    .option("--max-tokens <n>", "leave out longer conversations; needs --model", wholeNumber(1))
    .option("--model <model>", "count tokens with builtin:tiny or a model folder")
    .option("--where <condition>", "take only lines where it holds, as in metadata.env=prod", repeat)
    .option("--min-score <x>", "take only conversations whose feedback scores at least this", anyNumber)
    .addOption(new Option("--weight-by <what>", "scale the loss of each row").choices(["score"]))
    .option("--redact", "replace personal data and secrets by placeholders")
    .option("--redact-names <file>", "also these names, one a line")
    .option("--redact-pattern <regex>", "also what matches", repeat);
}

/** How many rows, which of them, and what is borne. */
function bindImportLimits(command: Command): void {
  command
    .addOption(
      new Option(
        "--dedupe <how>",
        "equal conversations once; prefix: only the longest of growing ones (default for logs); near: also the first of nearly equal ones",
      ).choices(["none", "exact", "prefix", "near"]),
    )
    .option(
      "--near-threshold <x>",
      "share of word 5-grams that nearly equal ones have in common (default: 0.8)",
      nearShare,
    )
    .option("--limit <n>", "at most this many rows", wholeNumber(1))
    .option("--sample <n>", "so many rows, chosen by a hash of their content", wholeNumber(1))
    .option("--seed <n>", "choose other rows for the sample", wholeNumber(0))
    .addOption(new Option("--split <side>", "one side of a split by a stable hash").choices(["train", "test"]))
    .option("--test-share <x>", "share of the test side (default: 0.1)", shareBelowOne)
    .option("--strict", "fail at the first damaged line")
    .option("--max-errors <n>", "fail when more lines are damaged", wholeNumber(0))
    .option("--max-line-bytes <n>", "leave out longer lines (default: 16 MiB)", wholeNumber(1024))
    .option("--dropped <file>", "also write every line left out, as {file, line, column, kind, reason}")
    .option("--stats", "also say roles and lengths")
    .option(
      "--threads <n>",
      "threads for large files beside the main one (default: one less than there are processors)",
      wholeNumber(0),
    );
}

const registerRender: Register = (program, run) => {
  bindSpecOptions(program.command("render"))
    .summary("show the tokens that a model is trained on")
    .description(
      "Renders a row of a run, or any conversation, with the model's own template: text coloured by what is trained, or with --json one line of token ids and loss weights for each training example.",
    )
    .argument("[run]", "run of the spec")
    .option("--row <n>", "row of the run's dataset, from 1", wholeNumber(1))
    .option("--model <model>", "without a run: builtin:tiny or a model folder")
    .option("--messages <file>", "without a run: JSON or JSONL of messages, - for standard input")
    .option("--tools <file>", "JSON list of tool definitions")
    .option("--template-kwargs <json>", "variables for the chat template")
    .option("--generation-prompt", "add the prompt for the next answer")
    .addOption(new Option("--train-on <what>", "turns to train").choices(["all_assistant", "last_assistant", "all"]))
    .option("--max-length <n>", "cut at so many tokens", wholeNumber(1))
    .action((name: string | undefined, flags: RenderFlags) =>
      run(async (context) => (await import("../commands/render.ts")).render(context, name, flags)),
    );
};

export const DATA_COMMANDS: readonly Register[] = [registerImport, registerRender];
