/** The one tool of an agent in a sandbox. */
import type { ToolCall } from "../../tokens/calls.ts";

/** As chat-completions APIs describe it, for the model's template. */
export const BASH_TOOL = {
  type: "function",
  function: {
    name: "bash",
    description:
      "Runs a bash command in the sandbox and answers with its exit code, stdout and stderr. Every call is a new shell: variables and the directory do not carry over. Background processes go on.",
    parameters: {
      type: "object",
      properties: { command: { type: "string", description: "The command." } },
      required: ["command"],
    },
  },
} as const;

/** The command of a call; what is wrong with it otherwise. */
export function commandOf({
  name,
  arguments: given,
}: ToolCall): { readonly command: string } | { readonly error: string } {
  if (name !== "bash") return { error: `There is no tool ${name}. There is bash.` };
  const { command, ...others } = given;
  if (typeof command !== "string") return { error: 'bash needs "command", a text.' };
  const [other] = Object.keys(others);
  if (other !== undefined) return { error: `bash has no parameter "${other}". It has "command".` };
  if (command.includes("\0")) return { error: "A command must not contain a NUL character." };
  return { command };
}
