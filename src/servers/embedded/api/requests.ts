/** From JSON bodies to requests. Passes are checked by `pass.ts`, since they come in protobuf too. */
import { messageOf } from "../../../diagnostic.ts";
import type { ModelFacts } from "../messages.ts";
import type { Matrix, PromptWishes } from "../prompt.ts";
import type { SampleRequest } from "../sampler.ts";
import { ADAM_DEFAULTS, type AdamParams } from "../trainer.ts";
import { refuse } from "./errors.ts";
import { Fields } from "./fields.ts";
import { checkTokens, type SentPass, type SentTensor } from "./pass.ts";
import { densify } from "./sparse.ts";

/** `forward_input` or `forward_backward_input`. */
export function readPassJson(input: Fields): SentPass {
  const config = input.optionalObject("loss_fn_config");
  return {
    loss: input.string("loss_fn"),
    config: Object.fromEntries((config?.keys() ?? []).map((key) => [key, config?.raw(key)])),
    data: input.objects("data").map((datum) => {
      const inputs = datum.object("loss_fn_inputs");
      const names = inputs.keys().filter((name) => inputs.has(name));
      const tensors = names.map((name) => [name, readTensor(inputs.object(name))] as const);
      return { tokens: readChunks(datum.object("model_input")), tensors: Object.fromEntries(tensors) };
    }),
    loc: input.place,
  };
}

/** TensorData, sparse ones made dense. */
function readTensor(tensor: Fields): SentTensor {
  const values = tensor.array("data");
  const shape = tensor.has("shape") ? tensor.finiteNumbers("shape") : undefined;
  const dtype = tensor.optionalString("dtype");
  if (!tensor.has("sparse_crow_indices") && !tensor.has("sparse_col_indices")) return { values, dtype, shape };
  const rows = tensor.finiteNumbers("sparse_crow_indices");
  const columns = tensor.finiteNumbers("sparse_col_indices");
  try {
    return {
      values: densify({ values: tensor.finiteNumbers("data"), rows, columns, shape: shape ?? [] }),
      dtype,
      shape,
    };
  } catch (error) {
    return tensor.reject("sparse_crow_indices", messageOf(error));
  }
}

/** The tokens of all chunks, in a row, unchecked. */
function readChunks(input: Fields): unknown[] {
  const tokens: unknown[] = [];
  for (const chunk of input.objects("chunks")) for (const token of readText(chunk).array("tokens")) tokens.push(token);
  return tokens;
}

function readModelInput(input: Fields, facts: ModelFacts): number[] {
  const tokens: number[] = [];
  for (const chunk of input.objects("chunks"))
    for (const token of readText(chunk).tokens("tokens", facts.vocabSize)) tokens.push(token);
  return tokens;
}

function readText(chunk: Fields): Fields {
  const type = chunk.optionalString("type") ?? "encoded_text";
  return type === "encoded_text" ? chunk : chunk.reject("type", "The embedded server takes encoded_text chunks only");
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

/** Of one request: beyond it, the answer alone would fill the memory. */
const MOST_SAMPLES = 4096;
const MOST_TOPK = 1024;

/** `randomSeed` stands in where the request has none. */
export function readSample(body: Fields, facts: ModelFacts, randomSeed: () => number): SampleRequest {
  if (body.optionalBoolean("record_stability_info"))
    refuse(400, "record_stability_info is for the loss stable_reinforce, which the embedded server does not have.");
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
    // Ours alone: an answer that is asked for in pieces is the one that a single request gives.
    seedPosition: params.optionalInteger("seed_position", 0) ?? 0,
    ...readStop(params, facts),
    wishes: readWishes(body, prompt.length, facts),
    topkSampled: readTopk(body, "topk_sample_logprobs"),
  };
}

function readWishes(body: Fields, length: number, facts: ModelFacts): PromptWishes {
  const logprobs = body.optionalBoolean("prompt_logprobs") ?? false;
  const lastN = body.optionalInteger("prompt_logprobs_last_n", 1);
  if (lastN !== undefined && !logprobs)
    body.reject("prompt_logprobs_last_n", "It applies to prompt_logprobs: ask for them");
  if (lastN !== undefined && lastN > length - 1)
    body.reject("prompt_logprobs_last_n", `Input should be at most ${length - 1}, one less than the prompt has tokens`);
  return {
    logprobs,
    topk: readTopk(body, "topk_prompt_logprobs"),
    from: lastN === undefined ? 1 : length - lastN,
    targets: body.has("target_prompt_logprobs") ? readPromptTargets(body, length, facts) : undefined,
    draws: readTopk(body, "prompt_alt_tokens_k"),
  };
}

function readTopk(body: Fields, key: string): number {
  const k = body.optionalInteger(key) ?? 0;
  return k <= MOST_TOPK ? k : body.reject(key, `Input should be at most ${MOST_TOPK}`);
}

/** int64 `[length − 1, K]`. */
function readPromptTargets(body: Fields, length: number, facts: ModelFacts): Matrix<Int32Array> {
  const key = "target_prompt_logprobs";
  const { values, dtype, shape } = readTensor(body.object(key));
  const [rows, width] = shape ?? [];
  if (body.object(key).has("sparse_crow_indices"))
    refuse(400, `${key} in sparse form is not supported by the embedded server: send it dense, with -1 for no token.`);
  if ((dtype ?? "int64") !== "int64" || shape?.length !== 2 || rows !== length - 1 || rows * width! !== values.length)
    body.reject(
      key,
      `Input should be an int64 tensor of shape [${length - 1}, K]: K tokens for each position after the first`,
    );
  return { width: width as number, values: checkTokens(values, [key, "data"], `${key}`, facts.vocabSize, -1) };
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
