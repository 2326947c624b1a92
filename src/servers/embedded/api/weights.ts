/** Endpoints that save, load and describe weights. */

import type { Digest } from "../../../digest.ts";
import {
  CHECKPOINT_NAME,
  CHECKPOINT_VERSION,
  type CheckpointInfo,
  type CheckpointKind,
  type CheckpointPath,
  checkpointFolder,
  copyCheckpoint,
  formatCheckpointPath,
  parseCheckpointPath,
  readCheckpoint,
  writeRun,
} from "../../checkpoints.ts";
import type { SaveOrder } from "../messages.ts";
import { refuse } from "./errors.ts";
import type { Fields } from "./fields.ts";
import type { FutureResult } from "./futures.ts";
import { readExpiry } from "./listing.ts";
import type { ApiRequest, RouteTable } from "./router.ts";
import { addSampler, samplerIdOf } from "./sampling.ts";
import type { ApiState, ModelEntry, Submitted } from "./state.ts";
import { addModel, checkBaseModel, createModel, describeParts, digestOf, modelIdOf, readSeq } from "./training.ts";

export function weightRoutes(state: ApiState): RouteTable {
  return {
    "POST /api/v1/save_weights": (request) => {
      const model = state.model(request.body.string("model_id"));
      return state.reading(model, readSeq(request.body), () => saveNamed(state, request, model, "weights"));
    },
    "POST /api/v1/save_weights_for_sampler": (request) => {
      const model = state.model(request.body.string("model_id"));
      return state.reading(model, readSeq(request.body), () => {
        checkKind(request.body);
        return request.body.has("path")
          ? saveNamed(state, request, model, "sampler_weights")
          : saveUnnamed(state, request, model);
      });
    },
    "POST /api/v1/save_weights_external": (request) => {
      const model = state.model(request.body.string("model_id"));
      return state.reading(model, readSeq(request.body), () => {
        if (request.body.has("age_encryption_recipients"))
          refuse(400, "The embedded server does not encrypt external weights: leave out age_encryption_recipients.");
        return saveNamed(state, request, model, "external_weights");
      });
    },
    "POST /api/v1/copy_weights": ({ body, digest }) => copyWeights(state, body, digest),
    "POST /api/v1/load_weights": (request) =>
      request.body.has("model_id") ? loadInto(state, request) : loadAsNew(state, request),
    "POST /api/v1/weights_info": ({ body }) => {
      const { baseModel, lora } = findTrainingState(state, body, "tinker_path");
      const parts = lora ? { lora_rank: lora.rank, ...describeParts(lora) } : {};
      return { base_model: baseModel, is_lora: lora !== null, ...parts, optimizer_config: { type: "adamw" } };
    },
  };
}

/** Weights that change under a sampler would make its samples depend on more than weights, prompt and seed. */
function checkKind(body: Fields): void {
  const kind = body.optionalString("kind") ?? "snapshot";
  if (kind !== "snapshot") refuse(400, `Samplers of the embedded server are snapshots; it has no ${kind} ones.`);
}

function saveNamed(state: ApiState, { body, digest }: ApiRequest, model: ModelEntry, kind: CheckpointKind): Submitted {
  const name = body.string("path");
  if (!CHECKPOINT_NAME.test(name))
    body.reject("path", "A checkpoint's name has 1 to 255 letters, digits, hyphens or underscores");
  const seq = readSeq(body);
  const callDigest = digestOf(`save ${kind}`, digest);
  const repeated = model.order.repeatOf(seq, callDigest);
  if (repeated !== undefined) return { request_id: repeated, model_id: model.id };
  const path: CheckpointPath = { run: model.id, kind, name };
  const key = `${kind}/${name}`;
  const isTaken = model.saving.has(key) || readCheckpoint(state.settings.serverFolder, path) !== undefined;
  if (isTaken && body.optionalBoolean("overwrite") !== true)
    refuse(409, `A checkpoint ${formatCheckpointPath(path)} exists already.`);
  const order = readSaveOrder(body, name);
  model.saving.add(key);
  return state.submitInOrder(model, seq, callDigest, async () => {
    try {
      const { sizeBytes } = await (kind === "weights"
        ? state.computer.run({ op: "saveWeights", model: model.id, order })
        : state.computer.run({ op: "saveSampler", model: model.id, kind, order }));
      const size = kind === "external_weights" ? { size_bytes: sizeBytes } : {};
      return { type: "json", body: { path: formatCheckpointPath(path), ...size, type: SAVE_CALLS[kind] } };
    } finally {
      model.saving.delete(key);
    }
  });
}

const SAVE_CALLS: Readonly<Record<CheckpointKind, string>> = {
  weights: "save_weights",
  sampler_weights: "save_weights_for_sampler",
  external_weights: "save_weights_external",
};

