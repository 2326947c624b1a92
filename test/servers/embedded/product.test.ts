import { expect, test } from "vitest";
import { Products } from "../../../src/servers/embedded/product.ts";
import { normals } from "../../../src/servers/embedded/random.ts";

/** The definition: products and sums rounded to float32, in the order of the inputs. */
function naive(x: Float32Array, w: Float32Array, inputs: number): Float32Array {
  const [rows, outputs] = [x.length / inputs, w.length / inputs];
  return Float32Array.from({ length: rows * outputs }, (_, at) => {
    const [row, output] = [Math.floor(at / outputs), at % outputs];
    let sum = 0;
    for (let i = 0; i < inputs; i++)
      sum = Math.fround(sum + Math.fround(x[row * inputs + i]! * w[output * inputs + i]!));
    return sum;
  });
}

test.each([
  { rows: 1, inputs: 1, outputs: 1 },
  { rows: 3, inputs: 7, outputs: 5 },
  { rows: 4, inputs: 64, outputs: 16 },
  { rows: 6, inputs: 33, outputs: 50 },
  { rows: 64, inputs: 256, outputs: 272 },
])("$rows rows, $inputs inputs, $outputs outputs: every bit is that of the plain sum", ({ rows, inputs, outputs }) => {
  const products = new Products();
  const [first, second] = [1, 2].map((seed) => normals(seed, 0, inputs * outputs));
  const weights = [first!, second!].map((w) => products.store(w, inputs));
  const x = normals(3, 1, rows * inputs);
  expect(products.multiply(x, weights[0]!)).toEqual(naive(x, first!, inputs));
  expect(products.multiply(x, weights[1]!)).toEqual(naive(x, second!, inputs));
});

test("no rows give nothing", () => {
  const products = new Products();
  const weight = products.store(normals(1, 0, 32), 2);
  expect(products.multiply(new Float32Array(0), weight)).toEqual(new Float32Array(0));
});
