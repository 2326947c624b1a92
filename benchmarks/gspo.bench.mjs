// What does fused GSPO save? One frozen batch of sampled answers, trained on again and again: the loss in one forward_backward
// call against the same gradient in two passes (a forward pass for log-probabilities, the loss here, a linear loss back).
//
//   node benchmarks/gspo.bench.mjs [--url URL --model NAME] [--steps 8] [--rounds 3]
//
// By default the embedded server with builtin:tiny, all weights and a LoRA adapter. Both strategies take steps in turn, each on
// a model of its own; what disturbs the machine disturbs both. It does not measure sampling, which is the same for both. RLCLI_KEY
// holds the key of a server at --url; only its results are written, never the key or the address.
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { startEmbedded } from "./embedded-server.mjs";
import { median, writeReceipt } from "./receipt.mjs";
import { loadSources } from "./sources.mjs";

const { values: flags } = parseArgs({
  options: {
    url: { type: "string" },
    model: { type: "string", default: "builtin:tiny" },
    steps: { type: "string", default: "8" },
    rounds: { type: "string", default: "3" },
  },
});
const STEPS = Number(flags.steps);
const ROUNDS = Number(flags.rounds);
const GROUPS = 8;
const GROUP_SIZE = 8;
const PROMPT_TOKENS = 16;
const ANSWER_TOKENS = 48;
const LOSS = { name: "gspo", config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 } };

const sources = await loadSources(["src/tinker/index.ts", "src/training/gradient.ts", "src/tinker/quirks/probe.ts"]);

const server = flags.url ? { url: flags.url, token: process.env.RLCLI_KEY } : await startEmbedded(flags.model);
const client = new sources.TinkerClient({ baseUrl: server.url, ...(server.token ? { apiKey: server.token } : {}) });

/** Answers of the model to made-up prompts, with rewards that differ within each group. */
async function frozenBatch(model) {
  const sampler = await (await model.sampler()).result();
  const prompts = Array.from({ length: GROUPS }, (_, group) =>
    Int32Array.from({ length: PROMPT_TOKENS }, (_, i) => 32 + ((group * 31 + i * 7) % 90)),
  );
  const data = [];
  for (const [group, prompt] of prompts.entries()) {
    const params = { maxTokens: ANSWER_TOKENS, temperature: 1, seed: group, stop: [] };
    const { sequences } = await (await sampler.sample({ prompt, params, count: GROUP_SIZE })).result();
    for (const [i, { tokens, logprobs }] of sequences.entries()) {
      const whole = Int32Array.from([...prompt, ...tokens]);
      const mask = Float32Array.from(whole.subarray(1), (_, at) => (at + 1 >= prompt.length ? 1 : 0));
      const count = tokens.length * GROUPS * GROUP_SIZE;
      data.push({
        input: whole.slice(0, -1),
        lossInputs: {
          target_tokens: whole.slice(1),
          weights: mask.map((mark) => mark / count),
          logprobs: Float32Array.from([...new Float32Array(prompt.length - 1), ...logprobs]),
          advantages: mask.map((mark) => mark * (i % 2 === 0 ? 0.5 : -0.5)),
        },
      });
    }
  }
  return data;
}

async function step(kind, model, data, strategy) {
  const began = performance.now();
  const plan = sources.planGradient(kind, LOSS, data, strategy);
  if (plan.type === "refused") throw new Error(plan.reason);
  const { forward, backward } = await sources.requestCounts(model, plan);
  const { pass } = await sources.sendGradient(model, plan, model.reserve(forward + backward));
  const update = await model.optimStep({ learning_rate: 1e-4 });
  await pass.result();
  await update.result();
  return (performance.now() - began) / 1000;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = (values) => Math.sqrt(mean(values.map((value) => (value - mean(values)) ** 2)));
const round = (value, digits = 4) => Number(value.toFixed(digits));

async function compare(loraRank) {
  const session = await client.createSession({ tags: ["rlcli-bench"] });
  const create = () => session.createModel({ baseModel: flags.model, loraRank, seed: 1 });
  const models = { fused: await create(), two_pass: await create() };
  const kind = await sources.serverKind(client, models.fused);
  const data = await frozenBatch(models.fused);
  const tokens = data.reduce((sum, { input }) => sum + input.length, 0);
  const seconds = { fused: [], two_pass: [] };
  // The first steps compile.
  for (const strategy of ["fused", "two_pass"])
    for (let i = 0; i < 2; i++) await step(kind, models[strategy], data, strategy);
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < STEPS; i++) {
      const order = (round + i) % 2 === 0 ? ["fused", "two_pass"] : ["two_pass", "fused"];
      for (const strategy of order) seconds[strategy].push(await step(kind, models[strategy], data, strategy));
    }
  }
  for (const model of Object.values(models)) await model.unload();
  const summary = (values) => ({
    medianSeconds: round(median(values)),
    meanSeconds: round(mean(values)),
    deviation: round(deviation(values)),
    tokensPerSecond: Math.round(tokens / median(values)),
    raw: values.map((value) => round(value)),
  });
  const [fused, twoPass] = [summary(seconds.fused), summary(seconds.two_pass)];
  const change = (a, b) => round(a / b - 1, 3);
  const result = {
    adapter: loraRank === 0 ? "none, all weights" : `LoRA of rank ${loraRank}`,
    server: kind,
    datums: data.length,
    tokens,
    stepTime: change(fused.medianSeconds, twoPass.medianSeconds),
    throughput: change(fused.tokensPerSecond, twoPass.tokensPerSecond),
    fused,
    two_pass: twoPass,
  };
  const percent = (value) => `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)} %`;
  console.log(
    `${result.adapter}: fused ${fused.medianSeconds} s, two passes ${twoPass.medianSeconds} s a step (${percent(result.stepTime)}); ${fused.tokensPerSecond} and ${twoPass.tokensPerSecond} tokens/s (${percent(result.throughput)})`,
  );
  return result;
}

const load = loadavg().map((value) => round(value, 2));
try {
  const results = [];
  for (const rank of [0, 16]) results.push(await compare(rank));
  writeReceipt("gspo", {
    question: "What does computing GSPO in one call save against two passes, on one frozen batch?",
    model: flags.url ? "of the server at --url" : flags.model,
    stepsOfEach: STEPS * ROUNDS,
    load,
    results,
    reference:
      "12.9 s against 16.8 s a step (-23 %), 586 against 451 tokens/s (+29.8 %): the Python predecessor on one A100 with Qwen3-4B",
  });
} finally {
  await client.close();
  server.stop?.();
}
