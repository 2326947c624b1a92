/** `rlcli bench`: how fast a server trains and samples, measured in a minute or so with a model of its own that is thrown away. */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fail } from "../../diagnostic.ts";
import { TinkerClient } from "../../tinker/client.ts";
import type { Datum } from "../../tinker/data.ts";
import { TinkerError } from "../../tinker/errors.ts";
import type { TrainingModel } from "../../tinker/model.ts";
import type { Sampler } from "../../tinker/sampler.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openTarget, type TargetFlags } from "../target.ts";
import { type BenchResult, renderBench, type Spread } from "../views/bench.ts";

export interface BenchFlags extends TargetFlags {
  readonly batchSize: number;
  readonly length: number;
  readonly maxTokens: number;
  readonly concurrency: number;
  readonly repeat: number;
  readonly loraRank?: number;
}

export const BENCH_JSON_VERSION = 1;

/** So small that the weights stay where they are. */
const RATE = 1e-9;
/** Requests of one token, one after another. */
const LATENCY_SAMPLES = 5;
const PAUSE_MS = 50;
const HEALTH_TIMEOUT_MS = 10_000;

export async function bench(context: CommandContext, server: string | undefined, flags: BenchFlags): Promise<ExitCode> {
  const target = await openTarget(context, { ...flags, ...(server === undefined ? {} : { server }) });
  const started = performance.now();
  const { url, token, model = target.settings.model } = await target.connect();
  const connectSeconds = (performance.now() - started) / 1000;
  const { stop } = context.interruption();
  const client = new TinkerClient({ baseUrl: url, ...(token === undefined ? {} : { apiKey: token }) });
  // Every request in flight listens to it.
  setMaxListeners(0, stop);
  try {
    // Retries are for a server that is there: one that is not is told at once.
    await client.health({ signal: stop, timeoutMs: HEALTH_TIMEOUT_MS });
    const loraRank = flags.loraRank ?? (target.settings.model.startsWith("builtin:") ? 0 : 32);
    const measured = await measure(
      client,
      { ...flags, model, loraRank },
      { signal: stop, say: (text) => context.err(`${text}\n`) },
    );
    const about = {
      address: target.settings.address,
      url,
      model: target.settings.model,
      backend: target.settings.backend,
    };
    const result: BenchResult = { ...about, loraRank, ...pickSizes(flags), connectSeconds, ...measured };
    if (context.isJson) context.out(`${JSON.stringify({ formatVersion: BENCH_JSON_VERSION, ...result })}\n`);
    else context.out(renderBench(result, context.style));
    return EXIT.done;
  } catch (error) {
    if (stop.aborted) return EXIT.interrupted;
    if (error instanceof TinkerError)
      fail(
        "RL5013",
        `${error.message.replace(/\.$/, "")}. \`rlcli serve status\` and \`rlcli serve logs\` tell of servers of this folder; a smaller --batch-size or --length needs less memory.`,
        {
          address: target.settings.address,
          cause: error,
        },
      );
    throw error;
  } finally {
    await client.close();
  }
}

const pickSizes = ({ batchSize, length, maxTokens, concurrency, repeat }: BenchFlags) => ({
  batchSize,
  length,
  maxTokens,
  concurrency,
  repeat,
});

interface Work extends BenchFlags {
  readonly model: string;
  readonly loraRank: number;
}

interface Watch {
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
}

type Measured = Pick<
  BenchResult,
  "roundTripMs" | "firstTokenMs" | "samplingTokensPerSecond" | "trainingTokensPerSecond" | "stepSeconds"
>;

