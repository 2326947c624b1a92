/**
 * Servers of one protocol differ, in ways that change what a request means. Each kind is described once, here; what the
 * client or a loop does about it follows from the description and from nothing else. `docs/compatibility.md` is the
 * same table in words, kept equal by a test.
 */
import type { AdamParams } from "./wire.ts";

export type ServerKind = "embedded" | "hosted" | "skyrl-jax" | "skyrl-fsdp" | "skyrl-megatron";

export interface ServerTraits {
  /**
   * What the gradient of a step is: the plain sum over positions and datums, or the mean over datums of means weighted
   * by `weights`, over all datums since the last step (protocol, section 5.3).
   */
  readonly reduction: "sum" | "mean of means";
  /** Whether losses with advantages multiply by `weights`; else these are folded into the advantages. */
  readonly readsRlWeights: boolean;
  /** Losses by their name on the wire. */
  readonly losses: readonly string[];
  /** Losses whose options the server refuses, with the values that it uses instead. */
  readonly fixedOptions: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Optimizer settings that the server takes and does not use. */
  readonly ignoredAdam: readonly (keyof AdamParams)[];
  /** Whether `target_tokens` other than the shifted input are scored as given. */
  readonly scoresAnyTargets: boolean;
  /** Whether an absent stop list ends at the model's end of sequence. */
  readonly stopsAtEndOfSequence: boolean;
  /**
   * What weights saved for sampling are: snapshots of their own, the model's own in training, which older ones
   * overwrite when they are sampled, or those that were saved last, whichever are asked for (`quirks/freshness.ts`).
   */
  readonly samplers: "snapshots" | "the model's own" | "saved last";
  /** Whether an unloaded model takes its accumulated gradients with it. If not, the next model inherits them. */
  readonly clearsGradients: boolean;
  /** Whether one call's fault fails others that ran with it, so that a failed call may succeed alone. */
  readonly failsBatches: boolean;
  /** Rank 0. */
  readonly trainsFully: boolean;
  /** Whether the client chooses the layers of an adapter. */
  readonly choosesLayers: boolean;
}

const SUM_LOSSES = ["cross_entropy", "importance_sampling", "ppo", "cispo", "gspo", "dppo"] as const;

const FSDP: ServerTraits = {
  reduction: "sum",
  readsRlWeights: true,
  losses: [...SUM_LOSSES, "ppo_critic"],
  fixedOptions: { cispo: { clip_low_threshold: 0, clip_high_threshold: 5 } },
  ignoredAdam: ["beta1", "beta2", "eps", "weight_decay", "grad_clip_norm"],
  scoresAnyTargets: false,
  stopsAtEndOfSequence: true,
  samplers: "saved last",
  clearsGradients: true,
  failsBatches: true,
  trainsFully: true,
  choosesLayers: false,
};

export const SERVER_TRAITS: Readonly<Record<ServerKind, ServerTraits>> = {
  embedded: {
    reduction: "sum",
    readsRlWeights: true,
    losses: [...SUM_LOSSES, "dro", "ppo_critic"],
    fixedOptions: {},
    ignoredAdam: [],
    scoresAnyTargets: true,
    stopsAtEndOfSequence: true,
    samplers: "snapshots",
    clearsGradients: true,
    failsBatches: false,
    trainsFully: true,
    choosesLayers: true,
  },
  hosted: {
    reduction: "sum",
    readsRlWeights: false,
    losses: ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro", "gspo"],
    fixedOptions: {},
    ignoredAdam: [],
    scoresAnyTargets: true,
    stopsAtEndOfSequence: true,
    samplers: "snapshots",
    clearsGradients: true,
    failsBatches: false,
    trainsFully: false,
    choosesLayers: true,
  },
  "skyrl-jax": {
    reduction: "mean of means",
    readsRlWeights: true,
    losses: ["cross_entropy", "importance_sampling", "ppo", "cispo"],
    fixedOptions: {},
    ignoredAdam: ["grad_clip_norm"],
    scoresAnyTargets: true,
    stopsAtEndOfSequence: false,
    samplers: "the model's own",
    clearsGradients: false,
    failsBatches: true,
    trainsFully: false,
    choosesLayers: false,
  },
  "skyrl-fsdp": FSDP,
  "skyrl-megatron": { ...FSDP, losses: SUM_LOSSES },
};

/** Settings among `params` that this server would take in silence and not use. */
export function ignoredSettings(kind: ServerKind, params: Partial<AdamParams>): readonly (keyof AdamParams)[] {
  // A clip of 0 is off, which is what a server without it does.
  return SERVER_TRAITS[kind].ignoredAdam.filter((name) => params[name] !== undefined && params[name] !== 0);
}
