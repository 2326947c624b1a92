/**
 * All losses through the model: each is one call whose gradient is that of the loss's sum, by finite differences of the
 * model itself; and padding, company and the cut into calls do not matter.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { LOSSES, lossNamed } from "../../../src/losses/registry.ts";
import type { Datum } from "../../../src/servers/embedded/batch.ts";
import { loadJax } from "../../../src/servers/embedded/jax.ts";
import { Kernels } from "../../../src/servers/embedded/kernels.ts";
import { normals } from "../../../src/servers/embedded/random.ts";
import type { Tensors } from "../../../src/servers/embedded/safetensors.ts";
import { ADAM_DEFAULTS, type LossCall, RequestError, Trainer } from "../../../src/servers/embedded/trainer.ts";
import { VALUE_HEAD } from "../../../src/servers/embedded/weights.ts";
import { datumOf, smallModel, tokensOf } from "./support.ts";

let kernels: Kernels;
beforeAll(async () => {
  kernels = new Kernels(await loadJax());
});

/** A policy, or a critic whose head is not zero. */
function trainerFor(loss: LossCall, own: Kernels = kernels): Trainer {
  const { architecture, tensors } = smallModel();
  if (lossNamed(loss.name)!.of === "policy") return new Trainer(own, { architecture, trainable: tensors, frozen: {} });
  const head = {
    shape: [1, architecture.hiddenSize],
    data: normals(3, 1, architecture.hiddenSize).map((v) => v * 0.3),
  };
  return new Trainer(own, {
    architecture,
    trainable: new Map([...tensors, [VALUE_HEAD, head]]),
    frozen: {},
    output: "values",
  });
}

const callOf = (name: string): LossCall => ({
  name,
  options: Object.fromEntries(lossNamed(name)!.options.map((option) => [option.name, option.default ?? 0.1])),
});

/** Rows of several lengths with masks; old values are near what the model gives, so that ratios are clipped here and there. */
async function dataFor(loss: LossCall, trainer: Trainer): Promise<Datum[]> {
  const plain = [9, 40, 5, 17].map((length, i) => datumOf(tokensOf(length, i + 50)));
  const forward = lossNamed(loss.name)!.of === "critic" ? callOf("ppo_critic") : callOf("cross_entropy");
  const probe = plain.map(({ tensors, ...rest }) => ({
    ...rest,
    tensors: { ...tensors, values: tensors.weights!, returns: tensors.weights! },
  }));
  const { rows } = await trainer.forward(probe, forward);
  return plain.map(({ tokens, targets }, i) => {
    const noise = (stream: number) => normals(i, stream, tokens.length);
    const old = noise(1).map((v, j) => rows[i]!.outputs[j]! + v * 0.3);
    const weights = noise(3).map((v) => (v < -0.5 ? 0 : Math.abs(v)));
    const tensors = { weights, logprobs: old, advantages: noise(2), values: old, returns: noise(2) };
    return { tokens, targets, tensors };
  });
}

/** The accumulated gradient, from an update without momentum and with an enormous eps. */
async function gradientOf(
  trainer: Trainer,
  data: readonly (readonly Datum[])[],
  loss: LossCall,
): Promise<ReadonlyMap<string, Float64Array>> {
  const before = await trainer.exportWeights();
  for (const part of data) await trainer.forwardBackward(part, loss);
  const scale = 1e8;
  await trainer.optimStep({ learningRate: scale, beta1: 0, beta2: 0, eps: scale, weightDecay: 0, gradClipNorm: 0 });
  const after = await trainer.exportWeights();
  trainer.restore(before, undefined);
  return new Map(
    [...before].map(([name, { data: v }]) => [name, Float64Array.from(v, (x, i) => x - after.get(name)!.data[i]!)]),
  );
}

