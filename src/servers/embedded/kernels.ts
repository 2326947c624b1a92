/** What all models of a server share: jax-js, the functions compiled so far, and the arrays that depend on shapes only. */
import { type Architecture, rotaryTables } from "./architecture.ts";
import { arrayOf, type Jax } from "./jax.ts";
import { compileOptimizer, compilePass, type OptimizerFunctions, type PassFunctions, type PassOutput } from "./step.ts";
import type { PositionArrays } from "./transformer.ts";

/** Added to the score of a position that may not be seen: exp of it is 0 in float32, and it never makes a NaN. */
const HIDDEN = -1e9;

export class Kernels {
  readonly jax: Jax;
  readonly optimizer: OptimizerFunctions;
  readonly #passes = new Map<string, PassFunctions>();
  readonly #positions = new Map<string, PositionArrays>();

  /** Awaited between the batches of a pass. */
  readonly pause: () => Promise<void>;

  constructor(jax: Jax, pause: () => Promise<void> = async () => {}) {
    this.jax = jax;
    this.pause = pause;
    this.optimizer = compileOptimizer(jax);
  }

  pass(architecture: Architecture, output: PassOutput, adapterScale: number | undefined): PassFunctions {
    const key = JSON.stringify([architecture, output, adapterScale ?? null]);
    let functions = this.#passes.get(key);
    if (functions === undefined) {
      functions = compilePass(this.jax, { architecture, output, adapterScale });
      this.#passes.set(key, functions);
    }
    return functions;
  }

  /** References for one call; the originals stay for the next. */
  positions(architecture: Architecture, length: number): PositionArrays {
    const key = JSON.stringify([architecture, length]);
    let arrays = this.#positions.get(key);
    if (arrays === undefined) {
      arrays = makePositions(this.jax, architecture, length);
      this.#positions.set(key, arrays);
    }
    return this.jax.tree.ref(arrays);
  }
}

function makePositions(jax: Jax, architecture: Architecture, length: number): PositionArrays {
  const { cosines, sines } = rotaryTables(architecture, length);
  const mask = new Float32Array(length * length);
  for (let row = 0; row < length; row++) mask.fill(HIDDEN, row * length + row + 1, (row + 1) * length);
  const half = architecture.headDim / 2;
  return {
    cosines: arrayOf(jax, cosines, [length, half]),
    sines: arrayOf(jax, sines, [length, half]),
    mask: arrayOf(jax, mask, [length, length]),
  };
}
