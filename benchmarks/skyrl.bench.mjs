import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { TinkerClient } from "../dist/tinker.js";
import { startEmbedded } from "./embedded-server.mjs";
import { flopsPerToken, plainRate } from "./matmul.mjs";
import { median, writeReceipt } from "./receipt.mjs";
import { loadSources } from "./sources.mjs";

const modelFolder = fileURLToPath(new URL("../test/fixtures/tiny-qwen3", import.meta.url));
const [ROWS, LENGTH, SAMPLES, SAMPLE_TOKENS] = [32, 64, 16, 32];
const RANK = 8;
/** As SkyRL's jax has them, whatever is asked for. */
const LAYERS = { attention: true, mlp: true, unembedding: false };
const [WARM_UP, ROUNDS] = [3, 20];
const LEAST_RATIO = 1.3;
const VOCABULARY = 500;

function datum(row, length) {
  const at = (i) => (row * 37 + i * 11) % VOCABULARY;
  return {
    input: Int32Array.from({ length }, (_, i) => at(i)),
    lossInputs: {
      target_tokens: Int32Array.from({ length }, (_, i) => at(i + 1)),
      weights: new Float32Array(length).fill(1),
    },
  };
}

/** One server with a model and a sampler of its own. */
async function prepare(name, { url, token, stop }) {
  const client = new TinkerClient({ baseUrl: url, ...(token ? { apiKey: token } : {}) });
  const [{ modelName }] = await client.capabilities();
  const session = await client.createSession({ tags: ["benchmark"] });
  const model = await session.createModel({ baseModel: modelName, loraRank: RANK, seed: 1, layers: LAYERS });
  const end = async () => {
    await model.unload();
    await client.close();
    await stop();
  };
  return { name, model, end, times: { save: [], train: [], sample: [], floor: [] } };
}

async function seconds(work) {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

/** Pass and update submitted back to back, as loops do. */
async function train(model, data) {
  const pass = await model.forwardBackward(data, { name: "cross_entropy" });
  const update = await model.optimStep({ learning_rate: 1e-4 });
  await Promise.all([pass.result(), update.result()]);
}

async function sample(sampler, count, maxTokens, seed) {
  const params = { maxTokens, temperature: 1, seed, stop: [] };
  const prompt = Int32Array.from({ length: 32 }, (_, i) => (i * 13 + seed) % VOCABULARY);
  const { sequences } = await (await sampler.sample({ prompt, params, count })).result();
  if (sequences.length !== count || sequences.some(({ tokens }) => tokens.length !== maxTokens))
    throw new Error("the samples are not what was asked for");
}

async function round({ model, times }, seed) {
  const data = Array.from({ length: ROWS }, (_, row) => datum(row + seed, LENGTH));
  let sampler;
  // Samples are taken of weights that are the model's newest: SkyRL's jax samples no others.
  times.train.push(await seconds(() => train(model, data)));
  times.save.push(
    await seconds(async () => {
      sampler = await (await model.sampler()).result();
    }),
  );
  times.sample.push(await seconds(() => sample(sampler, SAMPLES, SAMPLE_TOKENS, seed)));
  const smallestTrain = await seconds(() => train(model, [datum(seed, 1)]));
  sampler = await (await model.sampler()).result();
  times.floor.push(smallestTrain + (await seconds(() => sample(sampler, 1, 1, seed))));
}

/** Seconds that the products of one training pass take at the rate of a large plain product on one core. */
async function matmulSeconds() {
  const names = ["jax", "architecture", "weights"];
  const parts = await loadSources(names.map((name) => `src/servers/embedded/${name}.ts`));
  const shapes = { projectionShape: parts.projectionShape, projections: parts.PROJECTIONS };
  const flops = flopsPerToken(parts.readArchitecture(modelFolder), shapes, LENGTH, RANK);
  return (flops * ROWS * LENGTH) / (await plainRate(await parts.loadJax())) / 1e9;
}

const servers = [];
const sources = await loadSources(["test/counterparts/skyrl.ts"]);
if (!sources.hasSkyrl) throw new Error("SkyRL is not installed: see test/counterparts/setup-skyrl");
try {
  servers.push(await prepare("embedded", await startEmbedded(modelFolder)));
  servers.push(await prepare("skyrl", await sources.startSkyrl(modelFolder)));
  for (let i = 0; i < WARM_UP; i++) for (const server of servers) await round(server, i);
  for (const { times } of servers) for (const key of Object.keys(times)) times[key] = [];
  for (let i = 0; i < ROUNDS; i++) for (const server of servers) await round(server, WARM_UP + i);
} finally {
  for (const server of servers) await server.end();
}

const rounded = (seconds) => Number(seconds.toFixed(4));
const results = servers.map(({ times }) => {
  const medians = Object.fromEntries(Object.entries(times).map(([key, values]) => [key, rounded(median(values))]));
  const endToEnd = rounded(median(times.train.map((seconds, i) => seconds + times.sample[i])));
  return { endToEnd, ...medians, raw: Object.fromEntries(Object.entries(times).map(([k, v]) => [k, v.map(rounded)])) };
});
const [embedded, skyrl] = results;
const ratio = Number((skyrl.endToEnd / embedded.endToEnd).toFixed(2));
const ratioWithoutFloor = Number(((skyrl.endToEnd - skyrl.floor) / (embedded.endToEnd - embedded.floor)).toFixed(2));
const matmul = await matmulSeconds();
writeReceipt("skyrl", {
  question:
    "Seconds for forward_backward of 32x64 tokens, optim_step and 16x32 sampled tokens: the embedded server beside SkyRL's jax on this machine",
  load: loadavg().map((value) => Number(value.toFixed(2))),
  ratio,
  ratioWithoutFloor,
  ratioOfTraining: Number((skyrl.train / embedded.train).toFixed(2)),
  ratioOfSampling: Number((skyrl.sample / embedded.sample).toFixed(2)),
  matmulSecondsAtPlainRate: rounded(matmul),
  matmulShareOfTrainingStep: Number((matmul / embedded.train).toFixed(3)),
  embedded,
  skyrl,
});
console.log(
  `end to end: embedded ${embedded.endToEnd} s, SkyRL ${skyrl.endToEnd} s: ${ratio}x; without each one's smallest round ${ratioWithoutFloor}x`,
);
if (process.argv.includes("--check") && ratio < LEAST_RATIO) process.exitCode = 1;
