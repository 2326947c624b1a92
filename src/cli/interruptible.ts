/** Work without steps to stop between: a first Ctrl-C ends it, and what was not done is left as it was. */
import { type CommandContext, EXIT, type ExitCode } from "./context.ts";

/** Whatever `work` fails with once its signal is aborted is the interruption's doing. */
export async function interruptible(
  context: CommandContext,
  work: (signal: AbortSignal) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { stop } = context.interruption();
  try {
    return await work(stop);
  } catch (error) {
    if (!stop.aborted) throw error;
    context.err("Interrupted; nothing was changed.\n");
    return EXIT.failed;
  }
}