describe.each(LOSSES.map(({ name }) => ({ name, loss: callOf(name) })))("$name", ({ name, loss }) => {
  test("reports its losses, their sum, and nothing for masked positions", async () => {
    const trainer = trainerFor(loss);
    const data = await dataFor(loss, trainer);
    const forward = await trainer.forward(data, loss);
    const pass = await trainer.forwardBackward(data, loss);
    const all = pass.rows.flatMap(({ elementwiseLoss }) => [...elementwiseLoss]);
    expect(pass.lossSum).toBeCloseTo(
      all.reduce((a, b) => a + b, 0),
      3,
    );
    expect(pass.lossSum).toBeCloseTo(forward.lossSum, 4);
    data.forEach(({ tensors }, i) => {
      tensors.weights!.forEach((weight, j) => {
        if (weight === 0) expect(pass.rows[i]!.elementwiseLoss[j]).toBe(0);
      });
    });
    trainer.dispose();
  });

  test("has the gradient of its sum with the derivatives held fixed, along the gradient itself", async () => {
    const trainer = trainerFor(loss);
    const data = await dataFor(loss, trainer);
    const { rows } = await trainer.forward(data, loss);
    const derivatives = data.map(
      ({ tensors }, i) =>
        lossNamed(name)!.evaluate({ outputs: rows[i]!.outputs, tensors, options: loss.options }).derivatives,
    );
    const gradient = await gradientOf(trainer, [data], loss);
    const norm = Math.sqrt([...gradient.values()].reduce((sum, g) => sum + g.reduce((part, v) => part + v * v, 0), 0));
    expect(norm).toBeGreaterThan(1e-2);
    const weights = await trainer.exportWeights();
    /** Σ derivative · output after a step of `size` along the gradient's direction. */
    const surrogateAt = async (size: number) => {
      const moved: Tensors = new Map(
        [...weights].map(([key, { shape, data: v }]) => [
          key,
          { shape, data: v.map((x, i) => x + (size * gradient.get(key)![i]!) / norm) },
        ]),
      );
      trainer.restore(moved, undefined);
      const pass = await trainer.forward(data, loss);
      return pass.rows.reduce(
        (sum, row, i) => sum + row.outputs.reduce((part, value, j) => part + value * derivatives[i]![j]!, 0),
        0,
      );
    };
    const step = 2e-3;
    const slope = ((await surrogateAt(step)) - (await surrogateAt(-step))) / (2 * step);
    expect(slope / norm).toBeGreaterThan(0.99);
    expect(slope / norm).toBeLessThan(1.01);
    trainer.dispose();
  });

  test("has the gradient that its derivatives in double precision, sent as weights, have", async () => {
    const trainer = trainerFor(loss);
    const data = await dataFor(loss, trainer);
    const { rows } = await trainer.forward(data, loss);
    const fused = await gradientOf(trainer, [data], loss);
    const twoPass = data.map(({ tensors, ...rest }, i) => {
      const { outputs } = rows[i]!;
      const { derivatives } = lossNamed(name)!.evaluate({ outputs, tensors, options: loss.options });
      const weights = Float32Array.from(derivatives, (d) => -d);
      // A critic has no linear loss: half the squared error from a return at distance 1 has the derivative −1.
      const returns = outputs.map((value) => value + 1);
      return { ...rest, tensors: { weights, values: outputs, returns } };
    });
    const linear = await gradientOf(
      trainer,
      [twoPass],
      callOf(lossNamed(name)!.of === "critic" ? "ppo_critic" : "cross_entropy"),
    );
    const largest = [...fused.values()].reduce((most, g) => g.reduce((m, v) => Math.max(m, Math.abs(v)), most), 0);
    for (const [key, values] of fused)
      values.forEach((value, i) => {
        expect(Math.abs(value - linear.get(key)![i]!), key).toBeLessThan(2e-5 * Math.max(1, largest));
      });
    trainer.dispose();
  });

  test("takes one forward and one backward: no pass of outputs alone goes before", async () => {
    const passes: string[] = [];
    class Counting extends Kernels {
      override pass(...of: Parameters<Kernels["pass"]>): ReturnType<Kernels["pass"]> {
        const { forward, forwardBackward } = kernels.pass(...of);
        const counted =
          <A extends unknown[], R>(name: string, call: (...args: A) => R) =>
          (...args: A) => {
            passes.push(name);
            return call(...args);
          };
        return {
          forward: counted("forward", forward),
          forwardBackward: (definition) => counted("backward", forwardBackward(definition)),
        };
      }
    }
    const probe = trainerFor(loss);
    const data = await dataFor(loss, probe);
    const trainer = trainerFor(loss, new Counting(kernels.jax));
    await trainer.forwardBackward(data, loss);
    expect(passes).toEqual(["backward"]);
    for (const one of [probe, trainer]) one.dispose();
  });

  test("is the same sum, and the same gradient, in several calls and in other company", async () => {
    const trainer = trainerFor(loss);
    const data = await dataFor(loss, trainer);
    const together = await trainer.forward(data, loss);
    const [alone] = (await trainer.forward([data[2]!], loss)).rows;
    alone!.outputs.forEach((value, i) => {
      expect(Math.abs(value - together.rows[2]!.outputs[i]!)).toBeLessThan(1e-5);
    });
    const whole = await gradientOf(trainer, [data], loss);
    const parts = await gradientOf(trainer, [[data[3]!, data[0]!], [data[1]!], [data[2]!]], loss);
    const largest = [...whole.values()].reduce((most, g) => g.reduce((m, v) => Math.max(m, Math.abs(v)), most), 0);
    for (const [key, values] of whole)
      values.forEach((value, i) => {
        expect(Math.abs(value - parts.get(key)![i]!), key).toBeLessThan(1e-5 * Math.max(1, largest));
      });
    trainer.dispose();
  });

  test("goes down when it is trained on", async () => {
    const trainer = trainerFor(loss);
    const data = await dataFor(loss, trainer);
    const first = await trainer.forward(data, loss);
    for (let step = 0; step < 10; step++) {
      await trainer.forwardBackward(data, loss);
      await trainer.optimStep({ ...ADAM_DEFAULTS, learningRate: 3e-3 });
    }
    expect((await trainer.forward(data, loss)).lossSum).toBeLessThan(first.lossSum);
    trainer.dispose();
  });
});

