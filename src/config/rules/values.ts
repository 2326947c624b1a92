/** Values that are fine alone and wrong together, and values that this version does not do. */

import { addressOf } from "../../address.ts";
import { listNames } from "../../suggest.ts";
import { isRemoteAddress } from "../../url.ts";
import type { Block } from "../blocks.ts";
import { type BlockName, blockInfo } from "../fields.ts";
import { child, descend, type Tree, textOf } from "../tree.ts";
import type { RuleContext } from "./rule.ts";

function numberOf(tree: Tree | undefined): number | undefined {
  return tree?.type === "scalar" && typeof tree.value === "number" ? tree.value : undefined;
}

/** The number written at a path, or its default. */
function numberAt(block: Block, path: string): number | undefined {
  const fallback = blockInfo(block.kind as BlockName).fields.find((f) => f.path === path)?.default;
  return numberOf(descend(block.tree, path)) ?? (typeof fallback === "number" ? fallback : undefined);
}

export function clipsAreOrdered(block: Block, context: RuleContext): void {
  if (block.kind !== "loss") return;
  const low = numberAt(block, "clip_low_threshold") ?? 0;
  const high = numberAt(block, "clip_high_threshold") ?? 0;
  if (low <= high) return;
  const path = child(block.tree, "clip_low_threshold") ? "clip_low_threshold" : "clip_high_threshold";
  context.reporter.at(block, path, "RL1205", `The lower clip (${low}) is above the upper one (${high}).`);
}

export function parallelismDivides(block: Block, context: RuleContext): void {
  if (block.kind !== "server") return;
  const gpus = numberAt(block, "gpus") ?? 1;
  const split = numberAt(block, "tensor_parallel") ?? 1;
  if (gpus % split !== 0)
    context.reporter.at(
      block,
      "tensor_parallel",
      "RL1205",
      `\`tensor_parallel: ${split}\` does not divide the ${gpus} GPU${gpus === 1 ? "" : "s"} of a node.`,
    );
}

/** Two servers of one machine cannot listen on one port, and would find that out only when the second starts. */
export function portsAreApart(block: Block, context: RuleContext): void {
  const port = block.kind === "server" ? portOf(block) : 0;
  if (port === 0) return;
  for (const other of context.ofKind("server").values()) {
    // Reported once, at the later block.
    if (other === block) return;
    if (context.isFaulty(other) || portOf(other) !== port) continue;
    const isWritten = child(block.tree, "port") !== undefined;
    const detail = `It listens on port ${port}${isWritten ? "" : " (the default of its backend)"}, as ${other.address} does. Give one of them another \`port\`; 0 takes a free one.`;
    if (isWritten) context.reporter.at(block, "port", "RL1205", detail);
    else context.reporter.atKey(block, "", "RL1205", detail);
    return;
  }
}

/** 0 where it takes a free one, or is somebody else's. */
function portOf(block: Block): number {
  const backend = textOf(child(block.tree, "backend")) ?? "";
  if (backend === "external") return 0;
  return numberOf(child(block.tree, "port")) ?? (backend === "embedded" ? 0 : DEFAULT_PORT);
}

/** Of SkyRL, as the schema tells users. */
const DEFAULT_PORT = 8000;

export function evaluationHasRows(block: Block, context: RuleContext): void {
  if (block.kind !== "run" || !((numberAt(block, "eval_every") ?? 0) > 0) || (numberAt(block, "test_size") ?? 0) > 0)
    return;
  context.reporter.at(
    block,
    "eval_every",
    "RL1205",
    "There are no held-out rows to evaluate on. Set `test_size` to how many to hold out.",
  );
}

/** `final_ratio` of a constant schedule would be ignored; its default says nothing. */
export function scheduleFits(block: Block, context: RuleContext): void {
  const path = "schedule.final_ratio";
  if (block.kind !== "run" || numberOf(descend(block.tree, path)) === undefined || numberAt(block, path) === 0) return;
  if ((textOf(descend(block.tree, "schedule.type")) ?? "constant") !== "constant") return;
  const detail =
    "A constant schedule keeps the full rate, so `final_ratio` means nothing. Use `type: linear` or `cosine`.";
  context.reporter.atKey(block, path, "RL1203", detail);
}

export function optimizerHasOrigin(block: Block, context: RuleContext): void {
  if (block.kind !== "run" || child(block.tree, "from") !== undefined) return;
  const tree = child(block.tree, "from_optimizer");
  if (tree?.type !== "scalar" || tree.value !== true) return;
  const detail = "`from_optimizer` takes over another run's optimizer, but there is no `from`. Add it, or remove this.";
  context.reporter.atKey(block, "from_optimizer", "RL1106", detail);
}

