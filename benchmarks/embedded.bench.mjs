// How fast does the embedded server train and sample builtin:tiny, and how much of the machine's matrix rate is that?
//
// Training runs through the trainer itself, without HTTP: forward_backward and optim_step of full batches, no padding,
// after the shape has been compiled. The plain rate is jax-js's own wasm product of two 512x512 matrices, on the same one
// core. Rates are per second of processor time, so that other programs on the machine disturb them less; seconds of the
// clock are beside them. It does not measure compilation (reported beside it) or the cost of padding rows to a bucket.
//
import { loadavg } from "node:os";
import { flopsPerToken, plainRate } from "./matmul.mjs";
import { median, writeReceipt } from "./receipt.mjs";
import { loadSources } from "./sources.mjs";

const SHAPES = [
  { rows: 8, length: 64 },
  { rows: 32, length: 64 },
];
const REPEATS = 20;
const SAMPLES = 32;
const SAMPLE_TOKENS = 64;

/** Runs `work` once: seconds of processor time and of the clock. */
async function time(work) {
  const [cpu, clock] = [process.cpuUsage(), performance.now()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / 1e6, clock: (performance.now() - clock) / 1000 };
}

const medianOf = (times, key) => median(times.map((each) => each[key]));
const rounded = (times) => times.map(({ cpu, clock }) => [Number(cpu.toFixed(4)), Number(clock.toFixed(4))]);

async function measureTraining(sources, kernels, architecture, { rows, length }) {
  const trainer = new sources.Trainer(kernels, { architecture, trainable: sources.tinyTensors(), frozen: {} });
  const data = Array.from({ length: rows }, (_, row) => ({
    tokens: Int32Array.from({ length }, (_, i) => (row * 31 + i * 7) % 256),
    targets: Int32Array.from({ length }, (_, i) => (row * 31 + (i + 1) * 7) % 256),
    tensors: { weights: new Float32Array(length).fill(1 / (rows * length)) },
  }));
  const step = async () => {
    await trainer.forwardBackward(data, { name: "cross_entropy", options: {} });
    await trainer.optimStep(sources.ADAM_DEFAULTS);
  };
  const first = await time(step);
  await step();
  const times = [];
  for (let i = 0; i < REPEATS; i++) times.push(await time(step));
  trainer.dispose();
  return { first, times, tokensPerSecond: (rows * length) / medianOf(times, "cpu") };
}

async function measureSampling(sources, architecture) {
  const decoder = new sources.Decoder({ architecture, tensors: sources.tinyTensors() });
  const times = [];
  for (let i = 0; i < 5; i++) {
    const sampler = new sources.Sampler();
    const request = {
      prompt: Array.from({ length: 32 }, (_, j) => j + 60),
      samples: SAMPLES,
      maxTokens: SAMPLE_TOKENS,
      policy: { temperature: 1, topK: -1, topP: 1 },
      seed: i,
      stopTokens: [],
      stopStrings: [],
      wantsPromptLogprobs: false,
      topkPromptLogprobs: 0,
    };
    times.push(
      await time(async () => {
        const done = sampler.sample(decoder, request);
        while (sampler.hasWork) sampler.turn();
        await done;
      }),
    );
  }
  return { times, tokensPerSecond: (SAMPLES * SAMPLE_TOKENS) / medianOf(times, "cpu") };
}

const parts = ["jax", "kernels", "trainer", "tiny", "decoder", "sampler", "weights"];
const sources = await loadSources(parts.map((name) => `src/servers/embedded/${name}.ts`));
const jax = await sources.loadJax();
const kernels = new sources.Kernels(jax);
const architecture = sources.tinyArchitecture();
const plainGflops = await plainRate(jax);
const training = {};
for (const shape of SHAPES) {
  const { first, times, tokensPerSecond } = await measureTraining(sources, kernels, architecture, shape);
  const shapes = { projectionShape: sources.projectionShape, projections: sources.PROJECTIONS };
  const flops = flopsPerToken(architecture, shapes, shape.length);
  const shareOfPlain = (tokensPerSecond * flops) / 1e9 / plainGflops;
  const name = `${shape.rows}x${shape.length}`;
  training[name] = {
    tokensPerSecond: Math.round(tokensPerSecond),
    shareOfPlainRate: Number(shareOfPlain.toFixed(3)),
    compileSeconds: Number((first.cpu - medianOf(times, "cpu")).toFixed(3)),
    stepSecondsCpuAndClock: rounded(times),
  };
  console.log(
    `${name}: ${Math.round(tokensPerSecond)} tokens per processor second, ${(100 * shareOfPlain).toFixed(1)} % of the plain rate`,
  );
}
const { times, tokensPerSecond } = await measureSampling(sources, architecture);
console.log(
  `sampling ${SAMPLES} at a time: ${Math.round(tokensPerSecond)} tokens per processor second; plain wasm product: ${plainGflops.toFixed(1)} GFLOP/s`,
);
writeReceipt("embedded", {
  question:
    "Training and sampling rate of builtin:tiny on the embedded server, and the share of the plain wasm matrix rate",
  parameters: sources.parameterCount(architecture),
  load: loadavg().map((value) => Number(value.toFixed(2))),
  plainMatmul512Gflops: Number(plainGflops.toFixed(2)),
  training,
  sampling: {
    samplesAtATime: SAMPLES,
    tokensPerSecond: Math.round(tokensPerSecond),
    secondsCpuAndClock: rounded(times),
  },
});
