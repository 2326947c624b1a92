/**
 * The check against the schema. The checked form has no alternatives (see schemas/generate/resolve.mjs), so that one fault
 * is one error of ajv; wording.ts says each in words.
 */
import { type Address, addressOf } from "../address.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { isSecret } from "../value.ts";
import { placeOf } from "./place.ts";
import { child, entriesOf, type MapTree, plainOf, textOf } from "./tree.ts";
import { validateSpecShape } from "./validate.gen.mjs";
import { wordError } from "./wording.ts";

/** Checks the whole spec. Of faulty addresses not everything is known, so their meaning is not judged. */
export function checkShape(root: MapTree, diagnostics: Diagnostic[]): { readonly faulty: ReadonlySet<Address> } {
  const unavailable = new Set(unavailableRuns(root, diagnostics));
  const faulty = new Set(unavailable);
  if (validateSpecShape(plainOf(root, secretStandIn))) return { faulty };
  for (const error of validateSpecShape.errors ?? []) {
    // The wrapper of a name's own error.
    if (error.keyword === "propertyNames") continue;
    const place = placeOf(root, error.instancePath);
    if (place.address !== undefined) {
      if (unavailable.has(place.address)) continue;
      // A misspelt key leaves its field unset, which rules would report as a fault of its own.
      if (error.keyword === "additionalProperties") faulty.add(place.address);
    }
    if (place.value.type === "scalar" && place.value.isFaulty) continue;
    diagnostics.push(wordError(root, error, place));
  }
  return { faulty };
}

/** Stands in the checked value where a secret will be. */
function secretStandIn(value: unknown): unknown {
  return isSecret(value) ? "secret" : value;
}

/** Runs of a type that a later version does. What else such a block holds is not judged. */
function unavailableRuns(root: MapTree, diagnostics: Diagnostic[]): Address[] {
  const found: Address[] = [];
  for (const [name, { value }] of entriesOf(child(root, "runs"))) {
    const type = child(value, "type");
    if (type === undefined || textOf(type) !== "rl") continue;
    const address = addressOf("run", name);
    found.push(address);
    const detail =
      "This version trains supervised runs only (`type: sl`); reinforcement learning comes in a later one.";
    diagnostics.push(type.source.diagnostic("RL1110", detail, type.span, { address }));
  }
  return found;
}
