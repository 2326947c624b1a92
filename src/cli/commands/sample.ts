/** `rlcli sample`: one answer from a run, a checkpoint or a base model. */
import { readFileSync } from "node:fs";
import { fail } from "../../diagnostic.ts";
import { modelFolder } from "../../kinds/model.ts";
import { TinkerClient } from "../../tinker/client.ts";
import type { SampleResult } from "../../tinker/data.ts";
import type { Sampler } from "../../tinker/sampler.ts";
import type { Session } from "../../tinker/session.ts";
import { loadRenderer } from "../../tokens/load.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openTarget, type Target, type TargetFlags, weightsOf } from "../target.ts";

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
  const prompt = flags.prompt ?? readStdin(context);
  const target = await openTarget(context, flags);
  const renderer = await loadRenderer(await modelFolder(target.settings.model, target.open.context));
  const messages = [
    ...(flags.system ? [{ role: "system", content: flags.system }] : []),
    { role: "user", content: prompt },
  ];
  const tokens = renderer.encode({ messages }, { add_generation_prompt: true });
  const { url, token } = await target.connect();
  const client = new TinkerClient({ baseUrl: url, ...(token === undefined ? {} : { apiKey: token }) });
  try {
    const session = await client.createSession({ tags: ["rlcli sample"] });
    const sampler = await samplerFor(session, target, run, flags);
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
  } finally {
    await client.close();
  }
}

/** Sampler weights as named; training weights without any are loaded into a model of their own first. */
async function samplerFor(
  session: Session,
  target: Target,
  run: string | undefined,
  flags: SampleFlags,
): Promise<Sampler> {
  if (flags.checkpoint !== undefined) return fromPath(session, target, flags.checkpoint);
  const name =
    run ?? (flags.base || flags.model !== undefined || flags.baseUrl !== undefined ? undefined : await onlyRun(target));
  if (name === undefined) return session.createSampler({ baseModel: target.settings.model });
  const weights = await weightsOf(target.open, name);
  return fromPath(session, target, weights.sampler ?? weights.training);
}

async function fromPath(session: Session, target: Target, path: string): Promise<Sampler> {
  if (!/^tinker:\/\/[^/]+\/weights\//.test(path)) return session.createSampler({ modelPath: path });
  const { baseModel, loraRank } = await session.client.checkpointModel(path);
  const model = await session.createModel({ baseModel: baseModel || target.settings.model, loraRank });
  await (await model.loadWeights(path, { optimizer: false })).result();
  const saved = await (await model.saveWeightsForSampler(`sample-${process.pid}-${Date.now()}`)).result();
  return session.createSampler({ modelPath: saved });
}

async function onlyRun({ open }: Target): Promise<string> {
  const runs = [...(open.spec?.nodes.values() ?? [])].filter((node) => node.kind === "run").map((node) => node.name);
  if (runs.length === 1) return runs[0] as string;
  return fail(
    "RL9003",
    `Say what to sample from: a run (${runs.join(", ") || "the spec has none"}), --checkpoint tinker://…, or --base for the base model.`,
  );
}

function readStdin(context: CommandContext): string {
  if (process.stdin.isTTY) fail("RL9003", "There is no prompt: give --prompt TEXT, or pipe one in.");
  const text = readFileSync(0, "utf8").replace(/\r?\n$/, "");
  if (text === "") fail("RL9003", "The prompt on standard input is empty.");
  void context;
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
