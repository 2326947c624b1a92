/**
 * Flags of the Python predecessor that are no field's own name: each becomes what it meant there, or says what to write instead. They are
 * hidden from `--help`; docs/reference/flags.md lists them beside the fields that they are.
 */
import { type Command, Option } from "commander";
import { fail } from "../diagnostic.ts";

/** Durations as the spec writes them; a bare number is seconds, as the predecessor has it. For commander. */
export const duration = (value: string): string => (/^\d+$/.test(value) ? `${value}s` : value);

const hidden = (flags: string, description: string): Option => new Option(flags, description).hideHelp();

export interface PredecessorRunFlags {
  readonly renderer?: string;
  readonly logPath?: string;
}

export const bindRunFlags = (command: Command): Command =>
  command
    .addOption(
      hidden("--renderer <name>", "the model's own chat template is used; `*_disable_thinking` turns thinking off"),
    )
    .addOption(hidden("--log-path <dir>", "folder for spec, state and run record (default: under .rlcli/adhoc)"));

/**
 * `template_kwargs` of a renderer's name. Text is made of messages by the template that the model ships, so a name that asks for another is
 * refused (RL9003): the same model would be trained on other tokens than the user means.
 */
export function rendererKwargs(name: string | undefined): Readonly<Record<string, boolean>> | undefined {
  if (name === undefined || name === "auto") return undefined;
  if (name.endsWith("_disable_thinking")) return { enable_thinking: false };
  return fail(
    "RL9003",
    `There is no renderer \`${name}\` to choose: rlcli renders with the chat template that the model ships. Leave --renderer out; \`rlcli render --model MODEL --messages FILE\` shows what becomes of a conversation. Variables of the template are \`template_kwargs\` in a spec.`,
  );
}

export const bindHarborFlags = (command: Command): Command =>
  command
    .addOption(hidden("--sandbox <kind>", "where tasks are tried").choices(["docker"]))
    .addOption(hidden("--sandbox-timeout <duration>", "a container ends by itself after this").argParser(duration));

/** Where SkyRL's checkpoints lie is not a flag's to say: the state of a project has to find them. */
export const bindServeFlags = (command: Command): Command =>
  command.addOption(hidden("--checkpoints-base <dir>", "checkpoints lie in .rlcli/servers/NAME/checkpoints"));

export function refuseCheckpointsBase(folder: string | undefined): void {
  if (folder === undefined) return;
  fail(
    "RL9003",
    `rlcli keeps a server's checkpoints under .rlcli, where runs, state and \`rlcli prune\` find them. To have them on another disk, make .rlcli a link before the first start: \`ln -s ${folder} .rlcli\`.`,
  );
}
