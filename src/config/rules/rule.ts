/** Step 3: what a schema cannot say. A rule is a small function over one context; it reports and returns nothing. */
import type { Address, KindName } from "../../address.ts";
import type { Block, Reporter } from "../blocks.ts";
import type { DefaultContext } from "../defaults.ts";

export interface RuleContext extends DefaultContext {
  readonly blocks: ReadonlyMap<Address, Block>;
  /** Blocks of a kind by name, whole or faulty: a reference to a faulty block is still a good reference. */
  ofKind(kind: KindName): ReadonlyMap<string, Block>;
  /** Not all fields of the block are known, which is reported already: rules that judge its values skip it. */
  isFaulty(block: Block): boolean;
  readonly reporter: Reporter;
}

/** Judges one block. */
export type BlockRule = (block: Block, context: RuleContext) => void;
