/**
 * Gradients that somebody else left behind. On a server that keeps them when a model is unloaded (SkyRL's jax), the next
 * model in its slot, maybe another client's, would add them to its first step. An optimizer step takes them out, but
 * leaves the optimizer's moments and step count behind; so a model of no further use is made to take that step, and the
 * real one is created in the slot that becomes free again, which is the lowest and so the first to be given out.
 */
import type { ResultOptions } from "../future.ts";
import type { TrainingModel } from "../model.ts";
import { SERVER_TRAITS, type ServerKind } from "../quirks.ts";
import type { ModelOptions, Session } from "../session.ts";

export interface CleanModel {
  readonly model: TrainingModel;
  /** L2 norm of what was found and cleared: 0 where the slot was clean; undefined where the server clears by itself. */
  readonly staleGradNorm: number | undefined;
}

/** Creates a model without gradients of others, whatever the kind of server. Costs three more calls where it must look. */
export async function createCleanModel(
  session: Session,
  kind: ServerKind,
  options: ModelOptions,
  call: ResultOptions = {},
): Promise<CleanModel> {
  if (SERVER_TRAITS[kind].clearsGradients)
    return { model: await session.createModel(options, call), staleGradNorm: undefined };
  // Its number within the session is its own: the real model keeps the one it was given.
  const { modelSeqId: _, ...throwaway } = options;
  const probe = await session.createModel(throwaway, call);
  const metrics = await (await probe.optimStep({ learning_rate: 0 }, call)).result(call);
  await probe.unload(call);
  const norm = metrics["skyrl.ai/grad_norm"] ?? metrics.grad_norm;
  return { model: await session.createModel(options, call), staleGradNorm: norm };
}
