/** Endpoints that list, change and delete what is on disk. Runs and checkpoints outlive the process. */
import {
  type CheckpointInfo,
  type CheckpointPath,
  changeCheckpoint,
  deleteCheckpoint,
  formatCheckpointPath,
  listCheckpoints,
  listRuns,
  parseCheckpointPath,
  type RunInfo,
  readRun,
} from "../../checkpoints.ts";
import { refuse } from "./errors.ts";
import type { Fields } from "./fields.ts";
import type { ApiRequest, RouteTable } from "./router.ts";
import type { ApiState } from "./state.ts";

export function listingRoutes(state: ApiState): RouteTable {
  const folder = state.settings.serverFolder;
  const findRun = (id: string) => readRun(folder, id) ?? refuse(404, `Training run ${id} not found`);
  const list = ({ params }: ApiRequest) => ({
    checkpoints: listCheckpoints(folder, findRun(params.run as string).run).map(describeCheckpoint),
  });
  const change = ({ params }: ApiRequest, changes: Pick<Partial<CheckpointInfo>, "isPublic" | "expiresAt">) => {
    const path = readPath(params);
    changeCheckpoint(folder, path, changes) ?? refuse(404, `Checkpoint ${formatCheckpointPath(path)} not found`);
    return undefined;
  };
  return {
    "GET /api/v1/training_runs": ({ query }) => {
      const runs = [...listRuns(folder)].reverse();
      const { page, cursor } = paginate(runs, query, 20);
      return { training_runs: page.map((run) => describeRun(state, run)), cursor };
    },
    "GET /api/v1/training_runs/{run}": ({ params }) => describeRun(state, findRun(params.run as string)),
    "GET /api/v1/training_runs/{run}/checkpoints": list,
    "GET /api/v1/models/{run}/checkpoints": list,
    [`POST ${CHECKPOINT}/publish`]: (request) => change(request, { isPublic: true }),
    [`DELETE ${CHECKPOINT}/publish`]: (request) => change(request, { isPublic: false }),
    [`PUT ${CHECKPOINT}/ttl`]: (request) => change(request, { expiresAt: readExpiry(request.body) }),
    [`DELETE ${CHECKPOINT}`]: ({ params }) => {
      const path = formatCheckpointPath(readPath(params));
      if (!deleteCheckpoint(folder, path)) refuse(404, `Checkpoint ${path} not found`);
      return undefined;
    },
    "GET /api/v1/checkpoints": ({ query }) => {
      const all = listRuns(folder).flatMap(({ run }) => listCheckpoints(folder, run));
      const { page, cursor } = paginate(all, query, 100);
      return { checkpoints: page.map(describeCheckpoint), cursor };
    },
  };
}

const CHECKPOINT = "/api/v1/training_runs/{run}/checkpoints/{kind}/{name}";

function readPath({ run, kind, name }: ApiRequest["params"]): CheckpointPath {
  const text = `tinker://${run}/${kind}/${name}`;
  return parseCheckpointPath(text) ?? refuse(400, `${text} is not a checkpoint's path.`);
}

/** When a checkpoint is to go; null is never. */
export function readExpiry(body: Fields): string | null {
  const seconds = body.optionalInteger("ttl_seconds", 1);
  if (seconds === undefined) return null;
  if (seconds > MOST_TTL_SECONDS) body.reject("ttl_seconds", `Input should be at most ${MOST_TTL_SECONDS} (ten years)`);
  return new Date(Date.now() + seconds * 1000).toISOString();
}

const MOST_TTL_SECONDS = 315_360_000;

export function paginate<T>(items: readonly T[], query: ApiRequest["query"], defaultLimit: number) {
  const read = (name: string, fallback: number) => {
    const value = Number(query.get(name) ?? fallback);
    if (!Number.isSafeInteger(value) || value < 0) refuse(422, `${name} should be a whole number of at least 0.`);
    return value;
  };
  const offset = read("offset", 0);
  const limit = read("limit", defaultLimit);
  return { page: items.slice(offset, offset + limit), cursor: { offset, limit, total_count: items.length } };
}

function describeRun(state: ApiState, info: RunInfo): unknown {
  const checkpoints = listCheckpoints(state.settings.serverFolder, info.run);
  const last = (kind: CheckpointInfo["kind"]) => {
    const found = checkpoints.filter((checkpoint) => checkpoint.kind === kind).at(-1);
    return found ? describeCheckpoint(found) : null;
  };
  return {
    training_run_id: info.run,
    base_model: info.baseModel,
    model_owner: "local",
    is_lora: info.lora !== null,
    lora_rank: info.lora?.rank ?? null,
    corrupted: false,
    last_request_time: state.models.get(info.run)?.lastRequestAt ?? checkpoints.at(-1)?.at ?? info.createdAt,
    last_checkpoint: last("weights"),
    last_sampler_checkpoint: last("sampler_weights"),
    user_metadata: info.userMetadata,
  };
}

const TYPES = { weights: "training", sampler_weights: "sampler", external_weights: "external" } as const;

function describeCheckpoint(info: CheckpointInfo): unknown {
  return {
    checkpoint_id: `${info.kind}/${info.name}`,
    checkpoint_type: TYPES[info.kind],
    time: info.at,
    tinker_path: formatCheckpointPath(info),
    size_bytes: info.sizeBytes,
    public: info.isPublic === true,
    user_metadata: info.userMetadata,
    expires_at: info.expiresAt,
  };
}
