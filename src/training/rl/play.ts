/**
 * Plays episodes: asks the policy, hands its answers to the environment, and goes on until there is a grade. A fault of one
 * attempt (its grader, a sample, a sandbox) costs that attempt only; a fault that would meet all of them is thrown.
 */
import { diagnostic, RlcliError } from "../../diagnostic.ts";
import type { SamplingOrder } from "../../environment-order.ts";
import type { Environment, Episode, Response } from "../../environments/environment.ts";
import type { ChatMessage, Grade, Reply } from "../../environments/grader.ts";
import type { Limit } from "../../environments/limit.ts";
import { allFinite } from "../../tinker/check.ts";
import type { SampledSequence, SamplingParams } from "../../tinker/data.ts";
import { TinkerError } from "../../tinker/errors.ts";
import type { Sampler } from "../../tinker/sampler.ts";
import type { Renderer } from "../../tokens/renderer.ts";
import { seedOf } from "../random.ts";
import { WORK_LIMIT_MS } from "../run.ts";
import type { Attempt, Place, Rollout, RolloutTurn } from "./rollout.ts";

export interface Player {
  readonly environment: Environment;
  readonly renderer: Renderer;
  readonly sampler: Sampler;
  readonly sampling: SamplingOrder;
  readonly templateKwargs: Readonly<Record<string, unknown>>;
  /** Step after which the sampler's weights were taken. */
  readonly weights: number;
  readonly seed: number;
  /** Requests to the server at once. */
  readonly limit: Limit;
  /** First number of the sampler's that is this player's own. */
  readonly firstSeq: number;
  readonly signal: AbortSignal;
  /** Told now and then what is being waited for. */
  onWaiting?(what: string, waitedMs: number): void;
}

/** The attempts at one task. */
export interface GroupOrder {
  /** Decides, with the player's seed, what is sampled. */
  readonly step: number;
  readonly group: number;
  readonly task: number;
  readonly count: number;
}

/** How often a sample is asked for again after the server failed it. */
const SAMPLE_RETRIES = 2;
/**
 * A sample's number tells it from all others of its sampler: its place in its batch, its batch (a sampler serves only a few, one
 * after another), its try. Another player's begin behind all of these.
 */
const SEQ_OF_A_BATCH = 2 ** 36;
const BATCHES = 128;
const SEQ_OF_A_TRY = SEQ_OF_A_BATCH * BATCHES;
/** Numbers of samples that one player has to itself. */
export const SEQ_OF_A_PLAYER = 8 * SEQ_OF_A_TRY;

export async function playGroup(player: Player, order: GroupOrder): Promise<readonly Attempt[]> {
  const { environment, signal } = player;
  const opened = await Promise.allSettled(
    Array.from({ length: order.count }, () => environment.open(order.task, signal)),
  );
  const closing = new Map<Episode, Promise<void>>();
  const close = (episode: Episode): Promise<void> => {
    const known = closing.get(episode) ?? episode.close();
    closing.set(episode, known);
    return known;
  };
  try {
    const episodes = opened.map((result) => (result.status === "fulfilled" ? result.value : lossOf(result.reason)));
    const first = episodes.find((episode): episode is Episode => "respond" in episode);
    const answers = first && (await firstAnswers(player, order, first));
    const attempts = episodes.map(async (episode, index): Promise<Attempt> => {
      const place = { group: order.group, index, task: order.task };
      if (!("respond" in episode)) return { ...place, fault: episode };
      if (answers === undefined || "code" in answers) return { ...place, fault: answers ?? NO_EPISODE };
      const turn = answers[index] as RolloutTurn;
      const attempting = new Attempting(player, order, index, episode);
      const played = attempting.play(turn).then(
        (grade) => rolloutOf(place, attempting.turns, grade, player.weights),
        (error) => ({ ...place, fault: lossOf(error), turns: attempting.turns }),
      );
      // Whoever is done makes room at once: others of its group may be waiting for the place that it holds.
      return played.finally(() => close(episode));
    });
    return await settled(attempts);
  } finally {
    await settled(opened.map(async (result) => (result.status === "fulfilled" ? close(result.value) : undefined)));
  }
}

const NO_EPISODE: Fault = { code: "RL7104", message: "The episode could not be opened." };

interface Fault {
  readonly code: string;
  readonly message: string;
}

function rolloutOf(
  { group, index, task }: Place,
  turns: readonly RolloutTurn[],
  { reward, metrics, note }: Grade,
  weights: number,
): Rollout {
  // Of −0 JSON keeps no sign.
  const rollout = { group, index, task, turns, reward: reward + 0, metrics, weights };
  return note === undefined ? rollout : { ...rollout, note };
}

