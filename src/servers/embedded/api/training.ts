/** Endpoints that make, train and drop models. */
import type { Digest } from "../../../digest.ts";
import { CHECKPOINT_VERSION, type LoraSettings, type ModelRole, writeRun } from "../../checkpoints.ts";
import { LORA_ALPHA } from "../lora.ts";
import { refuse } from "./errors.ts";
import type { Fields } from "./fields.ts";
import type { FutureResult } from "./futures.ts";
import { CallOrder } from "./order.ts";
import { checkPass, type SentPass } from "./pass.ts";
import { readPassProtobuf } from "./proto.ts";
import { readAdam, readPassJson } from "./requests.ts";
import { type ApiRequest, protobufRoute, type RouteTable } from "./router.ts";
import type { ApiState, ModelEntry, Session } from "./state.ts";

export function trainingRoutes(state: ApiState): RouteTable {
  const { facts } = state.computer;
  const submit = (model: ModelEntry, sent: SentPass, seq: number | undefined, backward: boolean, digest: Digest) => {
    const { data, loss } = checkPass(sent, facts, model.role);
    const call = digestOf(backward ? "forward_backward" : "forward", digest);
    return state.submitInOrder(model, seq, call, async () => {
      const pass = await state.computer.run({ op: "pass", model: model.id, data, loss, backward });
      return { type: "pass", pass };
    });
  };
  const passJson =
    (backward: boolean, inputKey: string) =>
    ({ body, digest }: ApiRequest) => {
      const model = state.model(body.string("model_id"));
      const seq = readSeq(body);
      return state.reading(model, seq, () => submit(model, readPassJson(body.object(inputKey)), seq, backward, digest));
    };
  return {
    "POST /api/v1/create_model": ({ body, digest }) => {
      checkBaseModel(state, body.string("base_model"));
      checkOptimizer(body);
      const lora = readLora(body, facts.mostRank);
      const role = readRole(body);
      const session = state.session(body.string("session_id"));
      const seq = body.integer("model_seq_id");
      const repeated = session.modelCalls.repeatOf(seq, digest, "model_seq_id");
      const answer = (requestId: string) => ({
        request_id: requestId,
        model_id: modelIdOf(session, seq),
        base_model: body.string("base_model"),
        lora_config: describeLora(lora),
        status: "created",
      });
      if (repeated !== undefined) return answer(repeated);
      const requestId = state.futures.create(session.id);
      session.modelCalls.add(seq, { digest, requestId });
      const model = addModel(state, session, seq, { lora, role });
      void state.start(requestId, () => createModel(state, model, body.stringMap("user_metadata")));
      return answer(requestId);
    },
    "POST /api/v1/get_info": ({ body }) => {
      const model = state.model(body.string("model_id"));
      const name = state.settings.modelFolder;
      return {
        type: "get_info",
        model_id: model.id,
        status: model.status,
        // A folder from which any program can load the tokenizer.
        model_data: { model_name: name, tokenizer_id: name, base_model: state.settings.model },
        is_lora: model.lora !== null,
        lora_rank: model.lora?.rank ?? null,
        model_name: name,
      };
    },
    "POST /api/v1/unload_model": ({ body }) => {
      const model = state.model(body.string("model_id"));
      const requestId = state.futures.create(model.session.id);
      void state.start(requestId, async () => {
        await state.unload(model);
        return { type: "json", body: { model_id: model.id, status: "unloaded", type: "unload_model" } };
      });
      return { request_id: requestId, model_id: model.id };
    },
    "POST /api/v1/forward": passJson(false, "forward_input"),
    "POST /api/v1/forward_backward": passJson(true, "forward_backward_input"),
    [protobufRoute("POST /api/v1/forward_backward")]: ({ bytes, digest }) => {
      const { readPass, modelId, seqId, forwardOnly } = readPassProtobuf(bytes);
      const model = state.model(modelId);
      const seq = seqId === 0 ? undefined : seqId;
      return state.reading(model, seq, () => submit(model, readPass(), seq, !forwardOnly, digest));
    },
    "POST /api/v1/optim_step": ({ body, digest }) => {
      const model = state.model(body.string("model_id"));
      const seq = readSeq(body);
      return state.reading(model, seq, () => {
        const params = readAdam(body);
        return state.submitInOrder(model, seq, digestOf("optim_step", digest), async () => {
          const { gradNorm } = await state.computer.run({ op: "optim", model: model.id, params });
          return { type: "json", body: { metrics: { grad_norm: gradNorm, learning_rate: params.learningRate } } };
        });
      });
    },
  };
}

