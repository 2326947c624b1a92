// How much of a training step is matrix products: their work, and the rate of one large plain product to hold it against.
import { median } from "./receipt.mjs";

/** GFLOP/s of one 512x512x512 product on jax-js's wasm, one core: the median of many. Processor time. */
export async function plainRate({ numpy, jit }) {
  const size = 512;
  const matrix = () => numpy.array(new Float32Array(size * size).fill(0.5)).reshape([size, size]);
  const [a, b] = [matrix(), matrix()];
  const multiply = jit((x, y) => numpy.matmul(x, y));
  const times = [];
  // Ten at a time: processor time is counted in steps too coarse for one.
  for (let i = 0; i < 12; i++) {
    const before = process.cpuUsage();
    for (let j = 0; j < 10; j++) await multiply(a.ref, b.ref).data();
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1e6);
  }
  return (10 * 2 * size ** 3) / median(times.slice(2)) / 1e9;
}

/**
 * Matrix-product work of one trained token. Forward once; backward as much again for what flows through, and once more for
 * the gradients of trained weights: of all of them, or of an adapter's of this rank (attention and MLP). Lookups and
 * everything else not counted.
 */
export function flopsPerToken(architecture, { projectionShape, projections }, length, rank) {
  const isFull = rank === undefined;
  const layer = projections.reduce((sum, name) => {
    const [outputs, inputs] = projectionShape(architecture, name);
    return sum + 2 * (isFull ? 3 * inputs * outputs : 2 * inputs * outputs + 3 * rank * (inputs + outputs));
  }, 0);
  const attention = 3 * 4 * length * architecture.heads * architecture.headDim;
  const unembedding = (isFull ? 3 : 2) * 2 * architecture.vocabSize * architecture.hiddenSize;
  return architecture.layers * (layer + attention) + unembedding;
}
