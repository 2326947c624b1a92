/** All losses by name. */
import { crossEntropy } from "./cross-entropy.ts";
import type { LossDefinition } from "./loss.ts";

export const LOSSES: readonly LossDefinition[] = [crossEntropy];

export function lossNamed(name: string): LossDefinition | undefined {
  return LOSSES.find((loss) => loss.name === name);
}
