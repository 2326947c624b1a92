/**
 * A lineage: one server-side model that a run's steps are applied to, one after another. A process that starts goes on
 * with the lineage in the journal while that model may still live; else it begins a new one from the last durable
 * checkpoint, and the steps after it are rolled back.
 */
import { fail } from "../diagnostic.ts";
import { TinkerClient } from "../tinker/client.ts";
import { TinkerError } from "../tinker/errors.ts";
import type { TrainingModel } from "../tinker/model.ts";
import { formatCheckpointPath } from "../tinker/paths.ts";
import { serverKind } from "../tinker/quirks/probe.ts";
import { ignoredSettings, SERVER_TRAITS, type ServerKind } from "../tinker/quirks.ts";
import type { Session } from "../tinker/session.ts";
import type { DurableCheckpoint } from "./checkpoints.ts";
import type { RunRecord } from "./record.ts";
import { type Run, type ServerConnection, WORK_LIMIT_MS } from "./run.ts";
import { judgementAt, missingKinds } from "./save.ts";

/** How long one request is tried before the server is looked for anew. */
const RETRY_DEADLINE_MS = 15_000;
/** The number of a model's first call, which is the only place for a load. */
const LOAD_SEQ = 1;
const UNLOAD_TIMEOUT_MS = 5000;

export interface Lineage {
  readonly client: TinkerClient;
  readonly session: Session;
  readonly model: TrainingModel;
  /** How the server reduces and what it ignores follows from this. */
  readonly kind: ServerKind;
  /** What the server calls the base model. */
  readonly baseModel: string;
}

type SessionModel = Pick<Lineage, "session" | "model">;

