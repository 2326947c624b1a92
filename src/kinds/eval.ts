/** `evals:` — a measurement of a checkpoint. Made once for what it is; its thresholds are judged afterwards. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Address, nameOf } from "../address.ts";
import { fail } from "../diagnostic.ts";
import { type Digest, digestJson } from "../digest.ts";
import type {
  ActContext,
  DecideContext,
  Decision,
  IdentifyContext,
  Identity,
  Kind,
  Outcome,
  OutcomeRecord,
} from "../kind.ts";
import type { CheckpointId } from "../run-record.ts";
import type { SpecAttribute, SpecNode } from "../spec.ts";
import type { Json, JsonObject, Value } from "../value.ts";
import { hashedLeaves, referenced, referenceTo, ruleOf } from "./attributes.ts";
import { serverSettings } from "./connect.ts";
import type { DatasetFacts } from "./dataset.ts";
import { measure } from "./eval/measure.ts";
import { evalFolder, judge, type KeptResult, keepResult, keptResults, resultWords } from "./eval/results.ts";
import { checkpointNamed, type FoundCheckpoint } from "./run/find.ts";
import { evalOrder } from "./run/rl-order.ts";
import { parentOf } from "./run/settings.ts";

export interface EvalSeen {
  readonly kept: readonly KeptResult[];
}

/** Fields that name other blocks: what they name is hashed instead. */
const NAMES = ["checkpoint", "environment"];

function identify({ node, upstream }: IdentifyContext<undefined, EvalSeen>): Identity {
  const reference = node.references.find(({ path }) => path === "checkpoint");
  const run = upstream(reference?.to as Address);
  const checkpoint = parentOf(run, reference?.selector);
  const environment = referenced(node, "environment", upstream);
  // Tasks in sandboxes have no dataset: the environment knows its own.
  const dataset = environment && (referenced(environment.node, "dataset", upstream) ?? environment);
  const attributes = new Map<string, SpecAttribute>();
  const because = new Map<string, Address>();
  const derived = (path: string, value: Value, address: Address): void => {
    attributes.set(path, { value, change: "replace", isDefault: false });
    because.set(path, address);
  };
  for (const [path, attribute] of node.attributes)
    attributes.set(path, NAMES.includes(path) ? { ...attribute, change: "update" } : attribute);
  derived("checkpoint.id", checkpoint as Value, run.node.address);
  if (environment) derived("environment.content", environment.identity.hash, environment.node.address);
  if (dataset) derived("dataset.content", (dataset.facts as DatasetFacts).digest, dataset.node.address);
  return { attributes, because, hash: digestJson({ kind: "eval", leaves: hashedLeaves(attributes) }) };
}

function decide(context: DecideContext<undefined, EvalSeen>): Decision {
  const { record, identity, observation, changes, forced, node } = context;
  const incarnation = record?.incarnation ?? 1;
  const kept = observation.seen.kept.find(({ hash }) => hash === identity.hash);
  if (forced) return { action: "replace", incarnation: incarnation + 1, reasons: [`replaced because ${forced}`] };
  if (kept && record?.hash === identity.hash && record.status === "ready") {
    // Thresholds are judged again when they change; the result stays.
    const { passed } = judge(node, kept.result);
    const isJudged = (record.results as { passed?: boolean }).passed === passed;
    const renamed = changes.find(({ rule }) => rule === "update");
    if (isJudged && !renamed) return { action: "none", incarnation, reasons: [] };
    const path = renamed?.path ?? "metrics";
    return { action: "update", incarnation, reasons: [`updated because ${path} changed; nothing is sampled anew`] };
  }
  if (kept) return { action: "restore", incarnation, reasons: ["restored because this was measured before"] };
  if (!record) return { action: "create", incarnation, reasons: ["it does not exist yet"] };
  if (record.hash === identity.hash) {
    const why = record.status === "ready" ? "its result is not there any more" : "its last measurement did not end";
    return { action: "create", incarnation, reasons: [why] };
  }
  const cause = changes.find(({ rule }) => rule === "replace");
  const why = cause?.because ?? cause?.path ?? "what it measures";
  return { action: "replace", incarnation: 1, reasons: [`measured anew because ${why} changed`] };
}

async function act(context: ActContext<undefined, EvalSeen>): Promise<Outcome> {
  const { change, node, project, address } = context;
  if (change.action === "forget" || !node) {
    rmSync(join(project.dataFolder, "evals", nameOf(address)), { recursive: true, force: true });
    return { status: "done", record: "removed" };
  }
  const { hash } = change.after as NonNullable<typeof change.after>;
  const known = change.action === "update" || change.action === "restore";
  const kept = known ? context.observation?.seen.kept.find((candidate) => candidate.hash === hash) : undefined;
  return outcomeOf(node, kept ?? (await measureAnew(context, node, hash)));
}

async function measureAnew(
  context: ActContext<undefined, EvalSeen>,
  node: SpecNode,
  hash: Digest,
): Promise<KeptResult> {
  const { project, address } = context;
  const { run, checkpoint } = checkpointOf(context, node);
  const server = referenceTo(node, "server") as Address;
  const folder = evalFolder(project.dataFolder, node.name, hash);
  const result = await measure({
    address,
    order: await evalOrder(context, node),
    server: serverSettings(context.nodeOf(server) as SpecNode),
    weights: checkpoint,
    step: checkpoint.step,
    folder,
    project,
    signal: context.stop,
    onPhase: (text) => context.phase(`${run} at step ${checkpoint.step}: ${text}`),
  });
  const kept = { hash, step: checkpoint.step, result };
  keepResult(folder, kept);
  return kept;
}

/** The checkpoint that is measured, as it is by now. */
function checkpointOf(
  context: ActContext<undefined, EvalSeen>,
  node: SpecNode,
): { readonly run: Address; readonly checkpoint: FoundCheckpoint } {
  const run = referenceTo(node, "checkpoint") as Address;
  const id = context.identity?.attributes.get("checkpoint.id")?.value as unknown as CheckpointId;
  const checkpoint = checkpointNamed(context.project.dataFolder, run, id);
  if (checkpoint) return { run, checkpoint };
  return fail(
    "RL4002",
    `${run} has no checkpoint at the place that ${node.address} measures. Keep one there (save_every, keep_last), or measure its final step.`,
    { address: node.address },
  );
}

function outcomeOf(node: SpecNode, { result, step }: KeptResult): Outcome {
  const { passed, faults } = judge(node, result);
  const { metrics, error, tasks, samples, lost } = result;
  const results: JsonObject = { passed, step, tasks, samples, lost, error, metrics: metrics as unknown as Json };
  const record: OutcomeRecord = { status: "ready", results };
  const lostWords = lost > 0 ? `, ${lost} answers lost` : "";
  const verdict = passed ? "" : `: not passed, ${faults.join(" and ")}`;
  return { status: "done", record, summary: `${resultWords(result)}${lostWords}${verdict}` };
}

export const evalKind: Kind<undefined, EvalSeen> = {
  name: "eval",
  removal: "forget",
  ruleOf: (path) => ruleOf("eval", path),
  read: async ({ project, address }) => ({
    status: "present",
    seen: { kept: keptResults(project.dataFolder, nameOf(address)) },
    drift: [],
  }),
  identify,
  decide,
  act,
};
