/** Finds out what kind of server is there, where nobody has said it. */
import { parseJson } from "../answer.ts";
import type { TinkerClient } from "../client.ts";
import { TinkerError } from "../errors.ts";
import type { CallOptions, ResultOptions } from "../future.ts";
import type { TrainingModel } from "../model.ts";
import type { ServerKind } from "../quirks.ts";

/** What a server tells without a model. SkyRL's backends look alike from there. */
export type ServerFamily = "embedded" | "skyrl" | "hosted";

export async function serverFamily(client: TinkerClient, options: CallOptions = {}): Promise<ServerFamily> {
  const { transport } = client;
  const health = parseJson(await transport.send({ method: "GET", path: "/healthz", signal: options.signal }));
  if (isRecord(health) && typeof health.serverRun === "string") return "embedded";
  try {
    const root = parseJson(await transport.send({ method: "GET", path: "/", isRoot: true, signal: options.signal }));
    if (isRecord(root) && isRecord(root.endpoints) && Array.isArray(root.endpoints.training)) return "skyrl";
  } catch (error) {
    if (!(error instanceof TinkerError) || error.status === undefined) throw error;
  }
  return "hosted";
}

/**
 * The kind of server that a model lives on. Costs a forward pass over one token on SkyRL, outside the model's order:
 * jax gives `elementwise_loss` beside `logprobs` there, the others do not. fsdp and megatron differ in nothing that a
 * client can see or has to know here. A model that is to be loaded must be loaded before. The client keeps the answer.
 */
export async function serverKind(
  client: TinkerClient,
  model: TrainingModel,
  options: ResultOptions = {},
): Promise<ServerKind> {
  if (client.kind !== undefined) return client.kind;
  const kind = await probe(client, model, options);
  client.settleKind(kind);
  return kind;
}

async function probe(client: TinkerClient, model: TrainingModel, options: ResultOptions): Promise<ServerKind> {
  const family = await serverFamily(client, options);
  if (family !== "skyrl") return family;
  const one = Int32Array.of(0);
  const datum = { input: one, lossInputs: { target_tokens: one, weights: Float32Array.of(1) } };
  const pass = await model.forward([datum], { name: "cross_entropy" }, { seqIds: [0], signal: options.signal });
  const [output] = (await pass.result(options)).outputs;
  return output?.elementwise_loss === undefined ? "skyrl-fsdp" : "skyrl-jax";
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
