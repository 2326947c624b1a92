/** AdamW as written in the protocol, atomicity of failures, determinism, and that nothing leaks. */
import { beforeAll, describe, expect, test } from "vitest";
import { loadJax } from "../../../src/servers/embedded/jax.ts";
import { Kernels } from "../../../src/servers/embedded/kernels.ts";
import type { Tensors } from "../../../src/servers/embedded/safetensors.ts";
import { ADAM_DEFAULTS, type AdamParams, RequestError, Trainer } from "../../../src/servers/embedded/trainer.ts";
import { datumOf, smallModel, tokensOf } from "./support.ts";

const LOSS = { name: "cross_entropy", options: {} };
interface WasmMemory {
  readonly buffer: ArrayBuffer;
}
const memories: WasmMemory[] = [];
let kernels: Kernels;

beforeAll(async () => {
  // Node's types have no WebAssembly without the DOM's.
  const wasm = (globalThis as unknown as { WebAssembly: { Memory: new (descriptor: object) => WasmMemory } })
    .WebAssembly;
  const Original = wasm.Memory;
  wasm.Memory = class extends Original {
    constructor(descriptor: object) {
      super(descriptor);
      memories.push(this);
    }
  };
  kernels = new Kernels(await loadJax());
  wasm.Memory = Original;
});

function newTrainer(seed = 1): Trainer {
  const { architecture, tensors } = smallModel({}, seed);
  return new Trainer(kernels, { architecture, trainable: tensors, frozen: {} });
}

const NAME = "model.layers.0.mlp.up_proj.weight";
const values = (tensors: Tensors) => tensors.get(NAME)!.data;
const dataOf = (step: number) => [datumOf(tokensOf(12, step)), datumOf(tokensOf(7, step + 100))];

/** The gradient of one request, as an update with β₁ = 0 and an enormous eps shows it, for every tensor. */
async function gradients(trainer: Trainer, step: number): Promise<ReadonlyMap<string, Float64Array>> {
  const before = await trainer.exportWeights();
  const probe = newTrainer();
  probe.restore(before, undefined);
  await probe.forwardBackward(dataOf(step), LOSS);
  const scale = 1e8;
  await probe.optimStep({ learningRate: scale, beta1: 0, beta2: 0, eps: scale, weightDecay: 0, gradClipNorm: 0 });
  const after = await probe.exportWeights();
  probe.dispose();
  return new Map(
    [...before].map(([name, { data }]) => [name, Float64Array.from(data, (v, i) => v - after.get(name)!.data[i]!)]),
  );
}

describe("AdamW", () => {
  test.each<{ name: string; params: AdamParams }>([
    { name: "SDK defaults", params: { ...ADAM_DEFAULTS, learningRate: 0.01 } },
    {
      name: "decoupled decay, large eps",
      params: { learningRate: 0.02, beta1: 0.8, beta2: 0.99, eps: 0.1, weightDecay: 0.1, gradClipNorm: 0 },
    },
    { name: "clipping", params: { ...ADAM_DEFAULTS, learningRate: 0.01, eps: 0.1, gradClipNorm: 0.5 } },
  ])("follows the formula: $name", async ({ params }) => {
    const trainer = newTrainer();
    const expected = Float64Array.from(values(await trainer.exportWeights()));
    const m = new Float64Array(expected.length);
    const v = new Float64Array(expected.length);
    for (let step = 1; step <= 3; step++) {
      const all = await gradients(trainer, step);
      const norm = Math.sqrt([...all.values()].flatMap((g) => [...g]).reduce((sum, g) => sum + g * g, 0));
      const clip = params.gradClipNorm > 0 ? Math.min(1, params.gradClipNorm / norm) : 1;
      all.get(NAME)!.forEach((raw, i) => {
        const g = raw * clip;
        m[i] = params.beta1 * m[i]! + (1 - params.beta1) * g;
        v[i] = params.beta2 * v[i]! + (1 - params.beta2) * g * g;
        const first = m[i]! / (1 - params.beta1 ** step);
        const second = v[i]! / (1 - params.beta2 ** step);
        const update = first / (Math.sqrt(second) + params.eps) + params.weightDecay * expected[i]!;
        expected[i]! -= params.learningRate * update;
      });
      await trainer.forwardBackward(dataOf(step), LOSS);
      const { gradNorm } = await trainer.optimStep(params);
      expect(gradNorm / norm).toBeCloseTo(1, 2);
    }
    const found = values(await trainer.exportWeights());
    const worst = found.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
    // The probe reads gradients to about 1e-3; where eps is tiny their sign alone decides, where it is not they scale.
    expect(worst).toBeLessThan(2e-3);
    trainer.dispose();
  });

  test("a step without gradients decays weights and counts, and gradients do not survive a step", async () => {
    const trainer = newTrainer();
    const before = values(await trainer.exportWeights());
    const { gradNorm } = await trainer.optimStep({ ...ADAM_DEFAULTS, learningRate: 0.1, weightDecay: 0.5 });
    expect(gradNorm).toBe(0);
    expect(trainer.step).toBe(1);
    values(await trainer.exportWeights()).forEach((value, i) => {
      expect(value).toBeCloseTo(before[i]! * 0.95, 6);
    });
    await trainer.forwardBackward(dataOf(1), LOSS);
    await trainer.optimStep(ADAM_DEFAULTS);
    expect((await trainer.optimStep(ADAM_DEFAULTS)).gradNorm).toBe(0);
    trainer.dispose();
  });

  test("accumulates over requests as if they were one", async () => {
    const [apart, together] = [newTrainer(), newTrainer()];
    const [a, b] = dataOf(4);
    await apart.forwardBackward([a!], LOSS);
    await apart.forwardBackward([b!], LOSS);
    await together.forwardBackward([a!, b!], LOSS);
    const norms = [await apart.optimStep(ADAM_DEFAULTS), await together.optimStep(ADAM_DEFAULTS)];
    expect(norms[0]!.gradNorm).toBeCloseTo(norms[1]!.gradNorm, 3);
    apart.dispose();
    together.dispose();
  });
});

