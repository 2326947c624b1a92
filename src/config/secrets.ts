/** Secrets that stand in a spec in the open: reported by a rule, and never printed by any diagnostic of their line. */
import { type Block, blocksOf } from "./blocks.ts";
import { type BlockName, blockInfo } from "./fields.ts";
import { descend, type MapTree, type Tree, textOf } from "./tree.ts";

/** The values of a block's secret fields. */
export function secretValues(block: Block): readonly { readonly path: string; readonly tree: Tree }[] {
  return blockInfo(block.kind as BlockName).fields.flatMap(({ isSecret, path }) => {
    const tree = isSecret ? descend(block.tree, path) : undefined;
    return tree === undefined ? [] : [{ path, tree }];
  });
}

/** `https://user:password@host`. */
const HAS_CREDENTIALS = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]*@/i;

/** Whether an address holds a user's name or a password. */
export const hasCredentials = (address: string): boolean => HAS_CREDENTIALS.test(address);

/** Addresses of a block, also of an environment's parts, that hold a user's name or a password. */
export function addressesWithCredentials(block: Block): readonly { readonly path: string; readonly tree: Tree }[] {
  const parts = descend(block.tree, "parts");
  const paths = ["url", ...(parts?.type === "list" ? parts.items.map((_, i) => `parts.${i}.url`) : [])];
  return paths.flatMap((path) => {
    const tree = descend(block.tree, path);
    return tree && hasCredentials(textOf(tree) ?? "") ? [{ path, tree }] : [];
  });
}

/** Hides values of secret fields that are no references, and addresses with passwords; to be done before variables are filled in. */
export function hideSecrets(root: MapTree): void {
  for (const block of blocksOf(root).values())
    for (const { tree } of [...secretValues(block), ...addressesWithCredentials(block)]) {
      const written = tree.source.text.slice(tree.span.start, tree.span.end);
      if (!written.includes("${")) tree.source.hide(tree.span);
    }
}
