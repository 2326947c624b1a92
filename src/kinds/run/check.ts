/** What only the whole plan shows of a run: whether the places that it starts from will be there, and whether its server can train it. */
import { nameOf } from "../../address.ts";
import { type Diagnostic, diagnostic } from "../../diagnostic.ts";
import type { DecideContext, Upstream } from "../../kind.ts";
import { lossNamed } from "../../losses/registry.ts";
import { largestRank } from "../../servers/skyrl/config.ts";
import type { SpecNode } from "../../spec.ts";
import { ignoredSettings, SERVER_TRAITS, type ServerKind } from "../../tinker/quirks.ts";
import { numberAt, referenced, referenceTo, stringAt } from "../attributes.ts";
import { serverSettings } from "../connect.ts";
import { checkpointForm, whyNotMovable } from "./form.ts";
import { lossPart, partsOf, serverPart } from "./identity.ts";
import type { Kept, RunSeen } from "./observe.ts";
import { settingsOf } from "./settings.ts";

export function checkRun(context: DecideContext<unknown, RunSeen>): readonly Diagnostic[] {
  const { node, upstream } = context;
  const faults = ["from", "kl_reference"].flatMap((field) => {
    const reference = node.references.find((candidate) => candidate.path === field);
    if (reference?.selector === undefined || reference.selector === "best") return [];
    const fault = stepFault(upstream(reference.to), Number(reference.selector));
    return fault === undefined ? [] : [faultAt(node, field, "RL2101", fault)];
  });
  const isRl = stringAt(node, "type") === "rl";
  return [
    ...faults,
    ...movedFaults(context),
    ...["from", "kl_reference"].flatMap((field) => foreignFaults(context, field)),
    ...adapterFaults(context),
    ...optimizerFaults(context),
    ...(isRl ? backendFaults(context) : []),
  ];
}

/** A run on another server than the one that has its checkpoints. */
function movedFaults(context: DecideContext<unknown, RunSeen>): readonly Diagnostic[] {
  const { node, identity, observation, forced } = context;
  const server = serverPart(context).node;
  const kept = observation.seen.kept.find(({ generation }) => generation === identity.hash);
  const has = kept !== undefined && kept.durable.length + kept.missing.length > 0;
  if (!has || kept.server === undefined || kept.server === server.address || forced) return [];
  const isBusy = observation.busy !== undefined && observation.seen.busy === kept.folder;
  const why = isBusy ? "it is being trained there" : whyNotMovable(kept.server, kept.form, server);
  if (why === undefined) return [];
  const out = isBusy ? `Stop it first (\`rlcli stop ${node.address}\`)` : "Train it anew there with --replace";
  const detail = `${node.address} has its checkpoints on ${kept.server}, and they cannot move to ${server.address}: ${why}. ${out}, or write \`server: ${nameOf(kept.server)}\` again.`;
  return [faultAt(node, "server", "RL8011", detail)];
}

/** A start or a reference that is kept on a server whose checkpoints the run's own server cannot be given. */
function foreignFaults(context: DecideContext<unknown, RunSeen>, field: string): readonly Diagnostic[] {
  const { node, upstream } = context;
  const to = referenceTo(node, field);
  if (!to) return [];
  const other = referenced(upstream(to).node, "server", upstream) as Upstream;
  const server = serverPart(context).node;
  const why = whyNotMovable(other.node.address, checkpointForm(other.node), server);
  if (why === undefined) return [];
  const detail = `The checkpoint of ${to} that ${node.address} needs is on another server than its own: ${why}. Train both on one server.`;
  return [faultAt(node, field, "RL8011", detail)];
}

/** The kinds of server, as the client names them, that rlcli starts by these names. */
const KINDS: Readonly<Record<string, ServerKind>> = {
  embedded: "embedded",
  jax: "skyrl-jax",
  fsdp: "skyrl-fsdp",
  megatron: "skyrl-megatron",
};

