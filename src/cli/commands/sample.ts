/** `rlcli sample`: one answer from a run, a checkpoint or a base model. */
import { readFileSync } from "node:fs";
import { fail } from "../../diagnostic.ts";
import { modelFolder } from "../../kinds/model.ts";
import { samplerOf, unloadAll } from "../../kinds/sampler.ts";
import { TinkerClient } from "../../tinker/client.ts";
import type { SampleResult } from "../../tinker/data.ts";
import { TinkerError } from "../../tinker/errors.ts";
import type { TrainingModel } from "../../tinker/model.ts";
import { loadRenderer } from "../../tokens/load.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { askedWeights, openTarget, type TargetFlags } from "../target.ts";

export interface SampleFlags extends TargetFlags {
  readonly prompt?: string;
  readonly system?: string;
  readonly checkpoint?: string;
  readonly base?: boolean;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  readonly num: number;
}

export async function sample(context: CommandContext, run: string | undefined, flags: SampleFlags): Promise<ExitCode> {
  const instead = (["checkpoint", "base", "model", "baseUrl"] as const).find((flag) => flags[flag] !== undefined);
  if (run !== undefined && instead !== undefined) {
    const option = instead === "baseUrl" ? "--base-url" : `--${instead}`;
    fail(
      "RL9003",
      `\`${run}\` names a run of the spec, and ${option} says to ask something else. Leave one of them out.`,
    );
  }
  const prompt = flags.prompt ?? readStdin();
  const target = await openTarget(context, flags, run);
  const weights = (await askedWeights(target, run, flags))?.weights;
  const renderer = await loadRenderer(await modelFolder(target.settings.model, target.open.context));
  const messages = [
    ...(flags.system ? [{ role: "system", content: flags.system }] : []),
    { role: "user", content: prompt },
  ];
  const tokens = renderer.encode({ messages }, { add_generation_prompt: true });
  const { url, token, model = target.settings.model } = await target.connect();
  const client = new TinkerClient({ baseUrl: url, ...(token === undefined ? {} : { apiKey: token }) });
  const scope: TrainingModel[] = [];
  try {
    await answers(client);
    const session = await client.createSession({ tags: ["rlcli sample"] });
    const sampler = weights
      ? await samplerOf(session, weights, scope)
      : await session.createSampler({ baseModel: model });
    const future = await sampler.sample({
      prompt: tokens,
      count: flags.num,
      params: {
        maxTokens: flags.maxTokens,
        temperature: flags.temperature,
        stop: renderer.stopTokens(),
        ...(flags.topP === undefined ? {} : { topP: flags.topP }),
        ...(flags.topK === undefined ? {} : { topK: flags.topK }),
        ...(flags.seed === undefined ? {} : { seed: flags.seed }),
      },
    });
    show(context, await future.result(), renderer);
    return EXIT.done;
  } catch (error) {
    if (error instanceof TinkerError) fail("RL5013", `${error.message.replace(/\.$/, "")}.`, { cause: error });
    throw error;
  } finally {
    await unloadAll(scope);
    await client.close();
  }
}

/** A server that is not there is said at once: whoever waits for an answer should not wait through all retries for it. */
async function answers(client: TinkerClient): Promise<void> {
  try {
    await client.health({ timeoutMs: HEALTH_TIMEOUT_MS });
  } catch (error) {
    // A server may have no health to tell of; the request itself will show.
    if (error instanceof TinkerError && error.kind === "network") throw error;
  }
}

const HEALTH_TIMEOUT_MS = 10_000;

function readStdin(): string {
  if (process.stdin.isTTY) fail("RL9003", "There is no prompt: give --prompt TEXT, or pipe one in.");
  const text = readFileSync(0, "utf8").replace(/\r?\n$/, "");
  if (text === "") fail("RL9003", "The prompt on standard input is empty.");
  return text;
}

function show(context: CommandContext, result: SampleResult, renderer: Awaited<ReturnType<typeof loadRenderer>>): void {
  for (const sequence of result.sequences) {
    const isClosed = sequence.stopReason === "stop" && renderer.stopTokens().includes(sequence.tokens.at(-1) ?? -1);
    const text = renderer.tokenizer.decode(isClosed ? sequence.tokens.subarray(0, -1) : sequence.tokens);
    if (context.isJson) {
      const { tokens, logprobs, stopReason } = sequence;
      context.out(
        `${JSON.stringify({ formatVersion: 1, text, tokens: [...tokens], logprobs: [...logprobs], stopReason })}\n`,
      );
    } else context.out(`${text}\n`);
  }
}
