/**
 * What forward and forward_backward ask for, whichever encoding brought it, and the check that it can be carried out:
 * everything that could fail in the compute thread because of a request's content is refused here, naming datum and
 * field, before the request takes a place in a model's order.
 */
import type { LossDefinition } from "../../../losses/loss.ts";
import { LOSSES, lossNamed } from "../../../losses/registry.ts";
import type { ModelRole } from "../../checkpoints.ts";
import type { Datum } from "../batch.ts";
import type { ModelFacts } from "../messages.ts";
import type { LossCall } from "../trainer.ts";
import { invalid, refuse } from "./errors.ts";

/** A dense tensor, row-major. JSON may bring anything in `values`. */
export interface SentTensor {
  readonly values: ArrayLike<unknown>;
  readonly dtype: string | undefined;
  readonly shape: readonly number[] | undefined;
}

export interface SentDatum {
  readonly tokens: ArrayLike<unknown>;
  readonly tensors: Readonly<Record<string, SentTensor>>;
}

export interface SentPass {
  readonly loss: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly data: readonly SentDatum[];
  /** Where all this stands in the body. */
  readonly loc: readonly (string | number)[];
}

export interface PassRequest {
  readonly data: readonly Datum[];
  readonly loss: LossCall;
}

/** Loss inputs of the protocol; one that a loss does not read is allowed, a misspelt one is not. */
const INPUTS: ReadonlySet<string> = new Set([
  "target_tokens",
  ...LOSSES.flatMap(({ inputs }) => inputs.map(({ name }) => name)),
]);
/** Each target of a position costs a pass over the vocabulary. */
const MOST_WIDTH = 64;
/** Of options that the losses leave to the server. */
const OWN_DEFAULTS: Readonly<Record<string, number>> = { beta: 0.05 };

/** Throws HttpError 400 or 422. `role` is the model's; on a critic, `ppo` means its value loss. */
export function checkPass(sent: SentPass, facts: ModelFacts, role: ModelRole): PassRequest {
  const definition = checkLoss(sent, role);
  if (sent.data.length === 0) refuse(400, "`data` is empty: a pass needs at least one datum.");
  const loss = { name: definition.name, options: checkOptions(sent, definition) };
  return { loss, data: sent.data.map((datum, i) => checkDatum(datum, [...sent.loc, "data", i], i, definition, facts)) };
}

function checkLoss({ loss: name, loc }: SentPass, kind: ModelRole): LossDefinition {
  const found = lossNamed(kind === "critic" && name === "ppo" ? "ppo_critic" : name);
  if (found?.of === kind) return found;
  const usable = LOSSES.filter(({ of }) => of === kind).map((loss) => loss.name);
  return invalid([...loc, "loss_fn"], `A ${kind} on the embedded server has the losses ${usable.join(", ")}`, name);
}

function checkOptions({ config, loc }: SentPass, { name, options }: LossDefinition): Readonly<Record<string, number>> {
  const values: Record<string, number> = {};
  for (const option of options) values[option.name] = option.default ?? (OWN_DEFAULTS[option.name] as number);
  for (const [key, value] of Object.entries(config)) {
    const at = [...loc, "loss_fn_config", key];
    const option = options.find((one) => one.name === key);
    const allowed = options.map((one) => one.name);
    if (option === undefined)
      return invalid(
        at,
        `${name} takes ${allowed.length === 0 ? "no options" : `the options ${allowed.join(", ")}`}`,
        value,
      );
    if (typeof value !== "number" || !Number.isFinite(value))
      return invalid(at, "Input should be a finite number", value);
    if (value < (option.min ?? value) || value > (option.max ?? value))
      return invalid(at, `Input should be from ${option.min ?? "any"} to ${option.max ?? "any"}`, value);
    values[key] = value;
  }
  return values;
}

type Loc = SentPass["loc"];