/** An adapter that the server has no room for, or none where it trains nothing else. */
function adapterFaults(context: DecideContext<unknown, RunSeen>): readonly Diagnostic[] {
  const { node } = context;
  const server = serverPart(context).node;
  const { skyrl, backend } = serverSettings(server);
  if (skyrl === undefined || !hasLoraRank(node)) return [];
  const rank = numberAt(node, "lora_rank") as number;
  if (rank === 0 && !SERVER_TRAITS[KINDS[backend] as ServerKind].trainsFully) {
    const detail = `A ${backend} server trains adapters only, not the whole model (lora_rank: 0). Choose a rank of 1 or more, or train on fsdp or megatron.`;
    return [faultAt(node, "lora_rank", "RL8011", detail)];
  }
  if (rank === 0 && skyrl.settings.slots > 1) {
    const detail = `${server.address} holds ${skyrl.settings.slots} adapters at once, and the whole model (lora_rank: 0) can be trained only alone. Choose a rank of 1 or more, or \`slots: 1\` there.`;
    return [faultAt(node, "lora_rank", "RL8011", detail)];
  }
  const limit = largestRank(skyrl.settings);
  if (limit === undefined || rank <= limit) return [];
  const detail = `A rank of ${rank} is over the ${limit} that ${server.address} has room for. Choose a smaller one, or write \`max_lora_rank: ${rank}\` there.`;
  return [faultAt(node, "lora_rank", "RL8011", detail)];
}

const hasLoraRank = (node: SpecNode): boolean => numberAt(node, "lora_rank") !== undefined;

/** Optimizer settings that the server would take and not use; of an external server that is found when the run starts. */
function optimizerFaults(context: DecideContext<unknown, RunSeen>): readonly Diagnostic[] {
  const { node } = context;
  const kind = KINDS[serverSettings(serverPart(context).node).backend];
  if (kind === undefined) return [];
  const { optimizer } = settingsOf(node, lossPart(context));
  return ignoredSettings(kind, optimizer).map((name) => {
    const detail = `The ${kind.replace("skyrl-", "")} backend takes optimizer.${name} and does not use it. Leave it out, or train on a server that does.`;
    return faultAt(node, `optimizer.${name}`, "RL8011", detail);
  });
}

function faultAt(node: SpecNode, field: string, code: "RL2101" | "RL8011", detail: string): Diagnostic {
  const range = node.rangeOf(field);
  return diagnostic(code, detail, { address: node.address, range, sourceLine: node.lineOf(range) });
}

/** What a backend cannot do for a run of type `rl`, as far as its name tells; external servers are asked when the run starts. */
function backendFaults(context: DecideContext<unknown, RunSeen>): readonly Diagnostic[] {
  const { node } = context;
  const parts = partsOf(context);
  const backend = stringAt(parts.server.node, "backend") ?? "";
  if (backend === "external") return [];
  const { loss } = settingsOf(node, parts.loss);
  const definition = lossNamed(loss.type);
  const has = definition?.backends.some((name) => name === backend) ?? false;
  const faults: Diagnostic[] = [];
  if (!has && (loss.strategy ?? "fused") === "fused") {
    const others = definition?.backends.join(", ");
    const detail = `A ${backend} server does not compute ${loss.type} itself; ${others} do. Declare the loss with \`strategy: two_pass\` (--loss-strategy two_pass), which gets the same gradient from a forward pass and a linear loss.`;
    faults.push(faultAt(node, "loss", "RL8011", detail));
  }
  const isOneModel = backend === "fsdp" || backend === "megatron";
  const isReferenced = parts.from !== undefined || parts.reference !== undefined;
  if ((numberAt(node, "kl_penalty") ?? 0) > 0 && (isOneModel || (backend === "jax" && isReferenced))) {
    const detail = `A ${backend} server samples only the model in training, so the KL penalty has nothing to compare with. Leave kl_penalty out, or train on another backend.`;
    faults.push(faultAt(node, "kl_penalty", "RL8011", detail));
  }
  if ((numberAt(node, "max_steps_off_policy") ?? 0) > 0 && backend !== "embedded") {
    const detail = `On a ${backend} server older weights cannot be sampled while newer ones are trained. Leave max_steps_off_policy at 0.`;
    faults.push(faultAt(node, "max_steps_off_policy", "RL8011", detail));
  }
  return faults;
}

function stepFault(parent: Upstream, step: number): string | undefined {
  const { address } = parent.node;
  const kept = keptOf(parent);
  // Steps ahead of it will be saved, since this run names them.
  if (!kept || kept.step < step || kept.durable.some((checkpoint) => checkpoint.step === step)) return undefined;
  const there = kept.durable.map((checkpoint) => checkpoint.step).join(", ");
  return `${address} is past step ${step} and kept no checkpoint there${there ? ` (it has ${there})` : ""}. Start from one of those, or train it again with --replace ${address}, which then keeps step ${step}.`;
}

/** The incarnation that the parent is or will be, where there is something of it already. */
function keptOf({ lineage, observation }: Upstream): Kept | undefined {
  const { kept } = observation.seen as RunSeen;
  return kept.find((k) => k.generation === lineage.hash && k.incarnation === lineage.incarnation);
}
