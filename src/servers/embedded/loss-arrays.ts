/**
 * The arithmetic of loss formulas over a padded batch, while a pass is traced: values are `[batch, positions]`, or
 * `[batch, 1]`, or scalars, in float32. jax-js counts references; here every operation takes new ones of its operands, and
 * `release` gives back what was made.
 */
import { type Arithmetic, weigh } from "../../losses/formula.ts";
import type { LossDefinition } from "../../losses/loss.ts";
import type { ArrayTree, Jax, JaxArray } from "./jax.ts";

/**
 * The weighted derivatives `[batch, positions]` of a loss by `outputs`. Consumes nothing. Positions of padding have weight 0
 * and so derivative 0. `options` are scalars.
 */
export function derivativesOf(
  jax: Jax,
  { formula }: LossDefinition,
  outputs: JaxArray,
  tensors: ArrayTree,
  options: ArrayTree,
): JaxArray {
  const { arithmetic, release } = arithmeticOf(jax);
  const { derivative } = formula(arithmetic, {
    output: outputs,
    tensor: (name) => tensors[name] as JaxArray,
    option: (name) => options[name] as JaxArray,
  });
  return release(weigh(arithmetic, tensors.weights as JaxArray, derivative));
}

function arithmeticOf({ numpy }: Jax) {
  const made: JaxArray[] = [];
  const keep = (array: JaxArray) => {
    made.push(array);
    return array;
  };
  const own = (value: JaxArray | number) => (typeof value === "number" ? value : value.ref);
  /** jax-js does not put a number first in all of its operations. */
  const binary =
    (operation: (a: JaxArray | number, b: JaxArray | number) => JaxArray) =>
    (a: JaxArray | number, b: JaxArray | number) =>
      keep(operation(own(a), own(b)));
  const arithmetic: Arithmetic<JaxArray> = {
    add: binary(numpy.add),
    sub: binary(numpy.subtract),
    mul: binary(numpy.multiply),
    div: binary(numpy.trueDivide),
    min: binary(numpy.minimum),
    max: binary(numpy.maximum),
    exp: (a) => keep(numpy.exp(a.ref)),
    less: binary(numpy.less),
    equal: binary(numpy.equal),
    select: (condition, yes, no) => keep(numpy.where(condition.ref, own(yes), own(no))),
    sum: (a) => keep(numpy.sum(a.ref, -1, { keepdims: true })),
  };
  /** Gives up all but the result. */
  const release = (result: JaxArray) => {
    const kept = result.ref;
    for (const array of made) array.dispose();
    return kept;
  };
  return { arithmetic, release };
}
