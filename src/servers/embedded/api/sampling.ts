/** Endpoints that sample, and the samplers they go through. */
import { randomInt } from "node:crypto";
import { checkpointFolder, formatCheckpointPath, parseCheckpointPath, readCheckpoint } from "../../checkpoints.ts";
import type { WeightSource } from "../messages.ts";
import type { Completions } from "./completions.ts";
import { refuse } from "./errors.ts";
import type { Fields } from "./fields.ts";
import { CallNumbers } from "./order.ts";
import { readSample } from "./requests.ts";
import type { RouteTable } from "./router.ts";
import type { ApiState, SamplerEntry, Session } from "./state.ts";
import { checkBaseModel } from "./training.ts";

type Source = Pick<SamplerEntry, "modelPath" | "source" | "unnamedOf">;

export function samplingRoutes(state: ApiState): RouteTable {
  return {
    "POST /api/v1/create_sampling_session": ({ body, digest }) => {
      const session = state.session(body.string("session_id"));
      const seq = body.integer("sampling_session_seq_id");
      const id = samplerIdOf(session, seq);
      if (session.samplerCalls.repeatOf(seq, digest, "sampling_session_seq_id") === undefined) {
        if (state.samplers.has(id)) refuse(409, `sampling_session_seq_id ${seq} is in use.`);
        const source = readSource(state, body);
        session.samplerCalls.add(seq, { digest, requestId: id });
        addSampler(state, session, seq, source);
      }
      return { type: "create_sampling_session", sampling_session_id: id };
    },
    "GET /api/v1/samplers/{sampler}": ({ params }) => {
      const { id, modelPath } = state.sampler(params.sampler as string);
      return { sampler_id: id, base_model: state.settings.modelFolder, model_path: modelPath };
    },
    "POST /api/v1/asample": ({ body, digest }) => {
      const sampler = body.has("sampling_session_id") ? state.sampler(body.string("sampling_session_id")) : undefined;
      const seq = sampler ? body.optionalInteger("seq_id") : undefined;
      const repeated = sampler?.calls.repeatOf(seq, digest, "seq_id");
      const request = readSample(body, state.computer.facts, () => randomInt(2 ** 31));
      const { source } = sampler ?? readSource(state, body);
      const requestId = repeated ?? state.futures.create(sampler?.session.id, { isSample: true });
      if (repeated === undefined) {
        sampler?.calls.add(seq, { digest, requestId });
        const sampled = state.start(requestId, async () => ({
          type: "sample",
          sample: await state.computer.run({ op: "sample", source, request, ticket: requestId }),
        }));
        if (sampler)
          void reportTo(state.completionsOf(sampler, Math.floor((seq ?? 0) / CLONE_SEQS)), requestId, sampled);
      }
      const sequenceIds = Array.from({ length: request.samples }, (_, i) => `${requestId}-${i}`);
      return { request_id: requestId, sample_sequence_ids: sequenceIds };
    },
    "POST /api/v1/join_sampling_session": ({ body }) => {
      const sampler = state.sampler(body.string("sampling_session_id"));
      sampler.clones += 1;
      return { type: "join_sampling_session", client_counter: sampler.clones };
    },
  };
}

/** A cloned client numbers its samples from its own multiple of this. */
const CLONE_SEQS = 1e9;

async function reportTo(completions: Completions, requestId: string, done: Promise<boolean>): Promise<void> {
  completions.add({ requestId, ok: await done });
}

/** No `:` in it: some servers of this protocol refuse that, and clients know. */
export function samplerIdOf(session: Session, seq: number): string {
  return `${session.id}-sampler-${seq}`;
}

export function addSampler(state: ApiState, session: Session, seq: number, source: Source): SamplerEntry {
  const entry: SamplerEntry = {
    id: samplerIdOf(session, seq),
    session,
    ...source,
    calls: new CallNumbers(),
    completions: new Map(),
    clones: 0,
  };
  session.samplers.push(entry);
  state.samplers.set(entry.id, entry);
  return entry;
}

/** Exactly one of `base_model` and `model_path`. */
function readSource(state: ApiState, body: Fields): Source {
  if (body.has("base_model") === body.has("model_path"))
    refuse(400, "Exactly one of base_model and model_path is needed.");
  if (body.has("base_model")) {
    checkBaseModel(state, body.string("base_model"));
    return { modelPath: null, source: { base: true } };
  }
  return readPath(state, body.string("model_path"));
}

function readPath(state: ApiState, text: string): { modelPath: string; source: WeightSource } {
  const path = parseCheckpointPath(text);
  if (path?.kind !== "sampler_weights")
    return refuse(400, `${text} is not a sampler checkpoint: tinker://{run}/sampler_weights/{name}.`);
  const { serverFolder } = state.settings;
  if (readCheckpoint(serverFolder, path) === undefined) refuse(404, `Checkpoint ${text} not found`);
  return { modelPath: formatCheckpointPath(path), source: { folder: checkpointFolder(serverFolder, path) } };
}
