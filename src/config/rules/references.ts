/** References between blocks: that they exist, that a run has a server, and that `from` leads somewhere and not in circles. */
import { addressOf, BLOCK_KEYS, type KindName } from "../../address.ts";
import type { Reference } from "../../spec.ts";
import { listNames } from "../../suggest.ts";
import type { Block } from "../blocks.ts";
import { derivedDefault, serverOf } from "../defaults.ts";
import { type BlockName, blockInfo, fieldAt } from "../fields.ts";
import { child, descend, textOf } from "../tree.ts";
import type { RuleContext } from "./rule.ts";

/** Types that a run may name without declaring a loss. */
const LOSS_TYPES: ReadonlySet<string> = new Set(fieldAt("loss", "type")?.values?.map(String));

/** `warmup@40` → the name and what follows it. */
function splitSelector(text: string): { readonly name: string; readonly selector?: string } {
  const at = text.indexOf("@");
  return at < 0 ? { name: text } : { name: text.slice(0, at), selector: text.slice(at + 1) };
}

/** All references of a block. Those to nothing are reported and left out. */
export function referencesOf(block: Block, context: RuleContext): Reference[] {
  const references: Reference[] = [];
  for (const field of blockInfo(block.kind as BlockName).fields) {
    if (field.ref === undefined) continue;
    for (const { path, text } of namesAt(block, field.path, context)) {
      const reference = resolve(block, path, field.ref, text, context);
      if (reference !== undefined) references.push(reference);
    }
  }
  return [...references, ...derivedReferences(block, context)];
}

/** What a block needs that follows from what it names. */
function derivedReferences(block: Block, context: RuleContext): readonly Reference[] {
  if (block.kind === "run") return watchedReferences(block, context);
  // A checkpoint is sampled where it was made.
  const run = block.kind === "eval" ? checkpointOf(block, context) : undefined;
  const server = run && serverOf(run, context);
  return server ? [{ path: "server", to: server.address }] : [];
}

/** The run whose checkpoint an eval measures. */
function checkpointOf(block: Block, context: RuleContext): Block | undefined {
  const text = textOf(child(block.tree, "checkpoint"));
  return text === undefined ? undefined : context.ofKind("run").get(splitSelector(text).name);
}

/** What is written at a reference field, which may be a list. */
function namesAt(block: Block, path: string, context: RuleContext): readonly { path: string; text: string }[] {
  const tree = descend(block.tree, path);
  if (tree?.type === "list")
    return tree.items.flatMap((item, i) => {
      const text = textOf(item);
      return text === undefined ? [] : [{ path: `${path}.${i}`, text }];
    });
  const text = textOf(tree) ?? (block.kind === "run" && path === "server" ? context.onlyServer : undefined);
  return text === undefined ? [] : [{ path, text }];
}

/**
 * Evals with `every` also measure the run while it trains, so that it needs their environments. The eval itself comes after the
 * run, which is why the run does not refer to it.
 */
function watchedReferences(run: Block, context: RuleContext): readonly Reference[] {
  return [...context.ofKind("eval").values()].flatMap((block) => {
    const environment = textOf(child(block.tree, "environment"));
    if (!watches(block, run) || environment === undefined || !context.ofKind("environment").has(environment)) return [];
    return [{ path: `evals.${block.name}`, to: addressOf("environment", environment) }];
  });
}

/** Whether an eval is also made while the run trains. */
function watches(block: Block, run: Block): boolean {
  const checkpoint = textOf(child(block.tree, "checkpoint"));
  return checkpoint !== undefined && splitSelector(checkpoint).name === run.name && (numberAt(block, "every") ?? 0) > 0;
}

function resolve(
  block: Block,
  path: string,
  kind: KindName,
  text: string,
  context: RuleContext,
): Reference | undefined {
  const { name, selector } = kind === "run" ? splitSelector(text) : { name: text, selector: undefined };
  const known = context.ofKind(kind);
  if (known.has(name)) return { path, to: addressOf(kind, name), ...(selector === undefined ? {} : { selector }) };
  if (kind === "loss" && LOSS_TYPES.has(name)) return undefined;
  const candidates = kind === "loss" ? [...known.keys(), ...LOSS_TYPES] : known.keys();
  const exists =
    known.size === 0
      ? ` The spec has no \`${BLOCK_KEYS[kind]}\`.`
      : ` It has ${listNames([...known.keys()].filter((n) => n !== block.name || kind !== block.kind)) || "no other"}.`;
  const detail = `There is no ${kind} \`${name}\`.${context.reporter.didYouMean(name, candidates) || exists}`;
  context.reporter.at(block, path, "RL1201", detail);
  return undefined;
}

export function runHasServer(block: Block, context: RuleContext): void {
  if (block.kind !== "run" || child(block.tree, "server") !== undefined || context.onlyServer !== undefined) return;
  const servers = context.ofKind("server");
  const detail =
    servers.size === 0
      ? "The spec has no server for this run. Declare one: `server: { backend: embedded, model: builtin:tiny }`."
      : `The spec has several servers: ${listNames(servers.keys())}. Say with \`server:\` which of them trains this run.`;
  context.reporter.atKey(block, "", "RL1202", detail);
}

/** The run that a run starts from, if that exists. */
function parentOf(run: Block, context: RuleContext): Block | undefined {
  const text = textOf(child(run.tree, "from"));
  return text === undefined ? undefined : context.blocks.get(addressOf("run", splitSelector(text).name));
}

