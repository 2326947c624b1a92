/** A plan as text. The view only turns data into strings; what it shows is all in the plan. */
import { ACTION_SYMBOLS, type Action, type AttributeChange, type Change, type Estimate } from "../../change.ts";
import { shortDigest } from "../../digest.ts";
import type { Queue } from "../../plan/plan.ts";
import { isSecret, isUnknown, type Value } from "../../value.ts";
import type { Style } from "./style.ts";
import { compact, counted, duration } from "./units.ts";

/** Actions in the order in which the last line counts them. */
const COUNTED: readonly (readonly [Action, string])[] = [
  ["create", "to create"],
  ["replace", "to replace"],
  ["extend", "to extend"],
  ["resume", "to resume"],
  ["restore", "to restore"],
  ["restart", "to restart"],
  ["update", "to update"],
  ["destroy", "to destroy"],
  ["forget", "to forget"],
];

/** Changes that a plan tells of: there is something to do, or to know. */
export function shownChanges(changes: readonly Change[]): readonly Change[] {
  return changes.filter((change) => change.action !== "none" || change.drift.length > 0 || change.busy);
}

export function renderPlan(changes: readonly Change[], queues: readonly Queue[], style: Style): string {
  const shown = shownChanges(changes);
  const lines = shown.flatMap((change) => [...renderChange(change, style), ""]);
  for (const queue of queues) {
    const waves = queue.waves.map((wave, at) => `  wave ${at + 1}: ${wave.join(", ")}`);
    lines.push(`${queue.address} holds ${queue.slots} at a time, so the work queues:`, ...waves, "");
  }
  lines.push(renderSummary(changes, style));
  return `${lines.join("\n")}\n`;
}

function renderChange(change: Change, style: Style): readonly string[] {
  const symbol = ACTION_SYMBOLS[change.action];
  const head = `${colour(change.action, style)(symbol.padStart(3))} ${style.bold(change.address)}`;
  // What is new needs no reason; what was there before does.
  const isNew = change.action === "create" && !change.before;
  const reason = isNew || change.reasons.length === 0 ? "" : style.dim(`  ${change.reasons[0]}`);
  const lines = [`${head}${reason}`];
  for (const more of change.reasons.slice(1)) lines.push(`      ${style.dim(more)}`);
  for (const drift of change.drift) {
    if (drift.message !== change.reasons[0]) lines.push(`      ${style.yellow("drift:")} ${drift.message}`);
  }
  if (change.busy) {
    const step = change.busy.step === undefined ? "" : `, step ${change.busy.step}`;
    lines.push(`      ${style.cyan("in progress")} by ${change.busy.owner}${step}`);
  }
  const attributes = change.attributes.filter((attribute) => isShown(change, attribute));
  const isNewGeneration = change.action === "replace" && change.kind === "run" && change.before && change.after;
  const names = [...attributes.map((attribute) => attribute.path), ...(isNewGeneration ? ["generation"] : [])];
  const width = Math.min(36, Math.max(0, ...names.map((name) => name.length)));
  for (const attribute of attributes) lines.push(`      ${renderAttribute(change, attribute, width, style)}`);
  if (isNewGeneration && change.before && change.after) {
    lines.push(`      ${"generation".padEnd(width)}  ${lineage(change.before)} → ${lineage(change.after)}`);
  }
  const estimate = change.estimate && renderEstimate(change.estimate);
  if (estimate) lines.push(`      ${style.dim(estimate)}`);
  return lines;
}

/** Whether a plan tells of an attribute: a restored run is what it was. */
export function isShown(change: Change, attribute: AttributeChange): boolean {
  return change.action !== "none" && change.action !== "restore" && attribute.rule !== "none";
}

function renderAttribute(change: Change, attribute: AttributeChange, width: number, style: Style): string {
  const name = attribute.path.padEnd(width);
  const after = "after" in attribute ? renderValue(attribute.after as Value) : style.dim("(as by default)");
  if (change.action === "create") return `${name}  ${after}`;
  const before = "before" in attribute ? renderValue(attribute.before as Value) : style.dim("(default)");
  const forces = attribute.rule === change.action && FORCES[change.action];
  const because = attribute.because ? ` (${attribute.because})` : "";
  return `${name}  ${before} → ${after}${forces ? style.dim(`  # ${forces}${because}`) : style.dim(because)}`;
}