/** All of them, once none is at work any more; the first fault that is not one attempt's own is thrown. */
async function settled<T>(works: readonly Promise<T>[]): Promise<readonly T[]> {
  const results = await Promise.allSettled(works);
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
  return results.map((result) => (result as PromiseFulfilledResult<T>).value);
}

/** Faults after which the next attempt would fare no better, or which say that the model is gone. */
export const FATAL_CODES: ReadonlySet<string> = new Set(["RL7102", "RL7301", "RL5012"]);

/** What an attempt was lost to. Throws what concerns more than this attempt. */
function lossOf(error: unknown): Fault {
  if (error instanceof RlcliError) {
    const [first] = error.diagnostics;
    if (first && !FATAL_CODES.has(first.code)) return { code: first.code, message: first.detail };
  }
  if (error instanceof TinkerError && (error.kind === "failed" || error.kind === "rejected") && error.status !== 401) {
    return { code: "RL8008", message: error.message };
  }
  throw error;
}

/** The first answers of a whole group in one request: all its attempts are asked the same. */
async function firstAnswers(
  player: Player,
  order: GroupOrder,
  episode: Episode,
): Promise<readonly RolloutTurn[] | Fault> {
  const { messages } = episode;
  const prompt = encodeFresh(player, messages, episode);
  if (!fits(player, prompt, episode)) {
    const message = `The task itself has ${prompt.length} tokens, and an answer of ${player.sampling.max_tokens} more does not fit into max_trajectory_tokens.`;
    return { code: "RL7104", message };
  }
  try {
    const sequences = await sample(player, prompt, order.count, { step: order.step, counter: counterOf(order, -1, 0) });
    return sequences.map((sequence) => turnOf(player, prompt, sequence));
  } catch (error) {
    return lossOf(error);
  }
}

function encodeFresh(
  { renderer, templateKwargs }: Player,
  messages: Episode["messages"],
  { tools }: Episode,
): Int32Array {
  const options = { add_generation_prompt: true, template_kwargs: templateKwargs };
  return renderer.encode({ messages, ...(tools ? { tools } : {}) }, options);
}

/** Whether an answer to this prompt may still be as long as it may be. */
function fits({ sampling }: Player, prompt: Int32Array, { maxTokens, tooLong }: Episode): boolean {
  return maxTokens === undefined || !tooLong || prompt.length + sampling.max_tokens <= maxTokens;
}

/** Another number for every sample of a step: the group's first, then each attempt's turns. */
function counterOf({ group, count }: GroupOrder, index: number, turn: number): number {
  return (group * (count + 1) + index + 1) * MOST_TURNS + turn;
}

const MOST_TURNS = 1024;

interface SamplePlace {
  readonly step: number;
  readonly counter: number;
}

async function sample(player: Player, prompt: Int32Array, count: number, { step, counter }: SamplePlace) {
  const { sampler, limit, signal, seed, firstSeq } = player;
  for (let tried = 0; ; tried += 1) {
    // Another try has another seed: the same one could fail in the same way.
    const params = paramsOf(player, seedOf(seed, step, counter + tried * SEED_OF_A_TRY));
    const seqId = firstSeq + tried * SEQ_OF_A_TRY + (step % BATCHES) * SEQ_OF_A_BATCH + counter;
    try {
      return await limit.run(async () => {
        const future = await sampler.sample({ prompt, params, count }, { seqId, signal });
        const onWaiting = (waitedMs: number) => player.onWaiting?.("a sample", waitedMs);
        const { sequences } = await future.result({ deadlineMs: WORK_LIMIT_MS, signal, onWaiting });
        for (const sequence of sequences) checkSequence(sequence);
        return sequences;
      });
    } catch (error) {
      if (tried >= SAMPLE_RETRIES || !isWorthRetrying(error)) throw error;
    }
  }
}

const SEED_OF_A_TRY = 2 ** 32;

function isWorthRetrying(error: unknown): boolean {
  if (error instanceof TinkerError) return error.kind === "failed";
  return error instanceof RlcliError && error.diagnostics.every(({ code }) => code === "RL8102");
}

