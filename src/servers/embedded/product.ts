/**
 * The matrix product of the sampling decoder, as a WebAssembly function written by hand (see `assemble`): four float32
 * lanes at a time, which plain JavaScript cannot do.
 *
 * Every value of the result is Σ x[i]·w[i] added in the order of i, each product and sum rounded to float32. How many
 * rows go through at a time and how outputs are tiled never changes that order, so a row's result is the same bits
 * whatever else is computed with it, on every machine: plain WebAssembly SIMD has no freedom in rounding.
 */
import { assembleProduct } from "./assemble.ts";

/** Outputs of one tile: four vectors of four lanes. Widths are padded to a multiple of it. */
const TILE = 16;
const PAGE_BYTES = 65_536;

interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}
type Multiply = (x: number, w: number, y: number, rows: number, inputs: number, outputs: number) => void;
interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: { readonly multiply: Multiply } };
  readonly Memory: new (descriptor: { initial: number }) => WasmMemory;
}
/** Node's types know WebAssembly only together with the browser's. */
const wasm = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly;

let compiled: object | undefined;

/** A weight `[outputs, inputs]` in the memory of its `Products`. */
export interface StoredWeight {
  readonly at: number;
  readonly inputs: number;
  readonly outputs: number;
}

/** Products with a fixed set of weights, which it holds in a memory of its own. */
export class Products {
  readonly #memory: WasmMemory;
  readonly #multiply: Multiply;
  /** End of the weights, where arguments and results of a call are put. */
  #end = 0;

  constructor() {
    compiled ??= new wasm.Module(assembleProduct());
    this.#memory = new wasm.Memory({ initial: 1 });
    this.#multiply = new wasm.Instance(compiled, { env: { memory: this.#memory } }).exports.multiply;
  }

  /** Copies a row-major weight in, transposed to `[inputs, padded outputs]`. All weights come before the first product. */
  store(data: Float32Array, inputs: number): StoredWeight {
    const outputs = data.length / inputs;
    const width = padded(outputs);
    const weight = { at: this.#end, inputs, outputs };
    this.#end += inputs * width * 4;
    this.#reserve(this.#end);
    const stored = new Float32Array(this.#memory.buffer, weight.at, inputs * width);
    for (let output = 0; output < outputs; output++)
      for (let input = 0; input < inputs; input++)
        stored[input * width + output] = data[output * inputs + input] as number;
    return weight;
  }

  /** x wᵀ for x `[rows, inputs]`: `[rows, outputs]`. */
  multiply(x: Float32Array, weight: StoredWeight): Float32Array {
    const { at, inputs, outputs } = weight;
    const rows = x.length / inputs;
    const width = padded(outputs);
    const resultAt = this.#end + Math.ceil(x.length / 4) * 16;
    this.#reserve(resultAt + rows * width * 4);
    new Float32Array(this.#memory.buffer, this.#end, x.length).set(x);
    this.#multiply(this.#end, at, resultAt, rows, inputs, width);
    const result = new Float32Array(this.#memory.buffer, resultAt, rows * width);
    if (width === outputs) return result.slice();
    const cut = new Float32Array(rows * outputs);
    for (let row = 0; row < rows; row++) cut.set(result.subarray(row * width, row * width + outputs), row * outputs);
    return cut;
  }

  #reserve(bytes: number): void {
    const missing = bytes - this.#memory.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / PAGE_BYTES));
  }
}

function padded(outputs: number): number {
  return Math.ceil(outputs / TILE) * TILE;
}
