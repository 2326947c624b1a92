/** What is checked before and after: servers accept nonsense (mismatched lengths, NaN) and are poisoned by it. */
import type { Datum, PassResult } from "./data.ts";
import { imageFault, inputLength } from "./input.ts";

/** Throws RangeError for data that no server should see; that is a bug of the caller. */
export function checkData(data: readonly Datum[]): void {
  // An empty list never completes on SkyRL: section 9, quirk 15.
  if (data.length === 0) throw new RangeError("a pass needs at least one datum");
  data.forEach((datum, i) => {
    const { input, lossInputs } = datum;
    const fault = imageFault(datum);
    if (fault) throw new RangeError(`datum ${i}: ${fault}`);
    const length = inputLength(datum);
    if (length === 0) throw new RangeError(`datum ${i} has no input`);
    const targets = lossInputs.target_tokens;
    if (!targets) throw new RangeError(`datum ${i} has no target_tokens`);
    if (targets.length === 0 || targets.length % length !== 0)
      throw new RangeError(`datum ${i}: target_tokens has ${targets.length} entries for ${length} tokens`);
    if (hasNegative(input)) throw new RangeError(`datum ${i} has a negative token`);
    for (const [name, values] of Object.entries(lossInputs)) {
      if (values.length !== targets.length)
        throw new RangeError(`datum ${i}: ${name} has ${values.length} entries for ${targets.length} targets`);
      if (!allFinite(values)) throw new RangeError(`datum ${i}: ${name} is not finite`);
    }
  });
}

// Loops instead of `some` and `every`: they go over all of a step, where a call a number is felt.

function hasNegative(tokens: Int32Array): boolean {
  for (const token of tokens) if (token < 0) return true;
  return false;
}

/** Whether all are numbers as such. */
export function allFinite(values: Int32Array | Float32Array): boolean {
  if (values instanceof Int32Array) return true;
  // 0 times NaN or infinity is NaN and stays so in a sum: no question for each number.
  let zero = 0;
  for (let i = 0; i < values.length; i += 1) zero += (values[i] as number) * 0;
  return zero === 0;
}

/** What is wrong with a result's shape, or undefined. Values may be anything: judging them is the caller's. */
export function passFault(data: readonly Datum[], result: PassResult): string | undefined {
  if (result.outputs.length !== data.length) return `${result.outputs.length} outputs for ${data.length} datums`;
  const wrong = result.outputs.findIndex(
    (o, i) => o.logprobs && o.logprobs.length !== data[i]?.lossInputs.target_tokens?.length,
  );
  return wrong < 0 ? undefined : `output ${wrong} has not one log-probability for each target`;
}
