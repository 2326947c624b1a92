/** Secrets that stand in a spec in the open: reported by a rule, and never printed by any diagnostic of their line. */
import { type Block, blocksOf } from "./blocks.ts";
import { type BlockName, blockInfo } from "./fields.ts";
import { descend, type MapTree, type Tree } from "./tree.ts";

/** The values of a block's secret fields. */
export function secretValues(block: Block): readonly { readonly path: string; readonly tree: Tree }[] {
  return blockInfo(block.kind as BlockName).fields.flatMap(({ isSecret, path }) => {
    const tree = isSecret ? descend(block.tree, path) : undefined;
    return tree === undefined ? [] : [{ path, tree }];
  });
}

/** Hides values of secret fields that are no references; to be done before variables are filled in. */
export function hideSecrets(root: MapTree): void {
  for (const block of blocksOf(root).values())
    for (const { tree } of secretValues(block)) {
      const written = tree.source.text.slice(tree.span.start, tree.span.end);
      if (!written.includes("${")) tree.source.hide(tree.span);
    }
}