/** The copy is a run of its own, which is not trained: in the session that is named, or in one of no client. */
function copyWeights(state: ApiState, body: Fields, digest: Digest): unknown {
  const text = body.string("source_path");
  const source = parseCheckpointPath(text) ?? refuse(400, `${text} is not a checkpoint's path.`);
  const { serverFolder } = state.settings;
  const original = readCheckpoint(serverFolder, source) ?? refuse(404, `Checkpoint ${text} not found`);
  const changes = { at: new Date().toISOString(), expiresAt: readExpiry(body) };
  const session = body.has("session_id")
    ? state.session(body.string("session_id"))
    : state.createSession({ userMetadata: null, displayName: null, project: body.string("destination_project_id") });
  const seq = body.has("session_id") ? body.integer("model_seq_id") : 0;
  const run = modelIdOf(session, seq);
  const path = formatCheckpointPath({ ...source, run });
  const answer = { tinker_path: path };
  const callDigest = digestOf("copy_weights", digest);
  if (session.modelCalls.repeatOf(seq, callDigest, "model_seq_id") !== undefined) return answer;
  session.modelCalls.add(seq, { digest: callDigest, requestId: path });
  const { baseModel, lora } = original;
  const described = { formatVersion: CHECKPOINT_VERSION, run, session: session.id, baseModel, lora } as const;
  writeRun(serverFolder, { ...described, createdAt: changes.at, userMetadata: null });
  copyCheckpoint(serverFolder, source, run, changes);
  // Nobody will send this session a heartbeat.
  if (!body.has("session_id")) state.endSession(session, "finished", { reason: "success", detail: null });
  return answer;
}

function readSaveOrder(body: Fields, name: string): SaveOrder {
  return { name, userMetadata: body.stringMap("user_metadata"), expiresAt: readExpiry(body) };
}

/** Weights for the session's own use: they have a sampler and no path, and go with the session. */
function saveUnnamed(state: ApiState, { body, digest }: ApiRequest, model: ModelEntry): Submitted {
  const samplerSeq = body.integer("sampling_session_seq_id");
  const callDigest = digestOf("save unnamed", digest);
  const seq = readSeq(body);
  const repeated = model.order.repeatOf(seq, callDigest);
  if (repeated !== undefined) return { request_id: repeated, model_id: model.id };
  const samplerId = samplerIdOf(model.session, samplerSeq);
  if (state.samplers.has(samplerId)) refuse(409, `sampling_session_seq_id ${samplerSeq} is in use.`);
  const folder = state.unnamedFolder(model, samplerId);
  return state.submitInOrder(model, seq, callDigest, async () => {
    await state.computer.run({ op: "saveUnnamed", model: model.id, folder });
    addSampler(state, model.session, samplerSeq, { modelPath: null, source: { folder }, unnamedOf: model.id });
    state.pruneUnnamed(model);
    const result = { path: null, sampling_session_id: samplerId, type: "save_weights_for_sampler" };
    return { type: "json", body: result };
  });
}

function loadInto(state: ApiState, { body, digest }: ApiRequest): Submitted {
  const model = state.model(body.string("model_id"));
  const seq = readSeq(body);
  const callDigest = digestOf("load_weights", digest);
  const repeated = model.order.repeatOf(seq, callDigest);
  if (repeated !== undefined) return { request_id: repeated, model_id: model.id };
  return state.reading(model, seq, () => {
    const info = findTrainingState(state, body, "path");
    const optimizer = body.optionalBoolean("optimizer") ?? false;
    return state.submitInOrder(model, seq, callDigest, () => load(state, model, info, optimizer));
  });
}

/** The form that makes the model from the checkpoint. */
function loadAsNew(state: ApiState, { body, digest }: ApiRequest): Submitted {
  const session = state.session(body.string("session_id"));
  const seq = body.integer("model_seq_id");
  const callDigest = digestOf("load_weights", digest);
  const repeated = session.modelCalls.repeatOf(seq, callDigest, "model_seq_id");
  if (repeated !== undefined) return { request_id: repeated, model_id: modelIdOf(session, seq) };
  const info = findTrainingState(state, body, "path");
  if (body.has("base_model")) checkBaseModel(state, body.string("base_model"));
  const optimizer = body.optionalBoolean("optimizer") ?? false;
  const requestId = state.futures.create(session.id);
  session.modelCalls.add(seq, { digest: callDigest, requestId });
  const model = addModel(state, session, seq, info);
  const userMetadata = body.stringMap("user_metadata");
  void state.start(requestId, () => {
    // Both are sent at once, so that nothing sent to the new model meanwhile comes between them.
    const created = createModel(state, model, userMetadata);
    const loaded = load(state, model, info, optimizer);
    return Promise.all([created, loaded]).then(([, result]) => result);
  });
  return { request_id: requestId, model_id: model.id };
}

async function load(
  state: ApiState,
  model: ModelEntry,
  info: CheckpointInfo,
  optimizer: boolean,
): Promise<FutureResult> {
  const folder = checkpointFolder(state.settings.serverFolder, info);
  await state.computer.run({ op: "load", model: model.id, folder, optimizer });
  return { type: "json", body: { path: formatCheckpointPath(info), model_id: model.id, type: "load_weights" } };
}

function findTrainingState(state: ApiState, body: Fields, key: string): CheckpointInfo {
  const text = body.string(key);
  const path = parseCheckpointPath(text);
  if (path?.kind !== "weights") refuse(400, `${text} is not a training checkpoint: tinker://{run}/weights/{name}.`);
  return readCheckpoint(state.settings.serverFolder, path) ?? refuse(404, `Checkpoint ${text} not found`);
}
