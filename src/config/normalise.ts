/** Step 2d: a block's body with every default in place, and its leaves with what a change to each does. */
import type { SpecAttribute } from "../spec.ts";
import { canonicalJson, isSecret, type Value, type ValueObject } from "../value.ts";
import type { Block } from "./blocks.ts";
import { type DefaultContext, derivedDefault } from "./defaults.ts";
import { type BlockInfo, type BlockName, blockInfo, type FieldInfo } from "./fields.ts";
import { descend, plainOf, type Tree, textOf } from "./tree.ts";

export interface Normalised {
  readonly body: ValueObject;
  readonly attributes: ReadonlyMap<string, SpecAttribute>;
}

type MutableBody = { [key: string]: Value };

/** A block's fields as they nest: what is walked for every block. */
interface Step {
  readonly field: FieldInfo;
  readonly key: string;
  /** What stands for the default; shared by all blocks. */
  readonly default: SpecAttribute | undefined;
  /** Of a group. */
  readonly steps: readonly Step[];
  /** A group that is there even if nothing of it is written: nothing in it has to be. */
  readonly isFilled: boolean;
}

const plans = new Map<BlockName, readonly Step[]>();

function stepsOf(name: BlockName): readonly Step[] {
  let steps = plans.get(name);
  if (steps === undefined) {
    steps = buildSteps(blockInfo(name), "");
    plans.set(name, steps);
  }
  return steps;
}

function buildSteps(info: BlockInfo, prefix: string): Step[] {
  const here = info.fields.filter((f) => f.path.startsWith(prefix) && !f.path.slice(prefix.length).includes("."));
  return here.map((field) => {
    const steps = field.type === "group" ? buildSteps(info, `${field.path}.`) : [];
    const isOptional = !info.groups.some((g) => g.path === field.path && g.isRequired);
    return {
      field,
      key: field.path.slice(prefix.length),
      default:
        field.default === undefined
          ? undefined
          : Object.freeze({ value: Object.freeze(field.default), change: field.change ?? "none", isDefault: true }),
      steps,
      isFilled: field.type === "group" && isOptional && steps.every((s) => !s.field.isRequired),
    };
  });
}

export function normalise(block: Block, context: DefaultContext): Normalised {
  const attributes = new Map<string, SpecAttribute>();
  const body = new Normaliser(block, context, attributes).group(block.tree, stepsOf(block.kind as BlockName));
  return { body, attributes };
}

class Normaliser {
  readonly #block: Block;
  readonly #context: DefaultContext;
  readonly #attributes: Map<string, SpecAttribute>;

  constructor(block: Block, context: DefaultContext, attributes: Map<string, SpecAttribute>) {
    this.#block = block;
    this.#context = context;
    this.#attributes = attributes;
  }

  group(tree: Tree | undefined, steps: readonly Step[]): ValueObject {
    const body: MutableBody = {};
    for (const step of steps) {
      const written = tree?.type === "map" ? tree.entries.get(step.key)?.value : undefined;
      const value = step.field.type === "group" ? this.#subgroup(step, written) : this.#leaf(step, written);
      if (value !== undefined) body[step.key] = value;
    }
    return Object.freeze(body);
  }

  #subgroup(step: Step, written: Tree | undefined): Value | undefined {
    const isThere = written !== undefined || (step.isFilled && this.#applies(step.field));
    return isThere ? this.group(written, step.steps) : undefined;
  }

  #leaf({ field, default: shared }: Step, written: Tree | undefined): Value | undefined {
    const { path, change = "none" } = field;
    if (written === undefined) {
      if (!this.#applies(field)) return undefined;
      const derived = shared === undefined ? derivedDefault(this.#block, path, this.#context) : undefined;
      const attribute = shared ?? (derived === undefined ? undefined : { value: derived, change, isDefault: true });
      if (attribute !== undefined && field.type !== "map") this.#attributes.set(path, attribute);
      return attribute?.value;
    }
    const value = freeze(plainOf(written) as Value);
    if (field.type === "map") this.#mapLeaves(path, value, change);
    else {
      const fallback = shared?.value ?? derivedDefault(this.#block, path, this.#context);
      this.#attributes.set(path, { value, change, isDefault: isSame(value, fallback) });
    }
    return value;
  }

  /** Leaves of a free map: every value that is not itself a map. */
  #mapLeaves(path: string, value: Value, change: SpecAttribute["change"]): void {
    if (typeof value !== "object" || value === null || Array.isArray(value) || isSecret(value)) {
      this.#attributes.set(path, { value, change, isDefault: false });
      return;
    }
    for (const [key, inner] of Object.entries(value as ValueObject)) this.#mapLeaves(`${path}.${key}`, inner, change);
  }

  /** Whether the field means something beside the block's backend or type; a default that does not is left out. */
  #applies({ when }: FieldInfo): boolean {
    const value = when && textOf(descend(this.#block.tree, when.path));
    return when === undefined || (value !== undefined && when.values.includes(value));
  }
}

function isSame(value: Value, fallback: unknown): boolean {
  return (
    value === fallback ||
    (typeof value === "object" && fallback !== undefined && canonicalJson(value) === canonicalJson(fallback))
  );
}

function freeze(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) freeze(inner as Value);
  return Object.freeze(value);
}
