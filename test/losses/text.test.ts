/** The formulas that `rlcli explain` prints, read literally, give what the losses compute. */
import { expect, test } from "vitest";
import { LOSSES } from "../../src/losses/registry.ts";

const clip = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high);

interface Token {
  readonly l: number;
  readonly q: number;
  readonly A: number;
}

/** Each written from its text, for one token of an answer. */
const READ: Readonly<
  Record<string, (token: Token, options: Record<string, number>, answer: readonly Token[]) => number>
> = {
  cross_entropy: ({ l }) => -l,
  importance_sampling: ({ l, q, A }) => -Math.exp(l - q) * A,
  ppo: ({ l, q, A }, o) => {
    const r = Math.exp(l - q);
    return -Math.min(r * A, clip(r, o.clip_low_threshold!, o.clip_high_threshold!) * A);
  },
  cispo: ({ l, q, A }, o) => -clip(Math.exp(l - q), o.clip_low_threshold!, o.clip_high_threshold!) * A * l,
  dro: ({ l, q, A }, o) => -(l * A - 0.5 * o.beta! * (l - q) ** 2),
  gspo: ({ A }, o, answer) => {
    const s = Math.exp(answer.reduce((sum, { l, q }) => sum + l - q, 0) / answer.length);
    return -Math.min(s * A, clip(s, o.clip_low_threshold!, o.clip_high_threshold!) * A);
  },
  dppo: ({ l, q, A }, o) => {
    const moved = Math.exp(l) - Math.exp(q);
    const isMasked = (moved > o.delta_high! && A > 0) || (moved < -o.delta_low! && A < 0);
    return isMasked ? 0 : -Math.exp(l - q) * A;
  },
};

const ANSWERS: readonly (readonly Token[])[] = [
  [
    { l: -0.1, q: -1.2, A: 1 },
    { l: -2, q: -0.4, A: 1 },
  ],
  [
    { l: -1.9, q: -0.2, A: -0.7 },
    { l: -0.5, q: -0.6, A: -0.7 },
  ],
  [{ l: -0.3, q: -0.31, A: 0.4 }],
];

test.each(LOSSES.filter(({ of }) => of === "policy").map((loss) => [loss.name, loss] as const))("%s", (name, loss) => {
  const options = Object.fromEntries(loss.options.map((option) => [option.name, option.default ?? 0.3]));
  for (const answer of ANSWERS) {
    const tensors = { logprobs: answer.map(({ q }) => q), advantages: answer.map(({ A }) => A) };
    const { losses } = loss.evaluate({ outputs: answer.map(({ l }) => l), tensors, options });
    for (const [at, token] of answer.entries()) expect(losses[at]).toBeCloseTo(READ[name]!(token, options, answer), 9);
  }
  for (const option of loss.options)
    expect(loss.text).toMatch(new RegExp(option.name.replace(/^clip_(low|high)_threshold$/, "$1")));
});

test("ppo_critic", () => {
  const { evaluate, text } = LOSSES.find(({ name }) => name === "ppo_critic")!;
  for (const [v, old, R] of [
    [1.5, 1, 0.2],
    [0.9, 1, 2],
    [1.1, 1, 1],
  ] as const) {
    const clipped = old + clip(v - old, -0.2, 0.2);
    const expected = 0.5 * Math.max((clipped - R) ** 2, (v - R) ** 2);
    const { losses } = evaluate({
      outputs: [v],
      tensors: { values: [old], returns: [R] },
      options: { value_clip: 0.2 },
    });
    expect(losses[0]).toBeCloseTo(expected, 9);
  }
  expect(text).toContain("value_clip");
});
