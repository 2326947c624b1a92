/**
 * Sampling of many requests at once. Every turn takes some rows — prompt tokens still to be read, or the last token of
 * sequences being written — through one decoder together. Which rows meet in a turn changes speed only: a decoder's rows
 * do not see each other, and each sample draws from numbers of its own seed and token count.
 */
import { chooseToken, logSumExp, type SamplingPolicy, topLogprobs } from "./choice.ts";
import type { Cache, Decoder, DecoderRow } from "./decoder.ts";
import { PromptReader, type PromptScores, type PromptWishes } from "./prompt.ts";
import { uniform } from "./random.ts";
import { RequestError } from "./trainer.ts";

export interface SampleRequest {
  readonly prompt: readonly number[];
  readonly samples: number;
  readonly maxTokens: number;
  readonly policy: SamplingPolicy;
  /** Sample i draws from `seed + i`. */
  readonly seed: number;
  /** Of the first token's random number; above 0 where the prompt ends with so many tokens that were sampled from the seed. */
  readonly seedPosition: number;
  /** End a sequence, and are part of it. */
  readonly stopTokens: readonly number[];
  /** End a sequence at the token that completes one of them. */
  readonly stopStrings: readonly string[];
  readonly wishes: PromptWishes;
  /** How many likeliest tokens to list for each sampled one; 0 is none. */
  readonly topkSampled: number;
}

export interface SampledSequence {
  readonly tokens: readonly number[];
  /** Of the raw logits, before temperature and limits. */
  readonly logprobs: readonly number[];
  /** The likeliest tokens in the place of each, where asked for. */
  readonly topk: readonly (readonly (readonly [number, number])[])[] | null;
  readonly stopReason: "stop" | "length";
}

export interface SampleResult {
  readonly sequences: readonly SampledSequence[];
  readonly prompt: PromptScores;
}

/** Text of tokens, special ones included. */
export type Decode = (tokens: readonly number[]) => string;

interface Job {
  readonly decoder: Decoder;
  readonly request: SampleRequest;
  readonly decode: Decode | undefined;
  readonly settle: (result: SampleResult) => void;
  readonly fail: (error: Error) => void;
  readonly ticket: string | undefined;
  /** There from its first prompt token on. */
  promptCache: Cache | undefined;
  readonly reader: PromptReader;
  /** After the last prompt token; there once the prompt has been read. */
  promptLogits: Float32Array | undefined;
  started: number;
  readonly finished: (SampledSequence | undefined)[];
}

interface Sequence {
  readonly job: Job;
  readonly index: number;
  readonly cache: Cache;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly topk: (readonly (readonly [number, number])[])[];
}

/** Rows of one turn: enough that weights are reused, few enough that a turn stays short. */
const MOST_ROWS = 64;
/** Sequences being written at a time; each holds a cache. */
const MOST_SEQUENCES = 64;

/** What becomes of a request that nobody waits for. */
export const CANCELLED = "The request was cancelled.";

export class Sampler {
  readonly #jobs: Job[] = [];
  #sequences: Sequence[] = [];

  get hasWork(): boolean {
    return this.#jobs.length > 0 || this.#sequences.length > 0;
  }

