/**
 * A spec made small: the same blocks with the same references, graders, prompts and losses, on the embedded server's tiny model and
 * for two steps. Whatever is wrong with how they fit together shows in a minute.
 */
import type { Address } from "../address.ts";
import type { Reference, Spec, SpecAttribute, SpecNode } from "../spec.ts";
import type { Value, ValueObject } from "../value.ts";
import { numberAt, stringAt } from "./attributes.ts";

/** Rows of a dataset that are read. */
export const SMOKE_ROWS = 8;
const STEPS = 2;
const ANSWER_TOKENS = 16;
/** A tiny model reads bytes: enough for most prompts, and little work. */
const ROW_TOKENS = 1024;

type Changes = Readonly<Record<string, Value | undefined>>;

/** The small spec. `model`: the folder of a tiny model that takes long prompts. Blocks of `without`, and what needs them, are left out. */
export function smokeSpec(spec: Spec, model: string, without: ReadonlySet<Address>): Spec {
  const left = leftOut(spec, without);
  const nodes = new Map<Address, SpecNode>();
  for (const [address, node] of spec.nodes) {
    if (!left.has(address)) nodes.set(address, new SmallNode(node, changesOf(node, model)));
  }
  return { ...spec, nodes };
}

/** Blocks that need one of `without`, directly or not, and those themselves. */
export function leftOut(spec: Spec, without: ReadonlySet<Address>): ReadonlySet<Address> {
  const left = new Set(without);
  for (let grew = true; grew; ) {
    grew = false;
    for (const [address, node] of spec.nodes) {
      if (left.has(address) || !node.references.some(({ to }) => left.has(to))) continue;
      left.add(address);
      grew = true;
    }
  }
  return left;
}

function changesOf(node: SpecNode, model: string): Changes {
  const atMost = (path: string, most: number): number | undefined => {
    const value = numberAt(node, path);
    return value === undefined ? undefined : Math.min(value, most);
  };
  switch (node.kind) {
    case "server":
      return {
        ...Object.fromEntries(OF_REAL_SERVERS.map((path) => [path, undefined])),
        ...Object.fromEntries([...node.attributes.keys()].filter(isBackendConfig).map((path) => [path, undefined])),
        backend: "embedded",
        model,
        port: 0,
        idle_timeout: "60s",
        slots: 8,
      };
    case "run":
      return { ...runChanges(node, atMost), ...withoutSelectors(node, "from", "kl_reference") };
    case "eval":
      return {
        ...withoutSelectors(node, "checkpoint"),
        ...Object.fromEntries([...node.attributes.keys()].filter(isThreshold).map((path) => [path, undefined])),
        metrics: {},
        tasks: Math.min(numberAt(node, "tasks") ?? STEPS, STEPS),
        samples: atMost("samples", STEPS),
        max_tokens: atMost("max_tokens", ANSWER_TOKENS),
        ...(numberAt(node, "every") === 0 ? {} : { every: 1 }),
      };
    case "environment":
      // Answers of a tiny model end at a limit, and would never come to a container: here each is judged by the task's tests.
      return stringAt(node, "type") === "harbor" ? { on_limit: "grade" } : {};
    case "deployment":
      return withoutSelectors(node, "checkpoint");
    default:
      return {};
  }
}

const OF_REAL_SERVERS = [
  "gpus",
  "nodes",
  "tensor_parallel",
  "max_model_len",
  "host",
  "url",
  "api_key",
  "price_per_gpu_hour",
  "backend_config",
];

const isBackendConfig = (path: string): boolean => path.startsWith("backend_config.");
const isThreshold = (path: string): boolean => path.startsWith("metrics.");

function runChanges(node: SpecNode, atMost: (path: string, most: number) => number | undefined): Changes {
  const shared = {
    epochs: undefined,
    steps: STEPS,
    lora_rank: atMost("lora_rank", 4),
    save_every: 1,
    "schedule.horizon.steps": undefined,
    "schedule.horizon.epochs": undefined,
  };
  if (stringAt(node, "type") !== "rl") {
    const held = numberAt(node, "test_size") ?? 0;
    return {
      ...shared,
      batch_size: atMost("batch_size", 2),
      batch_tokens: undefined,
      max_length: atMost("max_length", ROW_TOKENS),
      test_size: Math.min(held, 2),
      eval_every: held > 0 ? 1 : 0,
    };
  }
  return {
    ...shared,
    group_size: 2,
    groups_per_batch: 2,
    substeps: atMost("substeps", 2),
    minibatches: atMost("minibatches", 2),
    max_tokens: atMost("max_tokens", ANSWER_TOKENS),
    min_group_size: 1,
    // A single fault is what this is here to find.
    max_failure_rate: 0,
    "early_stop.target": undefined,
    "early_stop.collapse": undefined,
  };
}

/** A step that was named will not be reached: the end of the small run stands for it. */
function withoutSelectors(node: SpecNode, ...paths: readonly string[]): Changes {
  const changes: Record<string, Value> = {};
  for (const path of paths) {
    const text = stringAt(node, path);
    if (text?.includes("@")) changes[path] = text.slice(0, text.indexOf("@"));
  }
  return changes;
}

/** A block with some of its values replaced; where it stands in the file stays. */
class SmallNode implements SpecNode {
  readonly address: SpecNode["address"];
  readonly kind: SpecNode["kind"];
  readonly name: string;
  readonly body: ValueObject;
  readonly attributes: ReadonlyMap<string, SpecAttribute>;
  readonly references: readonly Reference[];
  readonly range: SpecNode["range"];
  readonly #node: SpecNode;

  constructor(node: SpecNode, changes: Changes) {
    this.#node = node;
    this.address = node.address;
    this.kind = node.kind;
    this.name = node.name;
    this.range = node.range;
    this.body = changedBody(node.body, changes);
    this.attributes = changedAttributes(node.attributes, changes);
    this.references = node.references.map(({ path, to }) => ({ path, to }));
  }

  rangeOf(path: string) {
    return this.#node.rangeOf(path);
  }

  lineOf(range: SpecNode["range"]) {
    return this.#node.lineOf(range);
  }
}

function changedAttributes(
  attributes: ReadonlyMap<string, SpecAttribute>,
  changes: Changes,
): ReadonlyMap<string, SpecAttribute> {
  const changed = new Map(attributes);
  for (const [path, value] of Object.entries(changes)) {
    const change = attributes.get(path)?.change ?? "none";
    if (value === undefined) changed.delete(path);
    else if (typeof value !== "object") changed.set(path, { value, change, isDefault: false });
  }
  return changed;
}

function changedBody(body: ValueObject, changes: Changes): ValueObject {
  const copy = structuredClone(body) as Record<string, Value>;
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split(".");
    const last = keys.pop() as string;
    let at: Record<string, Value> | undefined = copy;
    for (const key of keys) at = at?.[key] as Record<string, Value> | undefined;
    if (at === undefined) continue;
    if (value === undefined) delete at[last];
    else at[last] = value;
  }
  return copy;
}
