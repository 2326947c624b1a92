import { beforeAll, describe, expect, test } from "vitest";
import { Decoder } from "../../../src/servers/embedded/decoder.ts";
import { loadJax } from "../../../src/servers/embedded/jax.ts";
import { Kernels } from "../../../src/servers/embedded/kernels.ts";
import { initialAdapter, mergeAdapter } from "../../../src/servers/embedded/lora.ts";
import type { Tensor } from "../../../src/servers/embedded/safetensors.ts";
import { Trainer } from "../../../src/servers/embedded/trainer.ts";
import { loraB } from "../../../src/servers/embedded/transformer.ts";
import { EMBEDDING, layerName, type Model, readModel } from "../../../src/servers/embedded/weights.ts";
import { datumOf, readJsonFile, smallModel, TINY_QWEN3, tokensOf } from "./support.ts";

const LOSS = { name: "cross_entropy", options: {} };

interface Reference {
  readonly tokens: readonly number[];
  readonly next_token_logprobs: readonly number[];
}
const references = readJsonFile(`${TINY_QWEN3}/reference-logprobs.json`) as Reference[];

let kernels: Kernels;
beforeAll(async () => {
  kernels = new Kernels(await loadJax());
});

const trainerOf = ({ architecture, tensors }: Model) =>
  new Trainer(kernels, { architecture, trainable: tensors, frozen: {} });

/** log p of each next token by the sampling decoder, the sequence taken in pieces of `piece` tokens. */
function decoderLogprobs(model: Model, tokens: readonly number[], piece: number): number[] {
  const decoder = new Decoder(model);
  const cache = decoder.newCache(tokens.length);
  const logprobs: number[] = [];
  for (let at = 0; at < tokens.length - 1; at += piece) {
    const rows = tokens.slice(at, Math.min(at + piece, tokens.length - 1));
    const logits = decoder.forward(rows.map((token) => ({ cache, token, wantsLogits: true })));
    logits.forEach((row, i) => {
      const norm = Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0));
      logprobs.push(row[tokens[at + i + 1]!]! - norm);
    });
  }
  return logprobs;
}

function expectClose(found: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  expect(found.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i++) expect(Math.abs(found[i]! - expected[i]!)).toBeLessThan(tolerance);
}

describe("log-probabilities of tiny-qwen3 are those of transformers within 1e-4", () => {
  test("in the training pass", async () => {
    const trainer = trainerOf(readModel(TINY_QWEN3));
    const { rows, lossSum } = await trainer.forward(
      references.map(({ tokens }) => datumOf(tokens)),
      LOSS,
    );
    references.forEach(({ next_token_logprobs }, i) => {
      expectClose(rows[i]!.outputs, next_token_logprobs, 1e-4);
    });
    const expected = references.flatMap((r) => r.next_token_logprobs).reduce((sum, logprob) => sum - logprob, 0);
    expect(lossSum).toBeCloseTo(expected, 2);
    trainer.dispose();
  });

  test.each([1, 3, 64])("in the sampling decoder, %i tokens at a time", (piece) => {
    const model = readModel(TINY_QWEN3);
    for (const { tokens, next_token_logprobs } of references)
      expectClose(decoderLogprobs(model, tokens, piece), next_token_logprobs, 1e-4);
  });
});

const VARIANTS: readonly { name: string; changes: Record<string, unknown> }[] = [
  { name: "qwen3, tied", changes: {} },
  { name: "qwen3, untied, attention bias", changes: { tie_word_embeddings: false, attention_bias: true } },
  { name: "llama, grouped-query", changes: { model_type: "llama" } },
  {
    name: "llama, all biases, llama3 rotary scaling",
    changes: {
      model_type: "llama",
      attention_bias: true,
      mlp_bias: true,
      tie_word_embeddings: false,
      rope_scaling: {
        rope_type: "llama3",
        factor: 8,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 16,
      },
    },
  },
  { name: "llama, one key/value head", changes: { model_type: "llama", num_key_value_heads: 1, head_dim: 6 } },
];

describe.each(VARIANTS)("$name", ({ changes }) => {
  test("training pass and sampling decoder agree", async () => {
    const model = smallModel(changes);
    const tokens = tokensOf(40, 3);
    const trainer = trainerOf(model);
    const { rows } = await trainer.forward([datumOf(tokens)], LOSS);
    expectClose(rows[0]!.outputs, decoderLogprobs(model, tokens, 64), 1e-4);
    trainer.dispose();
  });

  test("the gradient is that of finite differences", async () => {
    const model = smallModel(changes);
    const data = [datumOf(tokensOf(9, 5), [0, 1, 1, 0.5, 1, -1, 1, 1]), datumOf(tokensOf(5, 6))];
    const trainer = trainerOf(model);
    const gradient = await gradientOf(trainer, data);
    const before = await trainer.exportWeights();
    for (const [name, { data: values }] of model.tensors) {
      const at = Math.floor(values.length / 3);
      const numeric = await slope(trainer, before, name, at, data);
      expect(Math.abs(gradient(name, at) - numeric), name).toBeLessThan(0.02 + 0.02 * Math.abs(numeric));
    }
    trainer.dispose();
  });
});

/**
 * The accumulated gradient, read off an update: with β₁ = 0 and an enormous eps, AdamW moves weights by
 * −lr · g / eps.
 */
