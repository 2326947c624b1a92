/**
 * From JSON bodies to requests. Everything that could fail in the compute thread because of a request's content is
 * checked here, so that a bad datum is refused before it takes a place in a model's order.
 */
import type { Datum } from "../batch.ts";
import { findLoss, LOSSES } from "../losses.ts";
import type { ModelFacts } from "../messages.ts";
import type { SampleRequest } from "../sampler.ts";
import { ADAM_DEFAULTS, type AdamParams, type LossCall } from "../trainer.ts";
import { refuse } from "./errors.ts";
import { Fields } from "./fields.ts";

/** Loss inputs of the protocol; one that a loss does not read is allowed, a misspelt one is not. */
const LOSS_INPUTS = ["target_tokens", "weights", "logprobs", "advantages", "values", "returns"];

export interface PassRequest {
  readonly data: readonly Datum[];
  readonly loss: LossCall;
}

/** `forward_input` or `forward_backward_input`. */
export function readPass(input: Fields, facts: ModelFacts): PassRequest {
  const loss = readLoss(input);
  const data = input.objects("data").map((datum, i) => readDatum(datum, i, loss, facts));
  if (data.length === 0) refuse(400, "`data` is empty: a pass needs at least one datum.");
  return { data, loss };
}

function readLoss(input: Fields): LossCall {
  const name = input.string("loss_fn");
  const loss = findLoss(name);
  if (loss === undefined)
    input.reject("loss_fn", `The embedded server has the losses ${Object.keys(LOSSES).join(", ")}`);
  const config = input.optionalObject("loss_fn_config");
  const options: Record<string, number> = { ...loss.options };
  for (const key of config?.keys() ?? []) {
    const allowed = Object.keys(loss.options);
    if (!allowed.includes(key))
      config?.reject(key, `${name} takes ${allowed.length === 0 ? "no options" : `the options ${allowed.join(", ")}`}`);
    options[key] = (config as Fields).number(key);
  }
  return { name, options };
}

function readDatum(datum: Fields, index: number, loss: LossCall, facts: ModelFacts): Datum {
  const tokens = readModelInput(datum.object("model_input"), facts);
  const length = tokens.length;
  if (length === 0) refuse(400, `Datum ${index} has no tokens.`);
  if (length > facts.contextLength)
    refuse(400, `Datum ${index} has ${length} tokens; the model's context is ${facts.contextLength}.`);
  if (length > facts.mostTrainedTokens)
    refuse(400, `Datum ${index} has ${length} tokens; the embedded server has memory for ${facts.mostTrainedTokens}.`);
  const inputs = datum.object("loss_fn_inputs");
  const unknown = inputs.keys().find((name) => !LOSS_INPUTS.includes(name));
  if (unknown !== undefined) inputs.reject(unknown, `Unknown loss input; known are ${LOSS_INPUTS.join(", ")}`);
  const checkLength = (name: string, found: number) => {
    if (found !== length) refuse(400, `Datum ${index}: ${name} has ${found} values for ${length} tokens.`);
  };
  const targets = readTensor(inputs, "target_tokens").tokens("data", facts.vocabSize);
  checkLength("target_tokens", targets.length);
  const tensors: Record<string, Float32Array> = {};
  for (const [name, { fallback }] of Object.entries(findLoss(loss.name)?.inputs ?? {})) {
    if (!inputs.has(name) && fallback === undefined)
      refuse(400, `Datum ${index} has no ${name}, which ${loss.name} needs.`);
    const values = inputs.has(name) ? Float32Array.from(readTensor(inputs, name).finiteNumbers("data")) : undefined;
    if (values) checkLength(name, values.length);
    tensors[name] = values ?? new Float32Array(length).fill(fallback ?? 0);
    if (!tensors[name]?.every(Number.isFinite)) refuse(400, `Datum ${index}: ${name} is beyond the range of float32.`);
  }
  return { tokens: Int32Array.from(tokens), targets: Int32Array.from(targets), tensors };
}

/** TensorData: dense, one value per position. */
function readTensor(inputs: Fields, name: string): Fields {
  const tensor = inputs.object(name);
  if (tensor.has("sparse_crow_indices") || tensor.has("sparse_col_indices"))
    inputs.reject(name, "Sparse tensors are not supported by this version of the embedded server");
  const dtype = tensor.optionalString("dtype");
  const expected = name === "target_tokens" ? "int64" : "float32";
  if (dtype !== undefined && dtype !== expected) tensor.reject("dtype", `${name} should be ${expected}`);
  if (tensor.has("shape")) {
    const shape = tensor.finiteNumbers("shape");
    const count = tensor.array("data").length;
    if (shape.length !== 1 || shape[0] !== count)
      tensor.reject("shape", `Shape should be [${count}]: one value per position`);
  }
  return tensor;
}