describe("a request that fails", () => {
  const poisonous = () => [{ ...dataOf(1)[0]!, tensors: { weights: new Float32Array(11).fill(3e38) } }];

  test("by a loss that is not finite leaves accumulated gradients as they were", async () => {
    const [trainer, reference] = [newTrainer(), newTrainer()];
    await trainer.forwardBackward(dataOf(2), LOSS);
    await reference.forwardBackward(dataOf(2), LOSS);
    await expect(trainer.forwardBackward(poisonous(), LOSS)).rejects.toThrow(RequestError);
    expect(await trainer.optimStep(ADAM_DEFAULTS)).toEqual(await reference.optimStep(ADAM_DEFAULTS));
    expect(await trainer.exportWeights()).toEqual(await reference.exportWeights());
    trainer.dispose();
    reference.dispose();
  });

  test("by a gradient that is not finite leaves the weights, and the next step works", async () => {
    const trainer = newTrainer();
    const before = await trainer.exportWeights();
    // Finite losses whose squared gradients overflow float32.
    const data = [{ ...dataOf(1)[0]!, tensors: { weights: new Float32Array(11).fill(1e30) } }];
    await trainer.forwardBackward(data, LOSS);
    await expect(trainer.optimStep(ADAM_DEFAULTS)).rejects.toThrow(/not finite/);
    expect(await trainer.exportWeights()).toEqual(before);
    expect(trainer.step).toBe(0);
    await trainer.forwardBackward(dataOf(1), LOSS);
    expect((await trainer.optimStep(ADAM_DEFAULTS)).gradNorm).toBeGreaterThan(0);
    trainer.dispose();
  });
});

describe("determinism", () => {
  test("the same requests give the same bits, also from a restored state", async () => {
    const [one, two] = [newTrainer(), newTrainer()];
    const run = async (trainer: Trainer, from: number, to: number) => {
      for (let step = from; step < to; step++) {
        await trainer.forwardBackward(dataOf(step), LOSS);
        await trainer.optimStep({ ...ADAM_DEFAULTS, learningRate: 0.01 });
      }
    };
    await run(one, 0, 6);
    await run(two, 0, 3);
    const restored = newTrainer(2);
    restored.restore(await two.exportWeights(), await two.exportOptimizer());
    await run(restored, 3, 6);
    expect(await restored.exportWeights()).toEqual(await one.exportWeights());
    expect(await restored.exportOptimizer()).toEqual(await one.exportOptimizer());
    for (const trainer of [one, two, restored]) trainer.dispose();
  });
});

describe("memory", () => {
  // Arrays are counted by hand: one that is not freed per step shows as growth of the WebAssembly memory.
  const steps = process.env.RLCLI_TEST_ALL ? 3000 : 150;

  test(`${steps} steps need no more than the first 30`, { timeout: 600_000 }, async () => {
    const bytes = () => memories.reduce((sum, memory) => sum + memory.buffer.byteLength, 0);
    expect(memories.length).toBeGreaterThan(0);
    let warm = 0;
    const trainer = newTrainer();
    for (let step = 0; step < steps; step++) {
      await trainer.forwardBackward(dataOf(step % 20), LOSS);
      await trainer.forwardBackward(dataOf((step + 7) % 20), LOSS);
      await trainer.forward(dataOf(1), LOSS);
      await trainer.optimStep(ADAM_DEFAULTS);
      if (step % 10 === 0) {
        const other = newTrainer();
        other.restore(await trainer.exportWeights(), await trainer.exportOptimizer());
        other.dispose();
      }
      if (step === 30) warm = bytes();
    }
    expect(bytes()).toBe(warm);
    trainer.dispose();
  });
});
