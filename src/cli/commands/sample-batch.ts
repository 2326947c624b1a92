/**
 * `rlcli sample --input FILE.jsonl`: a question a line, an answer a line, in the same order. With --output, answers are kept in a file
 * beside it until the last is there: the same command after an interruption asks only what is left.
 */
import { existsSync, readFileSync, renameSync, statSync, truncateSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text as textOf } from "node:stream/consumers";
import type { AnswerWishes, ChatModel, Ending, Piece } from "../../chat/answer.ts";
import { promptOf } from "../../chat/answer.ts";
import { type Diagnostic, diagnostic, fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { digestJson, shortDigest } from "../../digest.ts";
import { Limit } from "../../environments/limit.ts";
import { isFileSystemError, readFault, syncFile, syncFolder } from "../../files.ts";
import { TinkerError } from "../../tinker/errors.ts";
import type { Conversation } from "../../tokens/conversation.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { questionOf, SAMPLE_JSON_VERSION, type SampleFlags, seedOf, wholeAnswers, wishesOf } from "../sampling.ts";
import { openVoices, serverFault, type Voice } from "../voices.ts";

interface Question {
  /** From 0. */
  readonly index: number;
  /** As the line gives it. */
  readonly id: unknown;
  readonly conversation: Conversation;
}

/** Most faults of a file that are told. */
const MOST_FAULTS = 20;

export async function sampleBatch(
  context: CommandContext,
  names: readonly string[],
  flags: SampleFlags,
): Promise<ExitCode> {
  const text = await readInput(context, flags.input as string);
  const questions = readQuestions(text, flags);
  const output = flags.output === undefined ? undefined : resolve(context.cwd, flags.output);
  if (output !== undefined && existsSync(output))
    fail("RL9004", `${flags.output} exists already. Give another file to --output, or remove it.`);
  const { voices, close } = await openVoices(context, names.length > 0 ? names : [undefined], flags, "rlcli sample");
  const { stop } = context.interruption();
  try {
    const answers = new Answers(context, output, partialName(output, text, voices, flags), voices.length * flags.num);
    const left = questions.slice(answers.done);
    if (answers.done > 0) context.err(`${answers.done} of ${questions.length} are there from before.\n`);
    const signal = AbortSignal.any([stop, context.outputClosed]);
    const failed = await askAll(
      left,
      flags.concurrency,
      (question) => askOne(question, voices, flags, signal),
      answers,
    );
    answers.finish();
    if (failed > 0) context.err(`${failed} of ${left.length} questions got no answer: see \`error\` in their lines.\n`);
    return failed > 0 ? EXIT.failed : EXIT.done;
  } catch (error) {
    if (context.outputClosed.aborted) return EXIT.done;
    if (stop.aborted) {
      context.err(
        output === undefined ? "Interrupted.\n" : "Interrupted. What has come is kept: the same command goes on.\n",
      );
      return EXIT.interrupted;
    }
    return serverFault(error);
  } finally {
    await close();
  }
}

async function readInput({ cwd }: CommandContext, input: string): Promise<string> {
  try {
    return input === "-" ? await textOf(process.stdin) : readFileSync(resolve(cwd, input), "utf8");
  } catch (error) {
    if (!isFileSystemError(error)) throw error;
    return fail("RL9009", `${input} ${readFault(error)}.`, { cause: error });
  }
}

/** All faults at once, before anything is asked. */
function readQuestions(text: string, { input, system }: SampleFlags): readonly Question[] {
  const faults: Diagnostic[] = [];
  const questions: Question[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const read = readQuestion(line, system);
    if (typeof read === "string") faults.push(diagnostic("RL9021", `Line ${i + 1} of ${input}: ${read}.`));
    else questions.push({ index: questions.length, ...read });
  }
  if (faults.length > 0) throw new RlcliError(faults.slice(0, MOST_FAULTS));
  if (questions.length === 0)
    fail("RL9021", `${input} has no questions: each line is {"prompt": "…"} or {"messages": […]}.`);
  return questions;
}

const ROLES: ReadonlySet<unknown> = new Set(["system", "developer", "user", "assistant", "tool"]);
const NEITHER = 'it has neither "prompt", a text, nor "messages", a list that ends with what is to be answered';

function readQuestion(line: string, system: string | undefined): Omit<Question, "index"> | string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    return `it is no JSON: ${messageOf(error)}`;
  }
  if (typeof value !== "object" || value === null) return NEITHER;
  const { id, prompt, messages, tools } = value as Readonly<Record<string, unknown>>;
  if (typeof prompt === "string" && messages != null) return 'it has both "prompt" and "messages": leave one out';
  if (typeof prompt === "string") return { id, conversation: questionOf(prompt, system) };
  const isList = Array.isArray(messages) && messages.length > 0 && messages.every((m) => typeof m?.role === "string");
  if (!isList) return NEITHER;
  const stranger = messages.find(({ role }) => !ROLES.has(role));
  // A template writes any role as it is, and the model has seen none such.
  if (stranger) return `the role "${stranger.role}" is none of ${[...ROLES].join(", ")}`;
  if (messages.at(-1).role === "assistant") return NEITHER;
  const known = messages.map((m) => (m.role === "developer" ? { ...m, role: "system" } : m));
  const before = system === undefined || known[0].role === "system" ? [] : [{ role: "system", content: system }];
  return {
    id,
    conversation: { messages: [...before, ...known], ...(Array.isArray(tools) ? { tools } : {}) },
  };
}

