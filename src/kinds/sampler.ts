/** A sampler of kept weights, on whichever server keeps them. */
import type { TrainingModel } from "../tinker/model.ts";
import { serverFamily } from "../tinker/quirks/probe.ts";
import type { Sampler } from "../tinker/sampler.ts";
import type { Session } from "../tinker/session.ts";

/** Where the weights of one checkpoint are; at least one of the two. */
export interface Weights {
  readonly training?: string | undefined;
  readonly sampler?: string | undefined;
}

/**
 * Training weights are loaded into a model of their own, which goes into `scope` to be unloaded. SkyRL samples saved weights
 * only while the model that saved them lives, and a run's model does not outlive it: there they are not even tried first.
 */
export async function samplerOf(
  session: Session,
  { sampler, training }: Weights,
  scope: TrainingModel[],
): Promise<Sampler> {
  const isSkyrl = (await serverFamily(session.client)) === "skyrl";
  if (sampler !== undefined && (training === undefined || !isSkyrl)) {
    return session.createSampler({ modelPath: sampler });
  }
  const model = await session.createModelFrom(training as string, { optimizer: false });
  scope.push(model);
  return (await model.sampler()).result();
}

const UNLOAD_TIMEOUT_MS = 10_000;
/** Only a courtesy: a session that nobody hears of any more ends by itself. */
const FINISH_TIMEOUT_MS = 2_000;

/** Says that nothing more is wanted of a session: a server that hears it computes none of the samples that are still open. */
export async function finishSession(session: Session): Promise<void> {
  await session.finish({ signal: AbortSignal.timeout(FINISH_TIMEOUT_MS) }).catch(() => {});
}

/** Frees models that were made for sampling; what cannot be freed ends with its session. */
export async function unloadAll(scope: readonly TrainingModel[]): Promise<void> {
  for (const model of scope) await model.unload({ signal: AbortSignal.timeout(UNLOAD_TIMEOUT_MS) }).catch(() => {});
}
