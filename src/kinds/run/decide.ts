/**
 * What is to be done with a run, from its generation, what is kept of it and how far it is to go. Pure: everything that
 * is really there was observed before.
 */
import type { AttributeChange, Estimate } from "../../change.ts";
import type { DecideContext, Decision } from "../../kind.ts";
import type { RunLength } from "../../run-record.ts";
import { canonicalJson } from "../../value.ts";
import { numberAt } from "../attributes.ts";
import { resultsOf, serverPart } from "./identity.ts";
import type { Kept, RunSeen } from "./observe.ts";
import { lengthOf } from "./settings.ts";

/** What `act` needs to know beyond the action. */
export interface RunDetail {
  /** The step whose checkpoint a restore points at, or from which training goes on. */
  readonly step?: number;
}

export function decideRun(context: DecideContext<unknown, RunSeen>): Decision {
  const { record, identity, forced, changes, observation } = context;
  const kept = observation.seen.kept.filter((candidate) => candidate.generation === identity.hash);
  const isCurrent = record?.hash === identity.hash;
  const last = Math.max(0, ...kept.map((k) => k.incarnation), isCurrent ? (record?.incarnation ?? 0) : 0);
  const fresh = (reasons: readonly string[]): Decision => ({
    action: record ? "replace" : "create",
    incarnation: last + 1,
    reasons,
    ...estimateOf(context, undefined),
  });
  if (forced) return fresh([`replaced because ${forced}`]);
  const wanted = isCurrent ? record.incarnation : last;
  const candidate = kept.find((k) => k.incarnation === wanted);
  if (!candidate && record && observation.status === "absent" && isCurrent)
    return fresh(["replaced because its run record is gone from .rlcli/runs"]);
  if (!candidate) return fresh([record ? replaceReason(changes) : "it does not exist yet"]);
  if (observation.busy && observation.seen.busy === candidate.folder) {
    const { action, node: server } = serverPart(context);
    const isMoving = action === "restart" || action === "replace";
    if (!isMoving) return { action: "none", incarnation: wanted, reasons: [] };
    const reason = `resumed because it pauses while ${server.address} is ${action === "restart" ? "restarted" : "replaced"}`;
    return { action: "resume", incarnation: wanted, reasons: [reason] };
  }
  return moved(context, candidate, continueRun(context, candidate, isCurrent, fresh));
}

/** Says where checkpoints are taken along to another server; what cannot be is an error of the check. */
function moved(context: DecideContext<unknown, RunSeen>, kept: Kept, decision: Decision): Decision {
  const server = serverPart(context).node;
  const isKept = decision.action !== "none" && decision.incarnation === kept.incarnation && kept.durable.length > 0;
  if (!isKept || kept.server === undefined || kept.server === server.address) return decision;
  const note = `its checkpoints move from ${kept.server} to ${server.address}`;
  return { ...decision, reasons: [...decision.reasons, note] };
}

/** A run of this generation is there: see how far it is from where it should be. */
function continueRun(
  context: DecideContext<unknown, RunSeen>,
  kept: Kept,
  isCurrent: boolean,
  fresh: (reasons: readonly string[]) => Decision,
): Decision {
  const { record, node, changes } = context;
  const { incarnation } = kept;
  const target = lengthOf(node);
  const goal = stepOf(target, kept);
  const durable = kept.durable.map((checkpoint) => checkpoint.step);
  const end = kept.durable.find((checkpoint) => checkpoint.step === goal);
  const reached = kept.end?.status === "complete" ? kept.end.step : undefined;

  if (end?.final && end.sampler === undefined)
    return {
      action: "resume",
      incarnation,
      reasons: [
        kept.samplersGone.some(({ step }) => step === end.step)
          ? `resumed because its weights for sampling at step ${end.step} are gone`
          : `resumed because step ${end.step} was accepted as its last and has no weights for sampling yet`,
      ],
      detail: { step: end.step },
    };
  if (end) {
    const recorded = resultsOf(record)?.step;
    if (!isCurrent || recorded !== end.step) {
      const what = isCurrent
        ? `the checkpoint at step ${end.step} is kept`
        : `this generation was trained before and step ${end.step} of it is kept`;
      return { action: "restore", incarnation, reasons: [`restored because ${what}`], detail: { step: end.step } };
    }
    if (record?.status !== "ready")
      return {
        action: "restore",
        incarnation,
        reasons: [`restored because it is at step ${end.step}, which its record did not say yet`],
        detail: { step: end.step },
      };
    const renamed = changes.find((change) => change.rule === "update");
    if (renamed)
      return {
        action: "update",
        incarnation,
        reasons: [`updated because ${renamed.path} changed`],
        detail: { step: end.step },
      };
    return { action: "none", incarnation, reasons: [] };
  }
  const below = Math.max(0, ...durable.filter((step) => goal === undefined || step < goal));
  const rest = estimateOf(context, kept, goal === undefined ? undefined : goal - below);
  if (reached === undefined) {
    if (goal !== undefined && durable.length > 0 && below === 0)
      return fresh([`replaced because no checkpoint at or before step ${goal} is kept`]);
    const at = kept.step > 0 ? ` at step ${kept.step}` : " before its first step";
    const how =
      kept.end?.status === "failed" ? `failed${at}` : kept.end ? `was interrupted${at}` : `stopped${at} without an end`;
    return { action: "resume", incarnation, reasons: [`resumed because it ${how}`], detail: { step: below }, ...rest };
  }
  if (goal === undefined || goal > reached) {
    const words = describe(target);
    if (durable.length === 0) return fresh([`replaced because none of its checkpoints is left to go on from`]);
    return {
      action: "extend",
      incarnation,
      reasons: [`extended because it ended at step ${reached} and is to go to ${words}`],
      detail: { step: below },
      ...rest,
    };
  }
  if (goal === reached) {
    // It was there and is gone: mend from what is left, or begin again.
    if (below === 0) return fresh(["replaced because none of its checkpoints is left"]);
    return {
      action: "resume",
      incarnation,
      reasons: [`resumed because its checkpoint at step ${goal} is gone; step ${below} is the last one left`],
      detail: { step: below },
      ...rest,
    };
  }
  return fresh([`replaced because it is to end at step ${goal} and no checkpoint of that step is kept`]);
}