/** A run has one parent at most, so every circle is found by following parents; each is reported once. */
export function fromHasNoCycle(context: RuleContext): void {
  const done = new Set<Block>();
  for (const run of context.ofKind("run").values()) {
    const trail: Block[] = [];
    const onTrail = new Set<Block>();
    let at: Block | undefined = run;
    for (; at !== undefined && !done.has(at) && !onTrail.has(at); at = parentOf(at, context)) {
      trail.push(at);
      onTrail.add(at);
    }
    if (at !== undefined && onTrail.has(at)) reportCycle(trail.slice(trail.indexOf(at)), context);
    for (const block of trail) done.add(block);
  }
}

/** More names than this say no more. */
const MOST_NAMED = 12;

function reportCycle(cycle: readonly Block[], context: RuleContext): void {
  const first = cycle[0]!;
  const names = [...cycle, first].map((b) => `\`${b.name}\``);
  const shown = names.length > MOST_NAMED ? [...names.slice(0, MOST_NAMED), "…"] : names;
  const detail =
    cycle.length === 1
      ? `\`${first.name}\` starts from itself. To train it further, raise its \`steps\` or \`epochs\`.`
      : `Runs start from each other in a circle: ${shown.join(" from ")}. Remove one \`from\`.`;
  context.reporter.at(first, "from", "RL2001", detail);
}

/** Fields that name a checkpoint of a run. */
const CHECKPOINTS = ["from", "kl_reference", "checkpoint"] as const;

/** `@best` needs something that tells which it is. */
export function bestIsJudged(block: Block, context: RuleContext): void {
  for (const field of CHECKPOINTS) {
    const { name, selector } = splitSelector(textOf(child(block.tree, field)) ?? "");
    const run = context.blocks.get(addressOf("run", name));
    if (selector !== "best" || run === undefined || run === block || context.isFaulty(run)) continue;
    if (!isJudged(run, context)) context.reporter.at(block, field, "RL1206", bestOf(run));
  }
}

/** `from` must name a checkpoint that will exist, of the same base model. */
export function checkpointFits(block: Block, context: RuleContext): void {
  if (block.kind !== "run") return;
  const parent = parentOf(block, context);
  if (parent === undefined || parent === block || context.isFaulty(parent)) return;
  const { selector } = splitSelector(textOf(child(block.tree, "from")) ?? "");
  const steps = numberAt(parent, "steps");
  if (selector !== undefined && steps !== undefined && Number(selector) > steps)
    context.reporter.at(
      block,
      "from",
      "RL1206",
      `Run \`${parent.name}\` ends at step ${steps}, before step ${selector}.`,
    );
  const own = textOf(child(serverOf(block, context)?.tree, "model"));
  const theirs = textOf(child(serverOf(parent, context)?.tree, "model"));
  if (own !== undefined && theirs !== undefined && own !== theirs)
    context.reporter.at(
      block,
      "from",
      "RL1206",
      `Run \`${parent.name}\` trains \`${theirs}\`, this run's server has \`${own}\`: its weights do not fit.`,
    );
  const [rank, theirRank] = [rankOf(block, context), rankOf(parent, context)];
  if (own === theirs && rank !== undefined && theirRank !== undefined && rank !== theirRank)
    context.reporter.at(
      block,
      "from",
      "RL1206",
      `Run \`${parent.name}\` trains ${rankWords(theirRank)}, this run ${rankWords(rank)}: its weights do not fit. Give both the same \`lora_rank\`.`,
    );
}

/** What a run trains, as written or by default. */
function rankOf(run: Block, context: RuleContext): number | undefined {
  const fallback = derivedDefault(run, "lora_rank", context);
  return numberAt(run, "lora_rank") ?? (typeof fallback === "number" ? fallback : undefined);
}

function rankWords(rank: number): string {
  return rank === 0 ? "all weights" : `an adapter of rank ${rank}`;
}

/** Whether the run is measured as it trains, so that one of its checkpoints is the best. */
function isJudged(run: Block, context: RuleContext): boolean {
  if (textOf(child(run.tree, "type")) !== "rl") return (numberAt(run, "test_size") ?? 0) > 0;
  return [...context.ofKind("eval").values()].some((block) => watches(block, run));
}

function bestOf(run: Block): string {
  return textOf(child(run.tree, "type")) === "rl"
    ? `\`@best\` is the step with the best reward of an eval, but no eval looks on while run \`${run.name}\` trains. Give one of its evals \`every\`, or leave \`@best\` out.`
    : `\`@best\` is the step with the best held-out loss, but run \`${run.name}\` holds out no rows. Give it \`test_size\`, or leave \`@best\` out.`;
}

function numberAt(block: Block, key: string): number | undefined {
  const tree = child(block.tree, key);
  return tree?.type === "scalar" && typeof tree.value === "number" ? tree.value : undefined;
}

/** What each type of run learns from. */
const MATTER: Readonly<Record<string, "dataset" | "environment">> = { sl: "dataset", rl: "environment" };

export function trainsOnSomething(block: Block, context: RuleContext): void {
  const field = block.kind === "run" ? MATTER[textOf(child(block.tree, "type")) ?? ""] : undefined;
  if (field === undefined || child(block.tree, field) !== undefined) return;
  const known = listNames(context.ofKind(field).keys());
  const hint =
    known === "" ? `Declare one under \`${BLOCK_KEYS[field]}:\` and name it here.` : `The spec has ${known}.`;
  context.reporter.atKey(block, "", "RL1106", `This run needs \`${field}\`, which it learns from. ${hint}`);
}
