/** `rlcli sample RUN` on a terminal, without a prompt: a conversation. */
import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { LineScreen } from "../chat/screen.ts";
import { Talk } from "../chat/talk.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { type SampleFlags, wishesOf } from "../sampling.ts";
import { openVoices, serverFault } from "../voices.ts";

export async function chat(context: CommandContext, names: readonly string[], flags: SampleFlags): Promise<ExitCode> {
  const { voices, close } = await openVoices(context, names.length > 0 ? names : [undefined], flags, "rlcli sample");
  const screen = new LineScreen({ input: process.stdin, output: process.stdout, isTerminal: true });
  // A Ctrl-C that comes as a signal (another process sends it) does what the key does.
  const interrupt = () => screen.interrupt();
  process.on("SIGINT", interrupt);
  try {
    const { style } = context;
    await new Talk(screen, { voices, wishes: wishesOf(flags), system: flags.system, style, save: save(context) }).run();
    return EXIT.done;
  } catch (error) {
    return serverFault(error);
  } finally {
    process.off("SIGINT", interrupt);
    screen.close();
    await close();
  }
}

/** A file of the user's is never overwritten. */
const save =
  ({ cwd }: CommandContext) =>
  (path: string, text: string): void => {
    const file = resolve(cwd, path);
    if (existsSync(file)) fail("RL9004", `${path} exists already.`);
    try {
      writeFileSync(file, text, { flag: "wx" });
    } catch (error) {
      fail("RL9007", `${path} cannot be written: ${messageOf(error)}.`, { cause: error });
    }
  };