/** The step at which a length ends, where that can be told: the one that was its end, else for epochs what the run found out. */
function stepOf(length: RunLength, kept: Kept): number | undefined {
  const final = kept.durable.find((checkpoint) => isSameLength(checkpoint.final, length));
  if (final) return final.step;
  if ("steps" in length) return length.steps;
  if (kept.end?.status === "complete" && kept.length && "epochs" in kept.length && kept.length.epochs === length.epochs)
    return kept.end.step;
  const stepsPerEpoch = kept.rate?.stepsPerEpoch;
  return stepsPerEpoch === undefined ? undefined : length.epochs * stepsPerEpoch;
}

function isSameLength(a: RunLength | undefined, b: RunLength): boolean {
  return a !== undefined && canonicalJson(a) === canonicalJson(b);
}

function describe(length: RunLength): string {
  return "steps" in length
    ? `${length.steps} step${length.steps === 1 ? "" : "s"}`
    : `${length.epochs} epoch${length.epochs === 1 ? "" : "s"}`;
}

/** The field that names what an attribute was taken from: where the field itself was edited, that is the reason. */
const REFERENCE_OF = [
  ["from.checkpoint", "from"],
  ["dataset.content", "dataset"],
  ["base_model", "server"],
  ["loss.", "loss"],
  ["environment.", "environment"],
  ["kl_reference.checkpoint", "kl_reference"],
] as const;

function replaceReason(changes: readonly AttributeChange[]): string {
  const cause = changes.find((change) => change.rule === "replace");
  if (!cause) return "replaced because what it is made of changed";
  const reference = REFERENCE_OF.find(([path]) => cause.path.startsWith(path))?.[1];
  if (changes.some(({ path }) => path === reference)) return `replaced because ${reference} changed`;
  if (cause.because) return `replaced because ${cause.because} changed`;
  if (cause.path === "schedule.horizon")
    return "replaced because its schedule runs over its whole length, which changed";
  return `replaced because ${cause.path} changed`;
}

/** From the measured rate of this run's own latest generation; nothing where none was measured. */
function estimateOf(
  context: DecideContext<unknown, RunSeen>,
  kept: Kept | undefined,
  steps?: number,
): { estimate?: Estimate } {
  const length = lengthOf(context.node);
  const rate = kept?.rate ?? context.observation.seen.kept.find((candidate) => candidate.rate)?.rate;
  const count = steps ?? ("steps" in length ? length.steps : rate?.stepsPerEpoch && length.epochs * rate.stepsPerEpoch);
  if (count === undefined) return {};
  if (!rate) return { estimate: { steps: count } };
  const seconds = count * rate.secondsPerStep;
  const server = serverPart(context).node;
  const backend = server.attributes.get("backend")?.value;
  const gpus = backend === "embedded" ? 0 : (numberAt(server, "gpus") ?? 1) * (numberAt(server, "nodes") ?? 1);
  const price = numberAt(server, "price_per_gpu_hour");
  const gpuHours = (gpus * seconds) / 3600;
  return {
    estimate: {
      steps: count,
      tokens: Math.round(count * rate.tokensPerStep),
      seconds,
      ...(gpus > 0 ? { gpuHours } : {}),
      ...(gpus > 0 && price !== undefined ? { cost: gpuHours * price } : {}),
    },
  };
}
