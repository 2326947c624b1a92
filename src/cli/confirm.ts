/** Asks before something is done. Only `yes` goes on; Ctrl-C, Ctrl-D and the end of the input are a no. */
import { createInterface } from "node:readline/promises";
import { fail } from "../diagnostic.ts";
import type { CommandContext } from "./context.ts";

interface Question {
  readonly question: string;
  /** What else can be done where nobody can be asked. */
  readonly otherwise: string;
}

/** Throws RL9008 where nobody can be asked: the plan goes to stdout, the question to stderr, and both have to be seen. */
export async function confirm(context: CommandContext, { question, otherwise }: Question): Promise<boolean> {
  if (!context.isTerminal || process.stderr.isTTY !== true || context.isJson)
    fail("RL9008", `Nobody can be asked here, so nothing was changed. ${otherwise}`);
  const isAgreed = await askYes(`\n${context.errStyle.bold(`${question} Only \`yes\` goes on:`)} `, process);
  if (!isAgreed) context.err("Nothing was changed.\n");
  return isAgreed;
}

interface Streams {
  readonly stdin: NodeJS.ReadableStream;
  readonly stderr: NodeJS.WritableStream;
}

export async function askYes(question: string, { stdin, stderr }: Streams): Promise<boolean> {
  const prompt = createInterface({ input: stdin, output: stderr });
  // An input that ends closes the prompt and leaves its question open for ever; Ctrl-C rejects it.
  const closed = new Promise<undefined>((resolve) => prompt.once("close", () => resolve(undefined)));
  const answered = prompt.question(question).catch(() => undefined);
  const answer = await Promise.race([answered, closed]);
  prompt.close();
  if (answer === undefined) stderr.write("\n");
  return answer?.trim() === "yes";
}
