/** Secrets that stand in a spec in the open: reported by a rule, and never printed by any diagnostic of their line. */
import { credentialInField } from "../url.ts";
import { type Block, blocksOf } from "./blocks.ts";
import { type BlockName, blockInfo } from "./fields.ts";
import { child, descend, entriesOf, type MapTree, type Tree, textOf } from "./tree.ts";

/** The values of a block's secret fields. */
export function secretValues(block: Block): readonly { readonly path: string; readonly tree: Tree }[] {
  return blockInfo(block.kind as BlockName).fields.flatMap(({ isSecret, path }) => {
    const tree = isSecret ? descend(block.tree, path) : undefined;
    return tree === undefined ? [] : [{ path, tree }];
  });
}

/** A place in a block whose addresses hold a secret: which, in words. */
interface Credential {
  readonly path: string;
  readonly tree: Tree;
  readonly what: string;
}

/** All texts of a block that are addresses with a secret in them, whatever the field. */
export function addressesWithCredentials(block: Block): readonly Credential[] {
  const found: Credential[] = [];
  const walk = (tree: Tree, path: string, isWord: boolean): void => {
    if (tree.type === "map")
      for (const [key, { value }] of tree.entries) walk(value, path === "" ? key : `${path}.${key}`, false);
    else if (tree.type === "list")
      for (const [at, item] of tree.items.entries()) walk(item, `${path}.${at}`, item.type === "scalar");
    else {
      const what = credentialInField(textOf(tree) ?? "", isWord);
      if (what !== undefined) found.push({ path, tree, what });
    }
  };
  walk(block.tree, "", false);
  return found;
}

/**
 * Hides values of secret fields that are no references, and addresses with secrets, also where a variable keeps them; to be done before
 * variables are filled in.
 */
export function hideSecrets(root: MapTree): void {
  for (const block of blocksOf(root).values())
    for (const { tree } of [...secretValues(block), ...addressesWithCredentials(block)]) hide(tree);
  for (const { value } of entriesOf(child(root, "variables")).values()) {
    const fallback = child(value, "default");
    if (fallback && credentialInField(textOf(fallback) ?? "", false)) hide(fallback);
  }
}

function hide({ source, span }: Tree): void {
  if (!source.text.slice(span.start, span.end).includes("${")) source.hide(span);
}