export async function openLineage(run: Run): Promise<Lineage> {
  run.record.phase("connecting");
  const connection = await run.deps.connect();
  run.at("open:connected");
  const client = clientOf(connection, run.record);
  try {
    const { session, model } = (await goOn(run, client, connection)) ?? (await beginAnew(run, client, connection));
    const kind = await serverKind(client, model, { deadlineMs: WORK_LIMIT_MS });
    checkSettings(run, kind);
    return { client, session, model, kind, baseModel: connection.model ?? run.order.model };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** A setting that the server would take and not use is an error: the run would be another than the spec says. */
function checkSettings({ order }: Run, kind: ServerKind): void {
  const { learning_rate, optimizer } = order.settings;
  const ignored = ignoredSettings(kind, { learning_rate, ...optimizer });
  if (ignored.length === 0) return;
  const detail = `A ${kind} server does not use ${ignored.map((name) => `optimizer.${name}`).join(", ")}. Leave ${ignored.length === 1 ? "it" : "them"} out of ${order.address}, or train on a server that does.`;
  fail("RL8011", detail, { address: order.address });
}

export function clientOf({ url, token }: ServerConnection, { wire }: RunRecord): TinkerClient {
  const key = token === undefined ? {} : { apiKey: token };
  const retry = { deadlineMs: RETRY_DEADLINE_MS };
  return new TinkerClient({ baseUrl: url, ...key, retry, onExchange: (exchange) => wire.add(exchange) });
}

/** Frees the model where it still can be; what cannot be freed ends with its session. */
export async function closeLineage({ client, model, kind }: Lineage, unload: boolean): Promise<void> {
  if (unload) {
    if (!SERVER_TRAITS[kind].clearsGradients) await tryClearGradients(model);
    await tryUnload(model);
  }
  await client.close();
}

/** Steps that a failure cut short leave gradients, which would go over to the next model in this one's place. */
async function tryClearGradients(model: TrainingModel): Promise<void> {
  const signal = AbortSignal.timeout(UNLOAD_TIMEOUT_MS);
  await model
    .optimStep({ learning_rate: 0 }, { signal })
    .then((step) => step.result({ signal }))
    .catch(() => {});
}

async function tryUnload(model: TrainingModel): Promise<void> {
  await model.unload({ signal: AbortSignal.timeout(UNLOAD_TIMEOUT_MS) }).catch(() => {});
}

/** The journal's lineage, if its model may still live: same life of the server, session known. */
async function goOn(
  run: Run,
  client: TinkerClient,
  { serverRun }: ServerConnection,
): Promise<SessionModel | undefined> {
  const { journal } = run.record;
  const { open, isFresh, nextSeq, done } = journal.state;
  if (!open || open.serverRun !== serverRun) return undefined;
  const session = client.resumeSession(open.session);
  const model = session.resumeModel(open.model, nextSeq);
  try {
    await session.heartbeat();
    if (done > run.total || !repeatsAll(run)) {
      // Of no more use: its weights are beyond the end of a shortened run, or its numbers would have a gap.
      await tryUnload(model);
    } else {
      if (isFresh && open.loaded !== undefined) await load(run, model, open.loaded);
      return { session, model };
    }
  } catch (error) {
    if (!(error instanceof TinkerError) || (error.kind !== "gone" && error.kind !== "rejected")) throw error;
  }
  session.stopHeartbeat();
  journal.abandon();
  return undefined;
}

/**
 * Whether everything that was begun in the lineage and is not known to have been sent will be sent again. A server that
 * orders calls by number waits for a missing one for ever. Usually true; not where save_every or eval_every changed.
 */
function repeatsAll(run: Run): boolean {
  const { done, pending, evals, save } = run.record.journal.state;
  const last = pending.at(-1)?.step;
  const keepsEvals = [...evals.keys()].every((step) => step <= done || (step === last && run.evaluatesAt(step)));
  const kept = save && run.record.checkpoints.at(save.step);
  // The list is written after all parts of a save; one part alone may also be the sampler weights of a listed one.
  const isOver = save !== undefined && kept !== undefined && (save.seq.length > 1 || kept.sampler !== undefined);
  const isRepeated = save?.step === done && pending.length === 0 && missingKinds(run).length === save?.seq.length;
  const keepsSave = !save || isOver || isRepeated;
  return keepsEvals && keepsSave;
}

async function beginAnew(run: Run, client: TinkerClient, connection: ServerConnection): Promise<SessionModel> {
  const { order, record } = run;
  await adoptUnfinishedSave(run, client);
  const base = record.checkpoints.newest(run.total);
  const session = await client.createSession({ tags: ["rlcli", order.address] });
  const model = await createModel(run, session, connection.model ?? order.model);
  run.at("open:created");
  rollBack(run, base);
  run.at("open:rolled-back");
  const loaded = base?.training ?? order.from?.path;
  record.journal.begin({
    t: "open",
    at: record.at(),
    session: session.id,
    model: model.id,
    serverRun: connection.serverRun,
    step: base?.step ?? 0,
    ...(loaded === undefined ? {} : { loaded }),
  });
  run.at("open:journaled");
  if (loaded !== undefined) await load(run, model, loaded);
  run.at("open:loaded");
  return { session, model };
}

/** What every kind of server can adapt, so that a run is the same on all. */
const ADAPTED = { attention: true, mlp: true, unembedding: false };

function createModel({ order }: Run, session: Session, baseModel: string): Promise<TrainingModel> {
  const { lora_rank, seed } = order.settings;
  const metadata = { run: order.address, generation: order.generation, incarnation: String(order.incarnation) };
  const options = { baseModel, loraRank: lora_rank, seed, metadata, layers: ADAPTED };
  return session.createModel(options, { deadlineMs: WORK_LIMIT_MS });
}

function rollBack({ record }: Run, base: DurableCheckpoint | undefined): void {
  const { done, pending, sent } = record.journal.state;
  const from = pending.at(-1)?.step ?? sent.at(-1)?.step ?? done;
  const to = base?.step ?? 0;
  if (from > to) {
    const reason = "the server's model is gone; the last durable checkpoint is taken up again";
    record.journal.begin({ t: "rollback", at: record.at(), from, to, reason });
    record.phase("rolled back", `from step ${from} to ${to}`);
  }
  record.metrics.rollBack(to);
}

/** Repeating it is safe: it is the model's first call, always with the same bytes. */
async function load(run: Run, model: TrainingModel, path: string): Promise<void> {
  const isOwn = run.record.checkpoints.list.some((c) => c.training === path);
  const optimizer = isOwn || (run.order.from?.optimizer ?? false);
  run.record.phase("loading", path);
  try {
    await (await model.loadWeights(path, { optimizer, seqId: LOAD_SEQ })).result({ deadlineMs: WORK_LIMIT_MS });
  } catch (error) {
    if (error instanceof TinkerError && error.status === 404 && error.kind === "rejected") {
      const whose = isOwn ? "The checkpoint to resume from" : "The checkpoint that the run starts from";
      fail("RL8005", `${whose}, ${path}, is not on the server any more: ${error.reason}.`, { cause: error });
    }
    throw error;
  }
}

/** A save that a crash left open may be complete on the server: then its checkpoint is durable after all. */
async function adoptUnfinishedSave(run: Run, client: TinkerClient): Promise<void> {
  const { record } = run;
  const { save, saveModel } = record.journal.state;
  if (!save || saveModel === undefined || record.checkpoints.at(save.step)) return;
  const { step, name } = save;
  const training = formatCheckpointPath({ run: saveModel, kind: "weights", name });
  const sampler = formatCheckpointPath({ run: saveModel, kind: "sampler_weights", name });
  const listed = await listedPaths(client, saveModel);
  if (!listed.has(training)) return;
  record.checkpoints.add({
    t: "checkpoint",
    at: record.at(),
    step,
    training,
    ...(listed.has(sampler) ? { sampler } : {}),
    ...judgementAt(run, step),
  });
  record.journal.note({ t: "saved", at: record.at(), step });
}

/** What a model's run has on the server; nothing where the server will not say. */
async function listedPaths(client: TinkerClient, model: string): Promise<ReadonlySet<string>> {
  try {
    return new Set((await client.listCheckpoints(model)).map((c) => c.tinkerPath));
  } catch (error) {
    if (error instanceof TinkerError && error.kind !== "network") return new Set();
    throw error;
  }
}
