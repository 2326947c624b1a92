/** `rlcli sample`: one question to one or several models. Batches and conversations are in files of their own. */
import { text as textOf } from "node:stream/consumers";
import { answer, type Ending, type Piece, promptOf } from "../../chat/answer.ts";
import { fail } from "../../diagnostic.ts";
import type { Conversation } from "../../tokens/conversation.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { questionOf, SAMPLE_JSON_VERSION, type SampleFlags, seedOf, wholeAnswers, wishesOf } from "../sampling.ts";
import { renderColumns } from "../views/columns.ts";
import { safeText } from "../views/text.ts";
import { openVoices, serverFault, type Voice } from "../voices.ts";

/** Without a prompt, on a terminal, a conversation. */
export async function sample(context: CommandContext, names: readonly string[], flags: SampleFlags): Promise<ExitCode> {
  refuseMixture(names, flags);
  if (flags.input !== undefined) return (await import("./sample-batch.ts")).sampleBatch(context, names, flags);
  if (flags.prompt === undefined && process.stdin.isTTY && context.isTerminal && !context.isJson)
    return (await import("./chat.ts")).chat(context, names, flags);
  const question = questionOf(flags.prompt ?? (await readStdin()), flags.system);
  const { voices, close } = await openVoices(context, names.length > 0 ? names : [undefined], flags, "rlcli sample");
  const { stop } = context.interruption();
  const signal = AbortSignal.any([stop, context.outputClosed]);
  try {
    if (context.isTerminal && !context.isJson) await show(context, voices, question, flags, signal);
    else await print(context, voices, question, flags, signal);
    return EXIT.done;
  } catch (error) {
    if (context.outputClosed.aborted) return EXIT.done;
    if (stop.aborted) return EXIT.interrupted;
    return serverFault(error);
  } finally {
    await close();
  }
}

function refuseMixture([name]: readonly string[], flags: SampleFlags): void {
  const instead = (["checkpoint", "base", "model", "baseUrl"] as const).find((flag) => flags[flag] !== undefined);
  if (name !== undefined && instead !== undefined && !(instead === "baseUrl" && name.startsWith("tinker://"))) {
    const option = instead === "baseUrl" ? "--base-url" : `--${instead}`;
    fail("RL9003", `\`${name}\` names what to ask, and ${option} says to ask something else. Leave one of them out.`);
  }
  if (flags.input !== undefined && flags.prompt !== undefined)
    fail("RL9003", "--prompt is one question and --input a file of them. Leave one of them out.");
  if (flags.output !== undefined && flags.input === undefined)
    fail("RL9003", "--output is for the answers to --input FILE. Redirect standard output for a single one.");
}

async function readStdin(): Promise<string> {
  if (process.stdin.isTTY) fail("RL9003", "There is no prompt: give --prompt TEXT, or pipe one in.");
  const text = (await textOf(process.stdin)).replace(/\r?\n$/, "");
  if (text === "") fail("RL9003", "The prompt on standard input is empty.");
  return text;
}

/** For programs: what is said and nothing else, or as JSON lines. */
async function print(
  context: CommandContext,
  voices: readonly Voice[],
  question: Conversation,
  flags: SampleFlags,
  signal: AbortSignal,
): Promise<void> {
  const wishes = wishesOf(flags);
  const asked = voices.map(async ({ model }) =>
    wholeAnswers(model, promptOf(model, question, wishes), wishes, flags.num, signal),
  );
  for (const [i, answers] of (await Promise.all(asked)).entries()) {
    const name = voices.length > 1 ? (voices[i] as Voice).name : undefined;
    for (const one of answers) {
      if (!context.isJson) context.out(`${name === undefined ? "" : `${name}: `}${one.text}\n`);
      else
        context.out(
          `${JSON.stringify({ formatVersion: SAMPLE_JSON_VERSION, ...(name ? { model: name } : {}), ...answerJson(one) })}\n`,
        );
    }
  }
}

function answerJson({ text, tokens, reason }: Piece & Ending) {
  return {
    text,
    tokens: tokens.map(({ id }) => id),
    logprobs: tokens.map(({ logprob }) => logprob ?? null),
    stopReason: reason,
  };
}

/** For people: one model's answers as they come, those of several side by side. */
async function show(
  context: CommandContext,
  voices: readonly Voice[],
  question: Conversation,
  flags: SampleFlags,
  signal: AbortSignal,
): Promise<void> {
  const wishes = wishesOf(flags);
  const [first, second] = voices as readonly [Voice, ...Voice[]];
  if (second) {
    const asked = voices.map(async ({ name, model }) => {
      const answers = await wholeAnswers(model, promptOf(model, question, wishes), wishes, flags.num, signal);
      return { title: name, texts: answers.map(({ text }) => safeText(text)) };
    });
    context.out(renderColumns(await Promise.all(asked), context));
    return;
  }
  const prompt = promptOf(first.model, question, wishes);
  for (let i = 0; i < flags.num; i++) {
    for await (const { text } of answer(first.model, prompt, { ...seedOf(wishes, i), isStreamed: true }, signal))
      context.out(safeText(text));
    context.out("\n");
  }
}
