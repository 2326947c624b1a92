/** All losses by name. */
import { cispo } from "./cispo.ts";
import { crossEntropy } from "./cross-entropy.ts";
import { dppo } from "./dppo.ts";
import { dro } from "./dro.ts";
import { gspo } from "./gspo.ts";
import { importanceSampling } from "./importance-sampling.ts";
import type { LossDefinition } from "./loss.ts";
import { ppo } from "./ppo.ts";
import { ppoCritic } from "./ppo-critic.ts";

export const LOSSES: readonly LossDefinition[] = [
  crossEntropy,
  importanceSampling,
  ppo,
  cispo,
  dro,
  gspo,
  dppo,
  ppoCritic,
];

export function lossNamed(name: string): LossDefinition | undefined {
  return LOSSES.find((loss) => loss.name === name);
}
