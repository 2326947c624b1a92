/**
 * Defaults that depend on something else than the field. Like those in the schema they are frozen for `rlcli: 1`: another
 * value here would retrain what exists.
 */
import { addressOf } from "../address.ts";
import type { Scalar } from "../value.ts";
import type { Block } from "./blocks.ts";
import type { BlockName } from "./fields.ts";
import { descend, textOf } from "./tree.ts";

export interface DefaultContext {
  readonly blocks: ReadonlyMap<string, Block>;
  /** The name of the spec's only server; undefined if there is none or there are several. */
  readonly onlyServer: string | undefined;
}

type DerivedDefault = (block: Block, context: DefaultContext) => Scalar | undefined;

/** The server that a run uses, or undefined if it cannot be told. */
export function serverOf(run: Block, context: DefaultContext): Block | undefined {
  const name = textOf(descend(run.tree, "server")) ?? context.onlyServer;
  return name === undefined ? undefined : context.blocks.get(addressOf("server", name));
}

const isEmbedded = (block: Block): boolean => textOf(descend(block.tree, "backend")) === "embedded";

const GPU_BACKENDS = ["fsdp", "megatron"];
/** Models at once; fsdp holds one, and has no such setting. */
const SLOTS: Readonly<Record<string, number>> = { embedded: 8, jax: 31, megatron: 1, external: 1 };

const isOf = (block: Block, type: string): boolean => textOf(descend(block.tree, "type")) === type;

/** Whether an environment takes its tasks from the dataset. */
function holdsTasks(dataset: Block, { blocks }: DefaultContext): boolean {
  for (const { kind, tree } of blocks.values()) {
    if (kind === "environment" && textOf(descend(tree, "dataset")) === dataset.name) return true;
  }
  return false;
}

const DERIVED: Partial<Record<BlockName, Readonly<Record<string, DerivedDefault>>>> = {
  server: {
    port: (block) => (isEmbedded(block) ? 0 : 8000),
    slots: (block) => SLOTS[textOf(descend(block.tree, "backend")) ?? ""],
    gpus: (block) => (GPU_BACKENDS.includes(textOf(descend(block.tree, "backend")) ?? "") ? 1 : undefined),
  },
  dataset: {
    rows: (block, context) => (holdsTasks(block, context) ? "tasks" : "conversations"),
  },
  run: {
    server: (_, context) => context.onlyServer,
    loss: (block) => (isOf(block, "rl") ? "importance_sampling" : "cross_entropy"),
    normalize: (block) => (isOf(block, "rl") ? "sequence" : "token"),
    epochs: (block) => (descend(block.tree, "steps") === undefined ? 1 : undefined),
    // The built-in models are small enough to train whole; on anything else that would be a costly surprise.
    lora_rank: (block, context) => {
      const model = textOf(descend(serverOf(block, context)?.tree, "model"));
      return model?.startsWith("builtin:") ? 0 : 32;
    },
  },
};

export function derivedDefault(block: Block, path: string, context: DefaultContext): Scalar | undefined {
  return DERIVED[block.kind as BlockName]?.[path]?.(block, context);
}