/** Groups in which there is nothing to compare, more updates than groups, and a reference that nothing is compared with. */
export function groupsFit(block: Block, context: RuleContext): void {
  if (block.kind !== "run" || textOf(child(block.tree, "type")) !== "rl") return;
  const { reporter } = context;
  const number = (path: string) => numberAt(block, path) as number;
  const [size, groups, substeps] = [number("group_size"), number("groups_per_batch"), number("substeps")];
  if (size === 1 && (textOf(child(block.tree, "advantage")) ?? "center") !== "none") {
    const detail =
      "A group of one answer has no siblings to be compared with, so nothing would be learned. Ask for 2 or more, or train on the reward itself with `advantage: none`.";
    reporter.at(block, "group_size", "RL1205", detail);
  }
  if (child(block.tree, "min_group_size") !== undefined && number("min_group_size") > size) {
    const detail = `No group of ${size} could keep \`min_group_size: ${number("min_group_size")}\` answers.`;
    reporter.at(block, "min_group_size", "RL1205", detail);
  }
  if (substeps > groups) {
    const detail = `A step of ${groups} group${groups === 1 ? "" : "s"} cannot be shared out over ${substeps} updates. Lower \`substeps\`, or raise \`groups_per_batch\`.`;
    reporter.at(block, "substeps", "RL1205", detail);
  }
  if (child(block.tree, "kl_reference") !== undefined && number("kl_penalty") === 0) {
    const detail = "Without `kl_penalty` nothing is compared with `kl_reference`. Give it a weight, or remove this.";
    reporter.atKey(block, "kl_reference", "RL1203", detail);
  }
}

/** Losses that each type of run trains with. */
const USABLE: Readonly<Record<string, readonly string[]>> = {
  sl: ["cross_entropy"],
  rl: ["importance_sampling", "ppo", "cispo", "dro", "gspo", "dppo"],
};

const WHY: Readonly<Record<string, string>> = {
  cross_entropy: "has no use for rewards",
  ppo_critic: "trains a value head, which no run has; use it through rlcli/tinker",
};

export function lossFitsRun(block: Block, context: RuleContext): void {
  const name = block.kind === "run" ? textOf(child(block.tree, "loss")) : undefined;
  const usable = USABLE[textOf(child(block.tree, "type")) ?? ""];
  if (name === undefined || usable === undefined) return;
  const declared = context.blocks.get(addressOf("loss", name));
  const type = declared === undefined ? name : textOf(child(declared.tree, "type"));
  const isLoss = declared !== undefined || blockInfo("loss").fields[0]?.values?.includes(name);
  if (!isLoss || type === undefined || usable.includes(type)) return;
  const of = declared === undefined ? "" : ` of loss \`${name}\``;
  const detail =
    usable.length === 1
      ? `A supervised run trains with \`cross_entropy\`; \`${type}\`${of} needs rewards. Remove \`loss\`, or name one of that type.`
      : `\`${type}\`${of} ${WHY[type] ?? "is no loss of reinforcement learning"}. Use ${listNames(usable, usable.length)}.`;
  context.reporter.at(block, "loss", "RL1204", detail);
}

/** Files, what is at addresses that are read here, and for `source` datasets of a hub. */
export function sourcesAreReadable(block: Block, context: RuleContext): void {
  if (block.kind !== "dataset") return;
  const isForeign = (text = ""): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text) && !isRemoteAddress(text);
  const report = (path: string): void =>
    context.reporter.at(
      block,
      path,
      "RL1110",
      "This version reads files, addresses of the web (`https://…`) and of S3 (`s3://BUCKET/KEY`), and for `source` datasets of the Hugging Face hub (`hf://org/name/config/split`). Download the data and name the file.",
    );
  const source = textOf(child(block.tree, "source"));
  if (isForeign(source) && !source?.startsWith("hf://")) report("source");
  const from = descend(block.tree, "import.from");
  if (from?.type === "list")
    for (const [i, item] of from.items.entries()) if (isForeign(textOf(item))) report(`import.from.${i}`);
}

/** Free maps are handed on as JSON, which has no infinities. */
export function freeMapsAreJson(block: Block, context: RuleContext): void {
  for (const field of blockInfo(block.kind as BlockName).fields)
    if (field.type === "map") checkFinite(descend(block.tree, field.path), field.path, block, context);
}

function checkFinite(tree: Tree | undefined, path: string, block: Block, context: RuleContext): void {
  if (tree?.type === "map")
    for (const [key, { value }] of tree.entries) checkFinite(value, `${path}.${key}`, block, context);
  else if (tree?.type === "list")
    for (const [i, item] of tree.items.entries()) checkFinite(item, `${path}.${i}`, block, context);
  else if (typeof tree?.value === "number" && !Number.isFinite(tree.value))
    context.reporter.at(block, path, "RL1104", "The number is not finite, which cannot be handed on.");
}