/** Answers to the same questions, by the same weights and settings, go on in the same file. */
function partialName(
  output: string | undefined,
  text: string,
  voices: readonly Voice[],
  flags: SampleFlags,
): string | undefined {
  if (output === undefined) return undefined;
  const settings = { ...wishesOf(flags), num: flags.num, system: flags.system };
  const asked = voices.map(({ weightsName }) => weightsName);
  return `${output}.${shortDigest(digestJson({ text, asked, settings }))}.partial`;
}

/** Lines in the order of the questions: each is written whole, and the file appears under its name once it is complete. */
class Answers {
  /** Questions whose lines are all there. */
  readonly done: number;
  readonly #context: CommandContext;
  readonly #output: string | undefined;
  readonly #partial: string | undefined;

  constructor(context: CommandContext, output: string | undefined, partial: string | undefined, linesEach: number) {
    this.#context = context;
    this.#output = output;
    this.#partial = partial;
    this.done = partial === undefined ? 0 : keepWhole(partial, linesEach);
  }

  async add(lines: readonly object[]): Promise<void> {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    if (this.#partial === undefined) this.#context.out(text);
    else await appendFile(this.#partial, text);
  }

  finish(): void {
    if (this.#partial === undefined || this.#output === undefined) return;
    syncFile(this.#partial);
    renameSync(this.#partial, this.#output);
    syncFolder(resolve(this.#output, ".."));
  }
}

/** Cuts off what a crash left of a question that was being written; tells how many questions are answered. */
function keepWhole(path: string, linesEach: number): number {
  if (!existsSync(path)) return 0;
  const bytes = readFileSync(path);
  const ends: number[] = [];
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) ends.push(at + 1);
  const done = Math.floor(ends.length / linesEach);
  const end = done === 0 ? 0 : (ends[done * linesEach - 1] as number);
  if (end < statSync(path).size) truncateSync(path, end);
  return done;
}

/** How many more questions may have their answer than are under way, while an earlier one is not answered. */
const AHEAD = 8;

/** Asks so many at a time and hands the answers on in order; tells how many failed. */
async function askAll(
  questions: readonly Question[],
  concurrency: number,
  ask: (question: Question) => Promise<readonly object[]>,
  answers: Answers,
): Promise<number> {
  const limit = new Limit(concurrency);
  const waiting: Promise<readonly object[]>[] = [];
  let failed = 0;
  const take = async () => {
    const lines = await (waiting.shift() as Promise<readonly object[]>);
    if (lines.some((line) => "error" in line)) failed += 1;
    await answers.add(lines);
  };
  for (const question of questions) {
    const asked = limit.run(() => ask(question));
    // Whoever takes it sees its fault.
    asked.catch(() => {});
    waiting.push(asked);
    if (waiting.length >= concurrency * AHEAD) await take();
  }
  while (waiting.length > 0) await take();
  return failed;
}

async function askOne(
  { index, id, conversation }: Question,
  voices: readonly Voice[],
  flags: SampleFlags,
  signal: AbortSignal,
): Promise<readonly object[]> {
  signal.throwIfAborted();
  // Equal questions get answers of their own, and the same ones whatever else is asked at the time.
  const wishes = seedOf(wishesOf(flags), index * flags.num);
  const asked = voices.map(async ({ name, model }) => {
    const common = {
      formatVersion: SAMPLE_JSON_VERSION,
      index,
      ...(id === undefined ? {} : { id }),
      ...(voices.length > 1 ? { model: name } : {}),
    };
    return (await linesOf(model, conversation, wishes, flags.num, signal)).map((line) => ({ ...common, ...line }));
  });
  return (await Promise.all(asked)).flat();
}

/** What is wrong with this question alone is told in its lines, and the others go on. */
async function linesOf(
  model: ChatModel,
  conversation: Conversation,
  wishes: AnswerWishes,
  count: number,
  signal: AbortSignal,
): Promise<readonly object[]> {
  try {
    const prompt = promptOf(model, conversation, wishes);
    const answers = await wholeAnswers(model, prompt, wishes, count, signal);
    return answers.map((one, sample) => ({ sample, ...lineOf(one, prompt) }));
  } catch (error) {
    const fault = faultOf(error);
    if (!fault) throw error;
    return Array.from({ length: count }, (_, sample) => ({ sample, error: fault }));
  }
}

const lineOf = ({ text, tokens, reason }: Piece & Ending, prompt: Int32Array) => ({
  text,
  stopReason: reason,
  promptTokens: prompt.length,
  answerTokens: tokens.length,
});

function faultOf(error: unknown): { readonly code: string; readonly detail: string } | undefined {
  const [first] = error instanceof RlcliError ? error.diagnostics : [];
  if (first) return { code: first.code, detail: first.detail };
  const isOwn =
    error instanceof TinkerError &&
    error.status !== undefined &&
    (error.kind === "rejected" || error.kind === "failed");
  return isOwn && error.status !== 401 && error.status !== 403 ? { code: "RL5013", detail: error.message } : undefined;
}