/** The tokens of all chunks, in a row. */
export function readModelInput(input: Fields, facts: ModelFacts): number[] {
  const tokens: number[] = [];
  for (const chunk of input.objects("chunks")) {
    const type = chunk.optionalString("type") ?? "encoded_text";
    if (type !== "encoded_text") chunk.reject("type", "The embedded server takes encoded_text chunks only");
    for (const token of chunk.tokens("tokens", facts.vocabSize)) tokens.push(token);
  }
  return tokens;
}

export function readAdam(body: Fields): AdamParams {
  if (body.has("optimizer_params") && !body.has("adam_params"))
    body.reject("optimizer_params", "The embedded server has AdamW only: send `adam_params`");
  const given = body.optionalObject("adam_params");
  const read = (key: string, fallback: number, isAllowed: (value: number) => boolean, range: string): number => {
    const value = given?.optionalNumber(key) ?? fallback;
    if (!isAllowed(value)) given?.reject(key, `Input should be ${range}`);
    return value;
  };
  const atLeastZero = (value: number) => value >= 0;
  const belowOne = (value: number) => value >= 0 && value < 1;
  return {
    learningRate: read("learning_rate", ADAM_DEFAULTS.learningRate, atLeastZero, "at least 0"),
    beta1: read("beta1", ADAM_DEFAULTS.beta1, belowOne, "at least 0 and below 1"),
    beta2: read("beta2", ADAM_DEFAULTS.beta2, belowOne, "at least 0 and below 1"),
    eps: read("eps", ADAM_DEFAULTS.eps, (value) => value > 0, "above 0"),
    weightDecay: read("weight_decay", ADAM_DEFAULTS.weightDecay, atLeastZero, "at least 0"),
    gradClipNorm: read("grad_clip_norm", ADAM_DEFAULTS.gradClipNorm, atLeastZero, "at least 0 (0 is off)"),
  };
}

/** Sampling features of later SDKs that would change the answer: refused rather than ignored. */
const UNSUPPORTED_SAMPLING = [
  "topk_sample_logprobs",
  "prompt_alt_tokens_k",
  "target_prompt_logprobs",
  "prompt_logprobs_last_n",
  "record_stability_info",
];

/** Of one request: beyond it, the answer alone would fill the memory. */
const MOST_SAMPLES = 4096;

/** `randomSeed` stands in where the request has none. */
export function readSample(body: Fields, facts: ModelFacts, randomSeed: () => number): SampleRequest {
  for (const key of UNSUPPORTED_SAMPLING)
    if (body.raw(key)) refuse(400, `${key} is not supported by the embedded server.`);
  const prompt = readModelInput(body.object("prompt"), facts);
  if (prompt.length === 0) refuse(400, "The prompt is empty.");
  const room = facts.contextLength - prompt.length;
  if (room < 1) refuse(400, `The prompt has ${prompt.length} tokens; the model's context is ${facts.contextLength}.`);
  const params = body.optionalObject("sampling_params") ?? new Fields({}, body.loc("sampling_params"));
  const samples = body.optionalInteger("num_samples", 1) ?? 1;
  if (samples > MOST_SAMPLES) body.reject("num_samples", `Input should be at most ${MOST_SAMPLES}`);
  const maxTokens = params.optionalInteger("max_tokens", 1) ?? room;
  const temperature = params.optionalNumber("temperature") ?? 1;
  if (temperature < 0) params.reject("temperature", "Input should be at least 0");
  const topP = params.optionalNumber("top_p") ?? 1;
  if (topP <= 0 || topP > 1) params.reject("top_p", "Input should be above 0 and at most 1");
  return {
    prompt,
    samples,
    maxTokens: Math.min(maxTokens, room),
    policy: { temperature, topP, topK: params.optionalInteger("top_k", -1) ?? -1 },
    seed: params.optionalInteger("seed") ?? randomSeed(),
    ...readStop(params, facts),
    wantsPromptLogprobs: body.optionalBoolean("prompt_logprobs") ?? false,
    topkPromptLogprobs: body.optionalInteger("topk_prompt_logprobs") ?? 0,
  };
}

/** Absent or null: the model's end of sequence. `[]`: nothing stops. A string, or a list of strings or of tokens. */
function readStop(params: Fields, facts: ModelFacts): Pick<SampleRequest, "stopTokens" | "stopStrings"> {
  if (!params.has("stop")) return { stopTokens: facts.eosTokens, stopStrings: [] };
  const stop = params.raw("stop");
  const list = typeof stop === "string" ? [stop] : params.array("stop");
  if (list.every((item) => typeof item === "string")) {
    if (list.includes("")) params.reject("stop", "A stop string should not be empty");
    return { stopTokens: [], stopStrings: list as string[] };
  }
  return { stopTokens: params.tokens("stop", facts.vocabSize), stopStrings: [] };
}