export const FORCES: Partial<Readonly<Record<Action, string>>> = {
  replace: "forces a replacement",
  restart: "forces a restart",
};

export function renderValue(value: Value): string {
  if (isSecret(value)) return `(secret ${value.$secret})`;
  if (isUnknown(value)) return "(known after apply)";
  if (typeof value === "string") return isDigest(value) ? shortDigest(value) : JSON.stringify(value);
  if (typeof value !== "object" || value === null) return String(value);
  return (
    renderPlace(value) ?? JSON.stringify(value, (_, inner: unknown) => (isDigest(inner) ? shortDigest(inner) : inner))
  );
}

const isDigest = (value: unknown): value is string => typeof value === "string" && /^sha256:[0-9a-f]{64}$/.test(value);

/** A length (`40 steps`) or a place on a run's lineage (`14ea8fbe7438/1@40`); undefined for other maps. */
function renderPlace(value: object): string | undefined {
  const keys = Object.keys(value);
  const { generation, incarnation, at, steps, epochs, best, of } = value as Record<string, Value>;
  if (keys.length === 1 && typeof steps === "number") return counted(steps, "step");
  if (keys.length === 1 && typeof epochs === "number") return counted(epochs, "epoch");
  if (best === true) return typeof of === "object" && of !== null ? `best of ${renderPlace(of)}` : "best";
  if (!isDigest(generation) || typeof at !== "object" || at === null) return undefined;
  const place = "steps" in at ? String(at.steps) : renderPlace(at);
  return `${shortDigest(generation)}/${incarnation}@${place}`;
}

/** `14ea8fbe7438/1` */
export function lineage({ hash, incarnation }: { readonly hash: string; readonly incarnation: number }): string {
  return `${shortDigest(hash)}/${incarnation}`;
}

function colour(action: Action, style: Style): (text: string) => string {
  switch (action) {
    case "create":
    case "extend":
    case "resume":
    case "restore":
      return style.green;
    case "update":
    case "restart":
      return style.yellow;
    case "replace":
    case "destroy":
    case "forget":
      return style.red;
    case "none":
      return style.dim;
  }
}

export function renderEstimate(estimate: Estimate): string | undefined {
  const parts: string[] = [];
  if (estimate.steps !== undefined) parts.push(counted(estimate.steps, "step"));
  if (estimate.tokens !== undefined) parts.push(`${compact(estimate.tokens)} tokens`);
  if (estimate.seconds !== undefined) parts.push(`about ${duration(estimate.seconds)}`);
  if (estimate.gpuHours !== undefined) parts.push(`${estimate.gpuHours.toFixed(1)} GPU-hours`);
  if (estimate.cost !== undefined) parts.push(`cost ${estimate.cost.toFixed(2)}`);
  if (estimate.seconds === undefined && parts.length > 0) parts.push("no rate measured yet");
  return parts.length === 0 ? undefined : parts.join(", ");
}

/** The last line: what is to be done, counted, and what it takes as far as that was measured. */
export function renderSummary(changes: readonly Change[], style: Style): string {
  const counts = COUNTED.flatMap(([action, words]) => {
    const count = changes.filter((change) => change.action === action).length;
    return count > 0 ? [`${count} ${words}`] : [];
  });
  if (counts.length === 0) {
    if (changes.length === 0) return style.bold("No changes. There is nothing to plan.");
    const what = changes.length === 1 ? "1 resource is" : `${changes.length} resources are`;
    return style.bold(`No changes. ${what} as the spec says.`);
  }
  const total = sumEstimates(changes);
  const words = total && renderEstimate(total);
  return `${style.bold("Plan:")} ${counts.join(", ")}.${words ? style.dim(` Training: ${words}.`) : ""}`;
}

/** Sum over all changes; a field that one of them lacks is left out, since the rest alone would mislead. */
export function sumEstimates(changes: readonly Change[]): Estimate | undefined {
  const training = changes.filter(
    (change) =>
      change.action !== "none" &&
      change.kind === "run" &&
      ["create", "replace", "extend", "resume"].includes(change.action),
  );
  if (training.length === 0) return undefined;
  const total: Record<string, number> = {};
  for (const field of ["steps", "tokens", "seconds", "gpuHours", "cost"] as const) {
    const values = training.map((change) => change.estimate?.[field]);
    if (values.every((value) => value !== undefined))
      total[field] = values.reduce<number>((sum, value) => sum + (value as number), 0);
  }
  return total;
}