function checkDatum(sent: SentDatum, loc: Loc, index: number, loss: LossDefinition, facts: ModelFacts): Datum {
  const length = sent.tokens.length;
  if (length === 0) refuse(400, `Datum ${index} has no tokens.`);
  if (length > facts.contextLength)
    refuse(400, `Datum ${index} has ${length} tokens; the model's context is ${facts.contextLength}.`);
  if (length > facts.mostTrainedTokens)
    refuse(400, `Datum ${index} has ${length} tokens; the embedded server has memory for ${facts.mostTrainedTokens}.`);
  const tokens = checkTokens(sent.tokens, [...loc, "model_input"], `Datum ${index}: input token`, facts.vocabSize);
  const inputs = [...loc, "loss_fn_inputs"];
  const unknown = Object.keys(sent.tensors).find((name) => !INPUTS.has(name));
  if (unknown !== undefined)
    invalid([...inputs, unknown], `Unknown loss input; known are ${[...INPUTS].join(", ")}`, "");
  const width = widthOf(sent.tensors.target_tokens, [...inputs, "target_tokens"], index, loss);
  const find = (name: string, dtype: string) => {
    const tensor = sent.tensors[name];
    if (tensor) checkTensor(tensor, name, dtype, [...inputs, name], { index, length, width });
    return tensor;
  };
  const targets = find("target_tokens", "int64");
  if (targets === undefined) return invalid([...inputs, "target_tokens"], `Datum ${index} has no target_tokens`);
  const tensors: Record<string, Float32Array> = {};
  for (const { name, required } of loss.inputs) {
    const tensor = find(name, "float32");
    if (tensor) tensors[name] = checkFloats(tensor.values, name, [...inputs, name, "data"], index);
    else if (required) refuse(400, `Datum ${index} has no ${name}, which ${loss.name} needs.`);
  }
  const what = `Datum ${index}: target_tokens`;
  return {
    tokens,
    targets: checkTokens(targets.values, [...inputs, "target_tokens", "data"], what, facts.vocabSize),
    tensors,
  };
}

/** Targets of one position: the second side of `target_tokens`. A linear loss alone knows what more than one mean. */
function widthOf(targets: SentTensor | undefined, loc: Loc, index: number, { name, isLinear }: LossDefinition): number {
  const width = targets?.shape?.[1] ?? 1;
  if (width > MOST_WIDTH)
    invalid([...loc, "shape"], `Datum ${index}: Input should have at most ${MOST_WIDTH} targets a position`, width);
  if (width > 1 && !isLinear) refuse(400, `Datum ${index} has ${width} targets a position; ${name} takes one.`);
  return Math.max(width, 1);
}

interface Place {
  readonly index: number;
  readonly length: number;
  readonly width: number;
}

function checkTensor(tensor: SentTensor, name: string, dtype: string, loc: Loc, { index, length, width }: Place): void {
  const { values, shape } = tensor;
  if (tensor.dtype !== undefined && tensor.dtype !== dtype)
    invalid([...loc, "dtype"], `Datum ${index}: ${name} should be ${dtype}`, tensor.dtype);
  const expected = width === 1 ? `[${length}]` : `[${length}, ${width}]`;
  const isShaped = shape === undefined || (shape[0] ?? 1) * (shape[1] ?? 1) === values.length;
  if (!isShaped || shape?.slice(2).some((side) => side !== 1))
    invalid([...loc, "shape"], `Datum ${index}: ${name} has shape [${shape?.join(", ")}] and ${values.length} values`);
  if (values.length !== length * width || (shape !== undefined && shape[0] !== length))
    refuse(400, `Datum ${index}: ${name} has ${values.length} values for ${length} tokens: it should be ${expected}.`);
}

/** Token ids from `least` to below `limit`; 422 for what is none. */
export function checkTokens(values: ArrayLike<unknown>, loc: Loc, what: string, limit: number, least = 0): Int32Array {
  const tokens = new Int32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!Number.isInteger(value) || (value as number) < least || (value as number) >= limit)
      invalid([...loc, i], `${what} ${i} should be a token id from ${least} to ${limit - 1}`, value);
    tokens[i] = value as number;
  }
  return tokens;
}

function checkFloats(values: ArrayLike<unknown>, name: string, loc: Loc, index: number): Float32Array {
  const floats = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== "number" || !Number.isFinite(value))
      invalid([...loc, i], `Datum ${index}: ${name} ${i} should be a finite number`, value);
    floats[i] = value as number;
    if (!Number.isFinite(floats[i])) refuse(400, `Datum ${index}: ${name} ${i} is beyond the range of float32.`);
  }
  return floats;
}
