// How fast does the embedded server train and sample builtin:tiny, and how much of the machine's matrix rate is that?
//
// Training runs through the trainer itself, without HTTP: forward_backward and optim_step of full batches, no padding,
// after the shape has been compiled. The plain rate is jax-js's own wasm product of two 512x512 matrices, on the same one
// core. It does not measure compilation (reported beside it) or the cost of padding real rows to a bucket.
//
// The trainer is not an entry of dist/, so the sources are bundled here first.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { median, writeReceipt } from "./receipt.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const SHAPES = [
  { rows: 8, length: 64 },
  { rows: 32, length: 64 },
];
const REPEATS = 20;
const SAMPLES = 32;
const SAMPLE_TOKENS = 64;

/** The parts of the server this measures, as one module. Below the project, so that packages are found. */
async function bundleSources() {
  const folder = await mkdtemp(join(root, "node_modules/.bench-"));
  const names = ["jax", "kernels", "trainer", "tiny", "decoder", "sampler", "weights"];
  const entry = join(folder, "entry.ts");
  await writeFile(
    entry,
    names.map((name) => `export * from ${JSON.stringify(`${root}src/servers/embedded/${name}.ts`)};\n`).join(""),
  );
  const bundle = await rolldown({
    input: entry,
    platform: "node",
    external: [/^node:/, "@jax-js/jax"],
    logLevel: "silent",
  });
  await bundle.write({ file: join(folder, "sources.mjs"), format: "esm" });
  const sources = await import(pathToFileURL(join(folder, "sources.mjs")).href);
  await rm(folder, { recursive: true });
  return sources;
}

/** GFLOP/s of one 512x512x512 product: the median of many. */
async function plainRate(jax) {
  const { numpy, jit } = jax;
  const size = 512;
  const matrix = () => numpy.array(new Float32Array(size * size).fill(0.5)).reshape([size, size]);
  const [a, b] = [matrix(), matrix()];
  const multiply = jit((x, y) => numpy.matmul(x, y));
  const seconds = [];
  for (let i = 0; i < 60; i++) {
    const started = performance.now();
    await multiply(a.ref, b.ref).data();
    seconds.push((performance.now() - started) / 1000);
  }
  return (2 * size ** 3) / median(seconds.slice(10)) / 1e9;
}

/** Matrix-product work of one trained token: forward once, and twice as much backward. Lookups and the rest not counted. */
function flopsPerToken(architecture, projectionShape, projections, length) {
  const layer = projections.reduce(
    (sum, name) => sum + 2 * projectionShape(architecture, name).reduce((a, b) => a * b),
    0,
  );
  const attention = 4 * length * architecture.heads * architecture.headDim;
  const unembedding = 2 * architecture.vocabSize * architecture.hiddenSize;
  return 3 * (architecture.layers * (layer + attention) + unembedding);
}

async function measureTraining(sources, kernels, architecture, { rows, length }) {
  const trainer = new sources.Trainer(kernels, { architecture, trainable: sources.tinyTensors(), frozen: {} });
  const data = Array.from({ length: rows }, (_, row) => ({
    tokens: Int32Array.from({ length }, (_, i) => (row * 31 + i * 7) % 256),
    targets: Int32Array.from({ length }, (_, i) => (row * 31 + (i + 1) * 7) % 256),
    tensors: { weights: new Float32Array(length).fill(1 / (rows * length)) },
  }));
  const step = async () => {
    const started = performance.now();
    await trainer.forwardBackward(data, { name: "cross_entropy", options: {} });
    await trainer.optimStep(sources.ADAM_DEFAULTS);
    return (performance.now() - started) / 1000;
  };
  const firstSeconds = await step();
  await step();
  const seconds = [];
  for (let i = 0; i < REPEATS; i++) seconds.push(await step());
  trainer.dispose();
  return { firstSeconds, seconds, tokensPerSecond: (rows * length) / median(seconds) };
}

async function measureSampling(sources, architecture) {
  const decoder = new sources.Decoder({ architecture, tensors: sources.tinyTensors() });
  const seconds = [];
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
    const started = performance.now();
    const done = sampler.sample(decoder, request);
    while (sampler.hasWork) sampler.turn();
    await done;
    seconds.push((performance.now() - started) / 1000);
  }
  return { seconds, tokensPerSecond: (SAMPLES * SAMPLE_TOKENS) / median(seconds) };
}

const sources = await bundleSources();
const jax = await sources.loadJax();
const kernels = new sources.Kernels(jax);
const architecture = sources.tinyArchitecture();
const plainGflops = await plainRate(jax);
const training = {};
for (const shape of SHAPES) {
  const { firstSeconds, seconds, tokensPerSecond } = await measureTraining(sources, kernels, architecture, shape);
  const flops = flopsPerToken(architecture, sources.projectionShape, sources.PROJECTIONS, shape.length);
  const shareOfPlain = (tokensPerSecond * flops) / 1e9 / plainGflops;
  const name = `${shape.rows}x${shape.length}`;
  training[name] = {
    tokensPerSecond: Math.round(tokensPerSecond),
    shareOfPlainRate: Number(shareOfPlain.toFixed(3)),
    compileSeconds: Number((firstSeconds - median(seconds)).toFixed(3)),
    stepSeconds: seconds.map((value) => Number(value.toFixed(4))),
  };
  console.log(
    `${name}: ${Math.round(tokensPerSecond)} tokens/s, ${(100 * shareOfPlain).toFixed(1)} % of the plain rate`,
  );
}
const { seconds, tokensPerSecond } = await measureSampling(sources, architecture);
console.log(
  `sampling ${SAMPLES} at a time: ${Math.round(tokensPerSecond)} tokens/s; plain wasm product: ${plainGflops.toFixed(1)} GFLOP/s`,
);
writeReceipt("embedded", {
  question:
    "Training and sampling rate of builtin:tiny on the embedded server, and the share of the plain wasm matrix rate",
  parameters: sources.parameterCount(architecture),
  plainMatmul512Gflops: Number(plainGflops.toFixed(2)),
  training,
  sampling: {
    samplesAtATime: SAMPLES,
    tokensPerSecond: Math.round(tokensPerSecond),
    seconds: seconds.map((value) => Number(value.toFixed(3))),
  },
});
