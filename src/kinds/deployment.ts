/** `deployments:` — a named pointer to a checkpoint. It moves when the required evals pass for exactly that checkpoint; else it is held. */
import { type Address, nameOf } from "../address.ts";
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import { type Digest, digestJson } from "../digest.ts";
import type {
  ActContext,
  DecideContext,
  Decision,
  IdentifyContext,
  Identity,
  Kind,
  Observation,
  Outcome,
  ReadContext,
  Upstream,
} from "../kind.ts";
import type { CheckpointId } from "../run-record.ts";
import type { SpecAttribute, SpecNode } from "../spec.ts";
import { canonicalJson, type JsonObject, type Value } from "../value.ts";
import { referenceTo, ruleOf, stringAt } from "./attributes.ts";
import { isPlaceThere } from "./deployment-place.ts";
import {
  type DeployedAt,
  type DeploymentResults,
  deploymentResults,
  historyOf,
  weightsOf,
} from "./deployment-record.ts";
import { judge, keptResults } from "./eval/results.ts";
import type { EvalSeen } from "./eval.ts";
import { checkpointNamed } from "./run/find.ts";
import type { RunSeen } from "./run/observe.ts";
import { parentOf } from "./run/settings.ts";

/** Undefined of a deployment that points nowhere. */
export type DeploymentSeen = { readonly isGone: boolean } | undefined;

async function read(context: ReadContext): Promise<Observation<DeploymentSeen>> {
  const place = deploymentResults(context.record);
  if (!place) return { status: "present", seen: undefined, drift: [] };
  const isGone = (await isPlaceThere(context, place)) === false;
  const message = `the checkpoint it points at, step ${place.step} of ${place.run} (${weightsOf(place)}), is gone`;
  return { status: "present", seen: { isGone }, drift: isGone ? [{ message, mend: "none" }] : [] };
}

function identify({ node, upstream }: IdentifyContext<undefined, DeploymentSeen>): Identity {
  const reference = node.references.find(({ path }) => path === "checkpoint");
  const run = upstream(reference?.to as Address);
  const checkpoint = parentOf(run, reference?.selector);
  const attributes = new Map<string, SpecAttribute>();
  for (const [path, attribute] of node.attributes)
    attributes.set(path, path === "checkpoint" ? { ...attribute, change: "none" } : attribute);
  attributes.set("checkpoint.id", { value: checkpoint as Value, change: "update", isDefault: false });
  const because = new Map([["checkpoint.id", run.node.address]]);
  return { attributes, because, hash: digestJson({ kind: "deployment", checkpoint }) };
}

function decide(context: DecideContext<undefined, DeploymentSeen>): Decision {
  const { record, identity, forced, node } = context;
  const results = deploymentResults(record);
  const incarnation = record?.incarnation ?? 1;
  const move = record ? "update" : "create";
  if (record?.hash === identity.hash && !forced) {
    if (!isMadeAgain(context)) return { action: "none", incarnation, reasons: [] };
    return { action: "update", incarnation, reasons: ["points at the same checkpoint where it is made again"] };
  }
  if (results?.rolledBackFrom === identity.hash && !forced) {
    const detail = `${node.address} was rolled back from this checkpoint by hand and stays at step ${results.step} of ${results.run}. It moves again when the checkpoint is another, or with --replace ${node.address}.`;
    return { action: "none", incarnation, reasons: [], diagnostics: [heldWarning(node, detail)] };
  }
  const verdicts = requiredEvals(context).map(verdictOf);
  const failed = verdicts.filter(({ said }) => said !== undefined);
  const faults = failed.map(({ said }) => said).join("; ");
  // The apply is to fail for it, so there has to be something to carry out.
  if (failed.length > 0 && stringAt(node, "on_fail") === "error")
    return { action: move, incarnation, reasons: [`fails, since ${faults}`] };
  if (failed.length > 0) {
    const detail = `${node.address} is held${results ? ` at step ${results.step} of ${results.run}` : ""}: ${faults}.`;
    return { action: "none", incarnation, reasons: [], diagnostics: [heldWarning(node, detail)] };
  }
  const open = verdicts.filter(({ isOpen }) => isOpen).map(({ address }) => address);
  const condition =
    open.length > 0
      ? `moves if ${open.join(" and ")} pass${open.length === 1 ? "es" : ""}`
      : record?.hash === identity.hash
        ? `points there again because ${forced}`
        : "moves, since what it requires passes";
  return { action: move, incarnation, reasons: [record || open.length > 0 ? condition : "it does not exist yet"] };
}

/** Whether the checkpoint that is gone from where the deployment points is made anew by this plan, or was by an earlier one. */
function isMadeAgain({ record, node, observation, upstream }: DecideContext<undefined, DeploymentSeen>): boolean {
  const results = deploymentResults(record);
  if (!results || !observation.seen?.isGone) return false;
  const run = upstream(referenceTo(node, "checkpoint") as Address);
  if (run.action === "resume" || run.action === "extend") return true;
  const { kept } = run.observation.seen as RunSeen;
  const { hash, incarnation } = run.lineage;
  const current = kept.find((candidate) => candidate.generation === hash && candidate.incarnation === incarnation);
  const there = current?.durable.find(({ step }) => step === results.step);
  return there !== undefined && weightsOf(there) !== weightsOf(results);
}

