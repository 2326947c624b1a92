/**
 * The model behind the fake server: a bigram softmax over hashed tokens, trained by Adam in double precision. Small, but
 * its losses, gradients and checkpoints are real, so that lost, doubled or reordered steps change its weights.
 */
const SIZE = 16;
const slot = (token: number) => (Math.imul(token + 1, 2654435761) >>> 0) % SIZE;

export interface ToyDatum {
  readonly tokens: readonly number[];
  readonly targets: readonly number[];
  readonly weights: readonly number[];
  readonly logprobs?: readonly number[] | undefined;
  readonly advantages?: readonly number[] | undefined;
}

/** How a server reduces: protocol sections 5.3 and 5.4. */
export type Reduction = "sum" | "mean of means";

export interface ToyAdam {
  readonly learning_rate: number;
  readonly beta1?: number;
  readonly beta2?: number;
  readonly eps?: number;
}

export class ToyModel {
  weights = new Float64Array(SIZE * SIZE);
  #m = new Float64Array(SIZE * SIZE);
  #v = new Float64Array(SIZE * SIZE);
  #gradient = new Float64Array(SIZE * SIZE);
  #datums = 0;
  steps = 0;

  /** Log-probabilities by datum; with `learn`, adds the gradient of the loss. */
  pass(data: readonly ToyDatum[], learn: boolean, loss = "cross_entropy", reduction: Reduction = "sum"): number[][] {
    return data.map((datum) => {
      const { tokens, targets, weights } = datum;
      const share =
        reduction === "sum"
          ? 1
          : 1 /
            Math.max(
              weights.reduce((a, b) => a + b, 0),
              1e-9,
            );
      if (learn && reduction === "mean of means") this.#datums += 1;
      return tokens.map((token, i) => {
        const row = slot(token) * SIZE;
        const target = slot(targets[i]!);
        const exps = Array.from(this.weights.subarray(row, row + SIZE), Math.exp);
        const sum = exps.reduce((a, b) => a + b, 0);
        const logprob = Math.log(exps[target]! / sum);
        if (learn) {
          const pull = weights[i]! * share * pullOf(loss, datum, i, logprob);
          for (let j = 0; j < SIZE; j += 1) {
            this.#gradient[row + j]! += pull * (exps[j]! / sum - (j === target ? 1 : 0));
          }
        }
        return Math.fround(logprob);
      });
    });
  }

  /** One Adam step; returns the gradient's L2 norm and clears it. */
  step({ learning_rate, beta1 = 0.9, beta2 = 0.95, eps = 1e-8 }: ToyAdam): number {
    this.steps += 1;
    let square = 0;
    this.weights.forEach((_, i) => {
      const g = this.#gradient[i]! / Math.max(this.#datums, 1);
      square += g * g;
      this.#m[i] = beta1 * this.#m[i]! + (1 - beta1) * g;
      this.#v[i] = beta2 * this.#v[i]! + (1 - beta2) * g * g;
      const m = this.#m[i]! / (1 - beta1 ** this.steps);
      const v = this.#v[i]! / (1 - beta2 ** this.steps);
      this.weights[i]! -= (learning_rate * m) / (Math.sqrt(v) + eps);
    });
    this.#gradient.fill(0);
    this.#datums = 0;
    return Math.sqrt(square);
  }

  /** A copy; without `optimizer`, moments and step count begin anew. */
  copy(optimizer: boolean): ToyModel {
    const copy = new ToyModel();
    copy.weights = this.weights.slice();
    if (!optimizer) return copy;
    copy.#m = this.#m.slice();
    copy.#v = this.#v.slice();
    copy.steps = this.steps;
    return copy;
  }

  bytes(): string {
    return Buffer.from(this.weights.buffer.slice(0)).toString("hex");
  }
}

/** How much a loss pulls log p up at a position: −∂loss/∂ℓ without its weight. */
function pullOf(loss: string, { logprobs, advantages }: ToyDatum, i: number, logprob: number): number {
  if (loss === "cross_entropy") return 1;
  const ratio = Math.exp(logprob - (logprobs?.[i] ?? 0));
  return ratio * (advantages?.[i] ?? 0);
}
