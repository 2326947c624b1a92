/** Collects the tokens and loss weights of one training example. */
import type { TokenDatum } from "./conversation.ts";

export class DatumBuilder {
  readonly #tokens: number[] = [];
  readonly #weights: number[] = [];

  /** Begins with untrained tokens. */
  static from(context: readonly number[]): DatumBuilder {
    const builder = new DatumBuilder();
    builder.push(context, 0);
    return builder;
  }

  get length(): number {
    return this.#tokens.length;
  }

  push(tokens: readonly number[], weight: number): void {
    for (const token of tokens) {
      this.#tokens.push(token);
      this.#weights.push(weight);
    }
  }

  /** Appends what `context` has beyond the tokens so far, untrained; false, and nothing done, if it does not extend them. */
  extendTo(context: readonly number[]): boolean {
    if (context.length < this.length) return false;
    for (let i = 0; i < this.length; i += 1) if (context[i] !== this.#tokens[i]) return false;
    this.push(context.slice(this.length), 0);
    return true;
  }

  /** Sets the weight of tokens [start, end). */
  reweigh(start: number, end: number, weight: number): void {
    for (let i = start; i < end; i += 1) this.#weights[i] = weight;
  }

  /** The datum, cut to `limit` tokens. Nothing predicts the first token, so it never carries weight. */
  finish(limit: number): TokenDatum {
    const length = Math.min(limit, this.length);
    const weights = Float32Array.from(this.#weights.slice(0, length));
    if (length > 0) weights[0] = 0;
    return { tokens: Int32Array.from(this.#tokens.slice(0, length)), weights };
  }
}