test("a policy has no values, a critic no log-probabilities", async () => {
  const [policy, critic] = [trainerFor(callOf("ppo")), trainerFor(callOf("ppo_critic"))];
  const data = await dataFor(callOf("ppo"), policy);
  await expect(policy.forward(data, callOf("ppo_critic"))).rejects.toThrow(RequestError);
  await expect(critic.forwardBackward(data, callOf("ppo"))).rejects.toThrow(/critic/);
  for (const trainer of [policy, critic]) trainer.dispose();
});

test("several targets a position are as many data with one", async () => {
  const loss = callOf("cross_entropy");
  const trainer = trainerFor(loss);
  const [first, second] = [datumOf(tokensOf(40, 7)), datumOf(tokensOf(40, 8))];
  const weights = [first, second].map((_, k) => normals(k, 9, first!.tokens.length));
  const interleaved = <A extends Int32Array | Float32Array>(a: A, b: A, make: (n: number) => A): A => {
    const out = make(a.length * 2);
    a.forEach((value, i) => {
      out[2 * i] = value;
      out[2 * i + 1] = b[i]!;
    });
    return out;
  };
  const tokens = first!.tokens;
  const wide = {
    tokens,
    targets: interleaved(first!.targets, second!.targets, (n) => new Int32Array(n)),
    tensors: { weights: interleaved(weights[0]!, weights[1]!, (n) => new Float32Array(n)) },
  };
  const narrow = [first!, second!].map(({ targets }, k) => ({ tokens, targets, tensors: { weights: weights[k]! } }));
  const short = datumOf(tokensOf(9, 50));
  const [one, other] = [await trainer.forward([wide, short], loss), await trainer.forward([...narrow, short], loss)];
  expect(one.lossSum).toBeCloseTo(other.lossSum, 4);
  one.rows[0]!.outputs.forEach((value, i) => {
    expect(Math.abs(value - other.rows[i % 2]!.outputs[i >> 1]!)).toBeLessThan(1e-5);
  });
  const [a, b] = [
    await gradientOf(trainer, [[wide, short]], loss),
    await gradientOf(trainer, [[...narrow, short]], loss),
  ];
  for (const [key, values] of a)
    values.forEach((value, i) => {
      expect(Math.abs(value - b.get(key)![i]!), key).toBeLessThan(1e-4);
    });
  trainer.dispose();
});

test("a ratio beyond float32 fails the request and changes nothing", async () => {
  const trainer = trainerFor(callOf("importance_sampling"));
  const data = await dataFor(callOf("importance_sampling"), trainer);
  const far = data.map(({ tensors, ...rest }) => ({
    ...rest,
    tensors: { ...tensors, logprobs: tensors.logprobs!.map(() => -200) },
  }));
  await expect(trainer.forwardBackward(far, callOf("importance_sampling"))).rejects.toThrow(/finite/);
  expect((await trainer.optimStep(ADAM_DEFAULTS)).gradNorm).toBe(0);
  trainer.dispose();
});
