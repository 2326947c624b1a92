/**
 * The check against the schema. The checked form has no alternatives (see schemas/generate/resolve.mjs), so that one fault
 * is one error of ajv; wording.ts says each in words.
 */
import type { Address } from "../address.ts";
import type { Diagnostic } from "../diagnostic.ts";
import { isSecret } from "../value.ts";
import { placeOf } from "./place.ts";
import { type MapTree, plainOf } from "./tree.ts";
import { validateSpecShape } from "./validate.gen.mjs";
import { wordError } from "./wording.ts";

/** Checks the whole spec. Of faulty addresses not everything is known, so their meaning is not judged. */
export function checkShape(root: MapTree, diagnostics: Diagnostic[]): { readonly faulty: ReadonlySet<Address> } {
  const faulty = new Set<Address>();
  if (validateSpecShape(plainOf(root, secretStandIn))) return { faulty };
  for (const error of validateSpecShape.errors ?? []) {
    // The wrapper of a name's own error.
    if (error.keyword === "propertyNames") continue;
    const place = placeOf(root, error.instancePath);
    if (place.address !== undefined) {
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
