/** `losses:` — a loss and its options. It has no life of its own: runs inline it, so a change to it is a change to them. */
import type { Kind } from "../kind.ts";
import { plainIdentity, ruleOf } from "./attributes.ts";

export const lossKind: Kind<undefined, undefined> = {
  name: "loss",
  isInline: true,
  removal: "forget",
  ruleOf: (path) => ruleOf("loss", path),
  read: async () => ({ status: "present", seen: undefined, drift: [] }),
  identify: ({ node }) => plainIdentity(node),
  act: async () => ({ status: "done", record: "removed" }),
};
