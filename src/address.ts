/**
 * Addresses: how everything in a spec is named. `run.agent` is the block `agent` under `runs:`; the single-server
 * shorthand `server:` is `server.default`. An address is a plain string everywhere, so that it can be a key.
 */

/** The block kinds of a spec, in the order in which they are listed to a reader. */
export const KINDS = ["server", "dataset", "loss", "environment", "run", "eval", "deployment"] as const;
export type KindName = (typeof KINDS)[number];

/** `kind.name`, e.g. `run.agent`. */
export type Address = `${KindName}.${string}`;

/** The plural key of the spec that holds a kind's blocks: `run` → `runs`. */
export const BLOCK_KEYS: Readonly<Record<KindName, string>> = {
  server: "servers",
  dataset: "datasets",
  loss: "losses",
  environment: "environments",
  run: "runs",
  eval: "evals",
  deployment: "deployments",
};

/** What a name may look like: it becomes a folder name, a checkpoint name and a metric label. */
const NAME_PATTERN = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;

export function addressOf(kind: KindName, name: string): Address {
  return `${kind}.${name}`;
}

/** Splits an address; undefined if the text is not one. */
export function parseAddress(text: string): { kind: KindName; name: string } | undefined {
  const dot = text.indexOf(".");
  const kind = text.slice(0, dot) as KindName;
  const name = text.slice(dot + 1);
  return dot > 0 && KINDS.includes(kind) && NAME_PATTERN.test(name) ? { kind, name } : undefined;
}

export function kindOf(address: Address): KindName {
  return address.slice(0, address.indexOf(".")) as KindName;
}

export function nameOf(address: Address): string {
  return address.slice(address.indexOf(".") + 1);
}
