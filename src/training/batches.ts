/**
 * Which rows make which step. Rows are shuffled anew for each epoch; a batch takes rows until it has `batch_size` of
 * them or the next would pass `batch_tokens`; an epoch's last batch may be smaller, so that epochs never mix. Step k is
 * a function of the settings and the row lengths alone, whatever happened before.
 */
import type { RunLength, SupervisedSettings } from "../run-record.ts";
import { permutation } from "./random.ts";

export interface BatchPlace {
  /** Row numbers. */
  readonly rows: readonly number[];
  /** Epochs completed after this step. */
  readonly epoch: number;
}

export type BatchSettings = Pick<SupervisedSettings, "batch_size" | "batch_tokens" | "seed">;

export class Batches {
  readonly #rows: readonly number[];
  readonly #tokensOf: (row: number) => number;
  readonly #settings: BatchSettings;
  /** Steps before each epoch; grows as epochs are looked at. */
  readonly #starts = [0];
  #current: { epoch: number; batches: readonly (readonly number[])[] } | undefined;

  constructor(rows: readonly number[], tokensOf: (row: number) => number, settings: BatchSettings) {
    this.#rows = rows;
    this.#tokensOf = tokensOf;
    this.#settings = settings;
  }

  /** The rows of step 1, 2, … */
  at(step: number): BatchPlace {
    let epoch = this.#starts.findLastIndex((start) => start < step);
    while (step > this.#stepsBefore(epoch + 1)) epoch += 1;
    const batches = this.#batchesOf(epoch);
    const index = step - 1 - this.#stepsBefore(epoch);
    return { rows: batches[index] as readonly number[], epoch: epoch + (index + 1) / batches.length };
  }

  /** A length in steps. A part of an epoch counts its batches, rounded up. */
  steps(length: RunLength): number {
    if ("steps" in length) return length.steps;
    const whole = Math.floor(length.epochs);
    const before = this.#stepsBefore(whole);
    const part = length.epochs - whole;
    return part === 0 ? before : before + Math.ceil(part * this.#batchesOf(whole).length);
  }

  #stepsBefore(epoch: number): number {
    for (let e = this.#starts.length; e <= epoch; e += 1) {
      this.#starts.push((this.#starts[e - 1] as number) + this.#countOf(e - 1));
    }
    return this.#starts[epoch] as number;
  }

  #countOf(epoch: number): number {
    const { batch_size, batch_tokens } = this.#settings;
    return batch_tokens === undefined ? Math.ceil(this.#rows.length / batch_size) : this.#batchesOf(epoch).length;
  }

  #batchesOf(epoch: number): readonly (readonly number[])[] {
    if (this.#current?.epoch !== epoch) this.#current = { epoch, batches: this.#divide(epoch) };
    return this.#current.batches;
  }

  #divide(epoch: number): number[][] {
    const { batch_size, batch_tokens = Number.POSITIVE_INFINITY, seed } = this.#settings;
    const batches: number[][] = [];
    let open: number[] = [];
    let tokens = 0;
    for (const place of permutation(this.#rows.length, seed, epoch)) {
      const row = this.#rows[place] as number;
      const more = this.#tokensOf(row);
      if (open.length === batch_size || (open.length > 0 && tokens + more > batch_tokens)) {
        batches.push(open);
        open = [];
        tokens = 0;
      }
      open.push(row);
      tokens += more;
    }
    if (open.length > 0) batches.push(open);
    return batches;
  }
}