async function gradientOf(trainer: Trainer, data: ReturnType<typeof datumOf>[]) {
  const before = await trainer.exportWeights();
  await trainer.forwardBackward(data, LOSS);
  const scale = 1e6;
  await trainer.optimStep({ learningRate: scale, beta1: 0, beta2: 0, eps: scale, weightDecay: 0, gradClipNorm: 0 });
  const after = await trainer.exportWeights();
  trainer.restore(before, undefined);
  return (name: string, at: number) => before.get(name)!.data[at]! - after.get(name)!.data[at]!;
}

async function slope(
  trainer: Trainer,
  weights: ReadonlyMap<string, Tensor>,
  name: string,
  at: number,
  data: ReturnType<typeof datumOf>[],
): Promise<number> {
  const step = 5e-3;
  const lossAt = async (change: number) => {
    const { shape, data: values } = weights.get(name)!;
    const moved = values.slice();
    moved[at]! += change;
    trainer.restore(new Map([...weights, [name, { shape, data: moved }]]), undefined);
    return (await trainer.forward(data, LOSS)).lossSum;
  };
  return ((await lossAt(step)) - (await lossAt(-step))) / (2 * step);
}

describe("the loss", () => {
  test("is a sum: rows, requests and padding do not change a row's values, weights scale its loss", async () => {
    const trainer = trainerOf(smallModel());
    const [a, b] = [tokensOf(12, 7), tokensOf(30, 8)];
    const weights = a.slice(1).map((_, i) => i / 4);
    const together = await trainer.forward([datumOf(a, weights), datumOf(b)], LOSS);
    const alone = await trainer.forward([datumOf(a, weights)], LOSS);
    expectClose(together.rows[0]!.outputs, alone.rows[0]!.outputs, 1e-5);
    alone.rows[0]!.elementwiseLoss.forEach((loss, i) => {
      expect(loss).toBeCloseTo(-weights[i]! * alone.rows[0]!.outputs[i]!, 4);
    });
    trainer.dispose();
  });

  test("comes back in the request's order, also where a request is cut into batches", async () => {
    const trainer = trainerOf(smallModel({ max_position_embeddings: 2048 }));
    const all = [3, 50, 9, 700, 20, 1500, 4, 1100, 900].map((length, i) => tokensOf(length, i + 20));
    const { rows } = await trainer.forward(
      all.map((tokens) => datumOf(tokens)),
      LOSS,
    );
    for (const [i, tokens] of all.entries()) expect(rows[i]!.outputs.length).toBe(tokens.length - 1);
    const alone = await trainer.forward([datumOf(all[4]!)], LOSS);
    expectClose(rows[4]!.outputs, alone.rows[0]!.outputs, 1e-4);
    trainer.dispose();
  });
});

describe("LoRA", () => {
  const lora = { rank: 4, alpha: 32, seed: 7, attention: true, mlp: true, unembedding: false };
  const adapterTrainer = (model: Model) =>
    new Trainer(kernels, {
      architecture: model.architecture,
      trainable: initialAdapter(model.architecture, lora),
      frozen: Object.fromEntries(
        [...model.tensors].map(([name, { data, shape }]) => [
          name,
          kernels.jax.numpy.array(data.slice()).reshape([...shape]),
        ]),
      ),
      adapterScale: lora.alpha / lora.rank,
    });

  test("starts as the base model, and trains B only in the first step", async () => {
    const model = smallModel();
    const trainer = adapterTrainer(model);
    const data = [datumOf(tokensOf(12, 9))];
    const base = trainerOf(model);
    const expected = await base.forward(data, LOSS);
    const { rows, lossSum } = await trainer.forwardBackward(data, LOSS);
    expectClose(rows[0]!.outputs, expected.rows[0]!.outputs, 1e-5);
    const before = await trainer.exportWeights();
    await trainer.optimStep({ ...STEP, learningRate: 0.01 });
    const after = await trainer.exportWeights();
    for (const [name, { data: values }] of after) {
      const isMoved = values.some((value, i) => value !== before.get(name)!.data[i]);
      expect(isMoved, name).toBe(name.includes("lora_B"));
    }
    expect((await trainer.forward(data, LOSS)).lossSum).toBeLessThan(lossSum);
    trainer.dispose();
    base.dispose();
  });

  test("merged into the base gives what training computes", async () => {
    const model = smallModel();
    const trainer = adapterTrainer(model);
    const tokens = tokensOf(20, 10);
    for (let i = 0; i < 3; i++) {
      await trainer.forwardBackward([datumOf(tokens)], LOSS);
      await trainer.optimStep({ ...STEP, learningRate: 0.02 });
    }
    const { rows } = await trainer.forward([datumOf(tokens)], LOSS);
    const merged = mergeAdapter(model, await trainer.exportWeights(), lora);
    expectClose(decoderLogprobs(merged, tokens, 64), rows[0]!.outputs, 1e-3);
    const name = layerName(0, "mlp.up_proj.weight");
    expect(merged.tensors.get(name)!.data).not.toEqual(model.tensors.get(name)!.data);
    expect(merged.tensors.get(EMBEDDING)!.data).toBe(model.tensors.get(EMBEDDING)!.data);
    trainer.dispose();
  });

  test("depends on its seed and starts with B at zero", () => {
    const { architecture } = smallModel();
    const [first, same, other] = [7, 7, 8].map((seed) => initialAdapter(architecture, { ...lora, seed }));
    expect(first).toEqual(same);
    expect(first).not.toEqual(other);
    expect(first!.get(loraB(1, "mlp.down_proj"))!.data.every((value) => value === 0)).toBe(true);
  });
});

const STEP = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 };