  /** Queues a request; `decode` is needed for stop strings only, `ticket` to cancel it. */
  sample(decoder: Decoder, request: SampleRequest, decode?: Decode, ticket?: string): Promise<SampleResult> {
    return new Promise((settle, fail) => {
      this.#jobs.push({
        fail,
        ticket,
        decoder,
        request,
        decode,
        settle,
        promptCache: undefined,
        reader: new PromptReader(request),
        promptLogits: undefined,
        started: 0,
        finished: new Array(request.samples),
      });
    });
  }

  /** Drops what is left to do of a request, which fails. What has been finished or is unknown stays as it is. */
  cancel(ticket: string): void {
    const isMeant = (job: Job) => job.ticket === ticket;
    const meant = new Set([...this.#jobs, ...this.#sequences.map(({ job }) => job)].filter(isMeant));
    this.#sequences = this.#sequences.filter(({ job }) => !meant.has(job));
    for (let i = this.#jobs.length - 1; i >= 0; i--) if (meant.has(this.#jobs[i] as Job)) this.#jobs.splice(i, 1);
    for (const { fail } of meant) fail(new RequestError(CANCELLED));
  }

  /** One turn of work for one decoder: the one whose work has waited longest. */
  turn(): void {
    this.#startSequences();
    const decoder = this.#sequences[0]?.job.decoder ?? this.#jobs[0]?.decoder;
    if (decoder === undefined) return;
    const writing = this.#sequences.filter(({ job }) => job.decoder === decoder).slice(0, MOST_ROWS);
    const reading = this.#promptRows(decoder, MOST_ROWS - writing.length);
    const logits = decoder.forward([
      ...writing.map(({ cache, tokens }) => ({ cache, token: tokens.at(-1) as number, wantsLogits: true })),
      ...reading.map(({ row }) => row),
    ]);
    // Those that had their turn go to the end, so that sequences of other decoders and the rest get theirs.
    const served = new Set(writing);
    this.#sequences = this.#sequences.filter((sequence) => !served.has(sequence));
    writing.forEach((sequence, i) => {
      if (!this.#extend(sequence, logits[i] as Float32Array)) this.#sequences.push(sequence);
    });
    let next = writing.length;
    for (const { job, position, row } of reading)
      if (row.wantsLogits) this.#readPrompt(job, position, logits[next++] as Float32Array);
    this.#startSequences();
  }

  #promptRows(decoder: Decoder, most: number): { job: Job; position: number; row: DecoderRow }[] {
    const rows: { job: Job; position: number; row: DecoderRow }[] = [];
    // Not further ahead than sequences can start: a prompt that has been read holds a cache.
    for (const job of this.#jobs.slice(0, MOST_SEQUENCES)) {
      if (job.decoder !== decoder || job.promptLogits !== undefined) continue;
      const { prompt } = job.request;
      job.promptCache ??= decoder.newCache(prompt.length);
      const cache = job.promptCache;
      for (let position = cache.length; position < prompt.length && rows.length < most; position++) {
        const wantsLogits = position === prompt.length - 1 || job.reader.wants(position + 1);
        rows.push({ job, position, row: { cache, token: prompt[position] as number, wantsLogits } });
      }
      if (rows.length >= most) break;
    }
    return rows;
  }

  #readPrompt(job: Job, position: number, logits: Float32Array): void {
    if (position === job.request.prompt.length - 1) job.promptLogits = logits;
    else job.reader.read(position + 1, logits);
  }

  /** Starts sequences of requests whose prompt has been read, in the order of the requests, while there is room. */
  #startSequences(): void {
    for (let i = 0; i < this.#jobs.length && this.#sequences.length < MOST_SEQUENCES; ) {
      const job = this.#jobs[i] as Job;
      while (job.promptLogits && job.started < job.request.samples && this.#sequences.length < MOST_SEQUENCES) {
        const sequence = startSequence(job, job.started++);
        if (!this.#extend(sequence, job.promptLogits)) this.#sequences.push(sequence);
      }
      if (job.started === job.request.samples) this.#jobs.splice(i, 1);
      else i++;
    }
  }

  /** Appends the next token; true if that ended the sequence. */
  #extend(sequence: Sequence, logits: Float32Array): boolean {
    const { job, index, tokens, logprobs } = sequence;
    const { seed, seedPosition, policy, maxTokens, topkSampled } = job.request;
    const token = chooseToken(logits, policy, uniform(seed + index, 0, seedPosition + tokens.length));
    tokens.push(token);
    logprobs.push(Math.fround((logits[token] as number) - logSumExp(logits)));
    if (topkSampled > 0) sequence.topk.push(topLogprobs(logits, topkSampled));
    const stops = job.request.stopTokens.includes(token) || endsWithStop(job, tokens);
    if (!stops && tokens.length < maxTokens) return false;
    const topk = topkSampled > 0 ? sequence.topk : null;
    job.finished[index] = { tokens, logprobs, topk, stopReason: stops ? "stop" : "length" };
    this.#finish(job);
    return true;
  }

  #finish(job: Job): void {
    const sequences = job.finished.filter((sequence) => sequence !== undefined);
    if (sequences.length === job.request.samples) job.settle({ sequences, prompt: job.reader.scores() });
  }
}

function startSequence(job: Job, index: number): Sequence {
  const { prompt, maxTokens } = job.request;
  // The last token is never read back, so it needs no room.
  const cache = job.decoder.copyCache(job.promptCache as Cache, prompt.length + maxTokens - 1);
  return { job, index, cache, tokens: [], logprobs: [], topk: [] };
}

/**
 * Whether the newest token completed a stop string. Only a tail is decoded: a token holds at least one byte, so the
 * tokens of a match are no more than its bytes.
 */
function endsWithStop({ request, decode }: Job, tokens: readonly number[]): boolean {
  if (request.stopStrings.length === 0 || decode === undefined) return false;
  const bytes = request.stopStrings.reduce((most, text) => Math.max(most, Buffer.byteLength(text)), 0);
  const tail = decode(tokens.slice(-bytes));
  return request.stopStrings.some((text) => tail.includes(text));
}
