/** What is checked before and after: servers accept nonsense (mismatched lengths, NaN) and are poisoned by it. */
import type { Datum, PassResult } from "./data.ts";

/** Throws RangeError for data that no server should see; that is a bug of the caller. */
export function checkData(data: readonly Datum[]): void {
  // An empty list never completes on SkyRL: section 9, quirk 15.
  if (data.length === 0) throw new RangeError("a pass needs at least one datum");
  data.forEach(({ input, lossInputs }, i) => {
    if (input.length === 0) throw new RangeError(`datum ${i} has no input`);
    if (!lossInputs.target_tokens) throw new RangeError(`datum ${i} has no target_tokens`);
    if (input.some((token) => token < 0)) throw new RangeError(`datum ${i} has a negative token`);
    for (const [name, values] of Object.entries(lossInputs)) {
      if (values.length !== input.length) {
        throw new RangeError(`datum ${i}: ${name} has ${values.length} entries for ${input.length} tokens`);
      }
      if (!values.every(Number.isFinite)) throw new RangeError(`datum ${i}: ${name} is not finite`);
    }
  });
}

/** What is wrong with a result's shape, or undefined. Values may be anything: judging them is the caller's. */
export function passFault(data: readonly Datum[], result: PassResult): string | undefined {
  if (result.outputs.length !== data.length) return `${result.outputs.length} outputs for ${data.length} datums`;
  const wrong = result.outputs.findIndex((o, i) => o.logprobs && o.logprobs.length !== data[i]?.input.length);
  return wrong < 0 ? undefined : `output ${wrong} has not one log-probability for each token`;
}