/** An answer without a token, or one whose tokens nobody weighed, cannot be learned from. */
function checkSequence({ tokens, logprobs }: SampledSequence): void {
  const isWhole = tokens.length > 0 && logprobs.length === tokens.length;
  if (isWhole && allFinite(logprobs)) return;
  const what =
    tokens.length === 0
      ? "The server ended an answer before its first token"
      : isWhole
        ? "The server gave a log-probability that is no number"
        : `The server gave ${logprobs.length} log-probabilities for ${tokens.length} tokens`;
  throw new RlcliError(diagnostic("RL8102", `${what}.`));
}

function paramsOf({ sampling, renderer }: Player, seed: number): SamplingParams {
  const ends = renderer.stopTokens();
  // A server takes either texts or tokens.
  const stop =
    sampling.stop.length === 0 ? ends : [...sampling.stop, ...ends.map((id) => renderer.tokenizer.decode([id]))];
  return {
    maxTokens: sampling.max_tokens,
    temperature: sampling.temperature,
    ...(sampling.top_p === 1 ? {} : { topP: sampling.top_p }),
    seed,
    stop: stop as SamplingParams["stop"],
  };
}

function turnOf({ renderer, sampling }: Player, prompt: Int32Array, { tokens, logprobs, stopReason }: SampledSequence) {
  const isClosed = renderer.stopTokens().includes(tokens.at(-1) as number);
  const whole = renderer.tokenizer.decode(isClosed ? tokens.subarray(0, -1) : tokens);
  const stop = sampling.stop.find((text) => whole.endsWith(text));
  const text = stop === undefined || stopReason !== "stop" ? whole : whole.slice(0, -stop.length);
  return { prompt, tokens, logprobs, text, stop: stopReason } satisfies RolloutTurn;
}

/** What was said to an answer, for whoever looks at the rollout. */
function replyOf(response: Response): { readonly reply?: readonly ChatMessage[] } {
  const reply = "messages" in response && !response.isFresh ? response.messages : response.outputs;
  return reply === undefined || reply.length === 0 ? {} : { reply };
}

/** One attempt, from its first answer to its grade. */
class Attempting {
  readonly #player: Player;
  readonly #order: GroupOrder;
  readonly #index: number;
  readonly #episode: Episode;
  readonly #turns: RolloutTurn[] = [];

  constructor(player: Player, order: GroupOrder, index: number, episode: Episode) {
    this.#player = player;
    this.#order = order;
    this.#index = index;
    this.#episode = episode;
  }

  /** Answers so far; of the last one the reply may be missing yet. */
  get turns(): readonly RolloutTurn[] {
    return this.#turns;
  }

  async play(first: RolloutTurn): Promise<Grade> {
    const { maxTurns } = this.#episode;
    const messages = [...this.#episode.messages];
    const turns = this.#turns;
    let asked: readonly ChatMessage[] | undefined = this.#episode.messages;
    for (let turn = first; ; ) {
      const isLast = turns.length + 1 >= maxTurns;
      const answered = { ...turn, ...(asked ? { asked } : {}) };
      turns.push(answered);
      const response = await this.#episode.respond({ text: turn.text, isWhole: turn.stop === "stop", isLast });
      turns[turns.length - 1] = { ...answered, ...replyOf(response) };
      asked = "messages" in response && response.isFresh ? response.messages : undefined;
      if (!("messages" in response)) return response;
      if (isLast) throw new RlcliError(diagnostic("RL7104", `There was no grade after ${maxTurns} answers.`));
      const prompt = this.#next(messages, turn, response);
      if (!fits(this.#player, prompt, this.#episode)) return (this.#episode.tooLong as () => Promise<Grade>)();
      turn = await this.#answer(prompt, turns.length);
    }
  }

  /** The prompt after a reply; `messages` becomes the conversation that it asks to go on with. */
  #next(messages: ChatMessage[], turn: RolloutTurn, { messages: said, isFresh }: Reply): Int32Array {
    if (isFresh) {
      messages.splice(0, messages.length, ...said);
      return encodeFresh(this.#player, messages, this.#episode);
    }
    const { renderer, templateKwargs } = this.#player;
    const tools = this.#episode.tools ? { tools: this.#episode.tools } : {};
    const prompt = renderer.extend({ messages, ...tools }, turn, said, { template_kwargs: templateKwargs });
    messages.push({ role: "assistant", content: turn.text }, ...said);
    return prompt;
  }

  async #answer(prompt: Int32Array, turn: number): Promise<RolloutTurn> {
    const place = { step: this.#order.step, counter: counterOf(this.#order, this.#index, turn) };
    const [sequence] = await sample(this.#player, prompt, 1, place);
    return turnOf(this.#player, prompt, sequence as SampledSequence);
  }
}