async function measure(client: TinkerClient, work: Work, { signal, say }: Watch): Promise<Measured> {
  const session = await client.createSession({ tags: ["rlcli bench"] });
  say("making a model of its own");
  const model = await session.createModel({ baseModel: work.model, loraRank: work.loraRank, seed: 1 });
  try {
    const sampler = await (await model.sampler()).result({ signal });
    say("warming up, which is not measured");
    await step(model, work, signal);
    await answers(sampler, { ...work, count: work.concurrency }, signal);
    const roundTripMs = spreadOf(await times(LATENCY_SAMPLES, () => client.health({ signal }), signal));
    say("latency");
    const one = { ...work, maxTokens: 1, count: 1 };
    const firstTokenMs = spreadOf(await times(LATENCY_SAMPLES, () => answers(sampler, one, signal), signal));
    say("sampling");
    const sampled = await rates(
      work.repeat,
      () => answers(sampler, { ...work, count: work.concurrency }, signal),
      signal,
    );
    say("training");
    const seconds: number[] = [];
    const trained = await rates(
      work.repeat,
      async () => {
        const begun = performance.now();
        const tokens = await step(model, work, signal);
        seconds.push((performance.now() - begun) / 1000);
        return tokens;
      },
      signal,
    );
    return {
      roundTripMs,
      firstTokenMs,
      samplingTokensPerSecond: spreadOf(sampled),
      trainingTokensPerSecond: spreadOf(trained),
      stepSeconds: spreadOf(seconds),
    };
  } finally {
    await model.unload({ signal: AbortSignal.timeout(10_000) }).catch(() => {});
    await session.finish().catch(() => {});
  }
}

/** Milliseconds that each call takes. */
async function times(count: number, call: () => Promise<unknown>, signal: AbortSignal): Promise<number[]> {
  const taken: number[] = [];
  for (let at = 0; at < count; at++) {
    signal.throwIfAborted();
    const begun = performance.now();
    await call();
    taken.push(performance.now() - begun);
    await sleep(PAUSE_MS);
  }
  return taken;
}

/** Of calls that say how many tokens they were for, tokens a second. */
async function rates(count: number, call: () => Promise<number>, signal: AbortSignal): Promise<number[]> {
  const found: number[] = [];
  for (let at = 0; at < count; at++) {
    signal.throwIfAborted();
    const begun = performance.now();
    const tokens = await call();
    found.push((tokens * 1000) / (performance.now() - begun));
  }
  return found;
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median =
    sorted.length % 2 === 1 ? sorted[middle] : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
  return { median: median as number, least: sorted[0] as number, most: sorted.at(-1) as number };
}

/** Ids that every tokenizer has; what they mean does not matter for how long they take. */
const tokensOf = (count: number, seed: number): Int32Array =>
  Int32Array.from({ length: count }, (_, at) => 32 + ((at * 7 + seed * 13) % 90));

/** Answers of sampled tokens to as many prompts at once; how many tokens were sampled. */
async function answers(
  sampler: Sampler,
  { count, length, maxTokens }: Work & { readonly count: number },
  signal: AbortSignal,
): Promise<number> {
  const params = { maxTokens, temperature: 1, stop: [] };
  const requests = Array.from({ length: count }, (_, at) => ({
    prompt: tokensOf(length, at),
    params: { ...params, seed: at },
  }));
  const results = await sampler.sampleAll(requests, { signal });
  return results.flatMap(({ sequences }) => sequences).reduce((sum, { tokens }) => sum + tokens.length, 0);
}

/** One supervised step; how many tokens it was over. */
async function step(model: TrainingModel, { batchSize, length }: Work, signal: AbortSignal): Promise<number> {
  const data = Array.from({ length: batchSize }, (_, at): Datum => {
    const tokens = tokensOf(length + 1, at);
    const weights = new Float32Array(length).fill(1 / length);
    return { input: tokens.slice(0, -1), lossInputs: { target_tokens: tokens.slice(1), weights } };
  });
  const pass = await model.forwardBackward(data, { name: "cross_entropy" });
  const update = await model.optimStep({ learning_rate: RATE });
  await pass.result({ signal });
  await update.result({ signal });
  return batchSize * length;
}