/** Bodies of different calls may be equal byte for byte; they are different requests all the same. */
export function digestOf(call: string, digest: Digest): Digest {
  return `${digest}:${call}`;
}

/** Absent, null and 0 mean none. */
export function readSeq(body: Fields): number | undefined {
  const seq = body.optionalInteger("seq_id");
  return seq === 0 ? undefined : seq;
}

export function checkBaseModel({ settings }: ApiState, name: string): void {
  if (name !== settings.model && name !== settings.modelFolder)
    refuse(400, `This server has the model ${settings.model}, not ${name}.`);
}

function checkOptimizer(body: Fields): void {
  const type = body.optionalObject("optimizer_config")?.optionalString("type") ?? "adamw";
  if (type !== "adamw") refuse(400, `The embedded server has the optimizer adamw, not ${type}.`);
}

/** No `lora_config`, or rank 0, trains all weights. */
function readLora(body: Fields, mostRank: number): LoraSettings | null {
  const config = body.optionalObject("lora_config");
  const rank = config?.integer("rank") ?? 0;
  if (config === undefined || rank === 0) return null;
  if (rank > mostRank) config.reject("rank", `The rank should be at most ${mostRank} for this model`);
  const lora = {
    rank,
    alpha: LORA_ALPHA,
    seed: config.optionalInteger("seed") ?? 0,
    attention: config.optionalBoolean("train_attn") ?? true,
    mlp: config.optionalBoolean("train_mlp") ?? true,
    unembedding: config.optionalBoolean("train_unembed") ?? true,
  };
  if (!lora.attention && !lora.mlp && !lora.unembedding)
    refuse(400, "An adapter needs at least one of train_attn, train_mlp and train_unembed.");
  return lora;
}

function readRole(body: Fields): ModelRole {
  const role = body.optionalString("model_role") ?? "policy";
  if (role === "policy" || role === "critic") return role;
  return body.reject("model_role", "A model is a policy or a critic");
}

function describeLora(lora: LoraSettings | null): unknown {
  return lora === null ? null : { rank: lora.rank, alpha: lora.alpha, seed: lora.seed, ...describeParts(lora) };
}

export function describeParts({ attention, mlp, unembedding }: LoraSettings): Readonly<Record<string, boolean>> {
  return { train_attn: attention, train_mlp: mlp, train_unembed: unembedding };
}

export function modelIdOf(session: Session, seq: number): string {
  return `${session.id}:train:${seq}`;
}

/** Known from now on, so that calls may follow before it has been created. */
export function addModel(
  state: ApiState,
  session: Session,
  seq: number,
  { lora, role }: Pick<ModelEntry, "lora" | "role">,
): ModelEntry {
  const model: ModelEntry = {
    id: modelIdOf(session, seq),
    session,
    lora,
    role,
    status: "created",
    order: new CallOrder(),
    saving: new Set(),
    lastRequestAt: new Date().toISOString(),
  };
  session.models.push(model);
  state.models.set(model.id, model);
  return model;
}

export async function createModel(
  state: ApiState,
  model: ModelEntry,
  userMetadata: Readonly<Record<string, string>> | null,
): Promise<FutureResult> {
  await state.computer.run({ op: "create", model: model.id, lora: model.lora, role: model.role });
  writeRun(state.settings.serverFolder, {
    formatVersion: CHECKPOINT_VERSION,
    run: model.id,
    session: model.session.id,
    baseModel: state.settings.model,
    lora: model.lora,
    createdAt: new Date().toISOString(),
    userMetadata,
  });
  const body = { model_id: model.id, base_model: state.settings.model, lora_config: describeLora(model.lora) };
  return { type: "json", body: { ...body, type: "create_model" } };
}
