/** Commands that look at and turn data: import, render. */
import { Option } from "commander";
import type { ImportFlags } from "../commands/import.ts";
import type { RenderFlags } from "../commands/render.ts";
import { bindSpecOptions, wholeNumber } from "../options.ts";
import type { Register } from "../register.ts";

const registerImport: Register = (program, run) => {
  program
    .command("import")
    .summary("turn other logs into rows to train on")
    .description("Reads chat logs and writes one row of messages a line. Statistics go to standard error.")
    .argument("<files...>", "JSONL files or globs, - for standard input")
    .addOption(
      new Option("-f, --format <format>", "form of the logs; auto looks")
        .choices(["auto", "messages", "openai"])
        .default("auto"),
    )
    .option("-o, --output <file>", "where to write, - for standard output", "-")
    .option("--min-messages <n>", "leave out shorter conversations", wholeNumber(1), 2)
    .option("--limit <n>", "at most this many rows", wholeNumber(1))
    .addOption(
      new Option("--tools <what>", "tool calls and their results (default: as the format has it)").choices([
        "keep",
        "drop",
      ]),
    )
    .action((files: string[], flags: ImportFlags) =>
      run(async (context) => (await import("../commands/import.ts")).importRows(context, files, flags)),
    );
};

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