function heldWarning(node: SpecNode, detail: string): Diagnostic {
  const range = node.rangeOf("checkpoint");
  return diagnostic("RL2103", detail, { address: node.address, range, sourceLine: node.lineOf(range) });
}

function requiredEvals({ node, upstream }: DecideContext<undefined, DeploymentSeen>): readonly Upstream[] {
  return node.references.filter(({ path }) => path.startsWith("requires.")).map(({ to }) => upstream(to));
}

/** What an eval says as far as the plan knows: open while it is to be measured, silent where it passes. */
function verdictOf({ node, action, identity, observation }: Upstream) {
  const { address } = node;
  const isMeasured = action === "none" || action === "update" || action === "restore";
  const kept = (observation.seen as EvalSeen).kept.find(({ hash }) => hash === identity.hash);
  if (!isMeasured || !kept) return { address, isOpen: true };
  const { passed, faults } = judge(node, kept.result);
  return passed
    ? { address, isOpen: false }
    : { address, isOpen: false, said: `${address} did not pass: ${faults.join(" and ")}` };
}

/** An eval of another checkpoint says nothing about this one. */
function check(context: DecideContext<undefined, DeploymentSeen>): readonly Diagnostic[] {
  const { node, identity } = context;
  const own = canonicalJson(identity.attributes.get("checkpoint.id")?.value);
  return requiredEvals(context).flatMap((required) => {
    const theirs = required.identity.attributes.get("checkpoint.id")?.value;
    if (canonicalJson(theirs) === own) return [];
    const range = node.rangeOf("requires");
    const detail = `${required.node.address} measures another checkpoint (${stringAt(required.node, "checkpoint")}) than the one that ${node.address} points at (${stringAt(node, "checkpoint")}). Name the same in both.`;
    return [diagnostic("RL2104", detail, { address: node.address, range, sourceLine: node.lineOf(range) })];
  });
}

async function act(context: ActContext<undefined, DeploymentSeen>): Promise<Outcome> {
  const { node, change, record, address } = context;
  if (change.action === "forget" || !node) return { status: "done", record: "removed" };
  const { hash } = change.after as NonNullable<typeof change.after>;
  const before = deploymentResults(record);
  // The same checkpoint in another place was let through already.
  const isSame = before?.hash === hash;
  const faults = (isSame ? [] : node.references)
    .filter(({ path }) => path.startsWith("requires."))
    .flatMap(({ to }) => faultOf(context, to));
  if (faults.length > 0) return held(node, faults, before);
  const place = placeOf(context, node, hash);
  if (typeof place === "string") {
    return { status: "failed", diagnostics: [diagnostic("RL4002", place, { address })] };
  }
  const results: DeploymentResults = isSame
    ? { ...before, ...place, at: before.at }
    : { ...place, history: historyOf(before) };
  const summary = `${place.run} at step ${place.step}`;
  return { status: "done", record: { status: "ready", results: results as unknown as JsonObject }, summary };
}

/** Why an eval does not let the pointer move, by what was measured by now. */
function faultOf(
  { project, nodeOf, lineageOf }: ActContext<undefined, DeploymentSeen>,
  to: Address,
): readonly string[] {
  const node = nodeOf(to);
  const hash = lineageOf(to)?.hash;
  const kept = keptResults(project.dataFolder, nameOf(to)).find((candidate) => candidate.hash === hash);
  if (!node || !kept) return [`${to} has no result for this checkpoint`];
  const { faults } = judge(node, kept.result);
  return faults.map((fault) => `${to} did not pass: ${fault}`);
}

function held(node: SpecNode, faults: readonly string[], before: DeploymentResults | undefined): Outcome {
  const where = before ? ` at step ${before.step} of ${before.run}` : "";
  const summary = `held${where}: ${faults.join("; ")}`;
  if (stringAt(node, "on_fail") !== "error") return { status: "done", record: "unchanged", summary };
  const diagnostics = [
    diagnostic("RL2103", `${node.address} is ${summary}.`, { address: node.address, severity: "error" }),
  ];
  return { status: "failed", diagnostics, summary };
}

function placeOf(context: ActContext<undefined, DeploymentSeen>, node: SpecNode, hash: Digest): DeployedAt | string {
  const run = referenceTo(node, "checkpoint") as Address;
  const id = context.identity?.attributes.get("checkpoint.id")?.value as unknown as CheckpointId;
  const found = checkpointNamed(context.project.dataFolder, run, id);
  if (!found) return `${run} has no checkpoint at the place that ${node.address} is to point at.`;
  const { step, training, sampler } = found;
  return { at: new Date().toISOString(), run, step, hash, training, ...(sampler === undefined ? {} : { sampler }) };
}

export const deploymentKind: Kind<undefined, DeploymentSeen> = {
  name: "deployment",
  removal: "forget",
  ruleOf: (path) => ruleOf("deployment", path),
  read,
  identify,
  decide,
  check,
  act,
};
