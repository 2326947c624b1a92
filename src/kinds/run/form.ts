/** In which form servers keep checkpoints, and between which of them a checkpoint can go. */
import type { Address } from "../../address.ts";
import type { SpecNode } from "../../spec.ts";
import { stringAt } from "../attributes.ts";
import { isRemote } from "../skyrl.ts";

/** The form in which a server keeps checkpoints, where rlcli has them as files here and knows that they are whole. */
export type CheckpointForm = "embedded" | "jax";

export function checkpointForm(node: SpecNode | undefined): CheckpointForm | undefined {
  const backend = node && stringAt(node, "backend");
  if (backend === "embedded") return backend;
  return backend === "jax" && !isRemote(stringAt(node as SpecNode, "host")) ? backend : undefined;
}

/** Why `to` cannot take over checkpoints that `from` keeps in the given form; undefined where it can, or has them already. */
export function whyNotMovable(from: Address, form: CheckpointForm | undefined, to: SpecNode): string | undefined {
  if (from === to.address || (form !== undefined && form === checkpointForm(to))) return undefined;
  const own = checkpointForm(to);
  if (form !== undefined && own !== undefined)
    return `${from} keeps them in the form of ${form}, ${to.address} in that of ${own}`;
  const other = form === undefined ? from : to.address;
  return `${other} is not in the spec, or keeps checkpoints in a form or a place that rlcli cannot take them from or bring them to (it can between embedded servers, and between jax servers, on this machine)`;
}
