/** Measures kept weights on an environment, on the server that keeps them. */
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import type { Address } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import type { EvalOrder } from "../../environment-order.ts";
import type { ProjectContext } from "../../kind.ts";
import { ownIdentity } from "../../process.ts";
import { registerUser, unregister } from "../../servers/runtime.ts";
import { TinkerError } from "../../tinker/errors.ts";
import type { TrainingModel } from "../../tinker/model.ts";
import type { EvalResult } from "../../training/rl/evals.ts";
import { openClient } from "../client.ts";
import { isManaged, type ServerSettings, serverFolder } from "../connect.ts";
import { modelFolder } from "../model.ts";
import { finishSession, samplerOf, unloadAll, type Weights } from "../sampler.ts";
import { servedModel } from "../skyrl.ts";

export interface Measurement {
  readonly address: Address;
  readonly order: EvalOrder;
  readonly server: ServerSettings;
  /** Undefined for the base model. */
  readonly weights: Weights | undefined;
  /** Step of the weights, for whoever looks at the attempts. */
  readonly step: number;
  /** Where the attempts are written. */
  readonly folder: string;
  readonly project: ProjectContext;
  readonly signal: AbortSignal;
  onPhase(text: string): void;
}

/** Fails with RL5013 (the server), RL7102 (a grader), RL8001 (no tasks) or RL8101 (nothing could be graded). */
export async function measure(measurement: Measurement): Promise<EvalResult> {
  const { address, order, server, project, signal, onPhase } = measurement;
  const { openEnvironment } = await import("../../environments/environment.ts");
  const { env, cacheFolder } = project;
  const surroundings = { folder: order.environment.folder, env, cacheFolder, onHost: onPhase };
  const environment = await openEnvironment(order.environment, surroundings);
  let registration: string | undefined;
  try {
    // Registered, so that nobody stops the server under it without saying so.
    if (isManaged(server)) {
      const user = { address, process: ownIdentity() };
      registration = registerUser(serverFolder(project.dataFolder, server.address), user);
    }
    if (environment.count === 0) fail("RL8001", `The environment of ${address} has no tasks.`, { address });
    onPhase("connecting");
    const client = await openClient(server, project, signal);
    const scope: TrainingModel[] = [];
    try {
      const session = await client.createSession({ tags: ["rlcli", address] });
      try {
        return await play(measurement, environment, session, scope);
      } finally {
        await unloadAll(scope);
        await finishSession(session);
      }
    } finally {
      await client.close();
    }
  } catch (error) {
    if (error instanceof TinkerError) fail("RL5013", `${error.message.replace(/\.$/, "")}.`, { address, cause: error });
    throw error;
  } finally {
    if (registration) unregister(registration);
    await environment.close();
  }
}

type Environment = Awaited<ReturnType<typeof import("../../environments/environment.ts")["openEnvironment"]>>;
type Session = Parameters<typeof samplerOf>[0];

async function play(
  { address, order, server, weights, step, folder, project, signal, onPhase }: Measurement,
  environment: Environment,
  session: Session,
  scope: TrainingModel[],
): Promise<EvalResult> {
  const [{ evalTasks, judgeEval, playEval }, { writeAttempts }, { loadRenderer }, { Limit }] = await Promise.all([
    import("../../training/rl/evals.ts"),
    import("../../training/rl/rollout-files.ts"),
    import("../../tokens/load.ts"),
    import("../../environments/limit.ts"),
  ]);
  const renderer = await loadRenderer(await modelFolder(server.model, project));
  const sampler = weights
    ? await samplerOf(session, weights, scope)
    : await session.createSampler({
        baseModel: server.skyrl ? await servedModel(server.model, project) : server.model,
      });
  // Every sample and every grade listens to it; that many listeners are no leak.
  setMaxListeners(0, signal);
  const { samplesAtOnce } = await session.client.config();
  const count = evalTasks(order, environment);
  onPhase(`${count} tasks, ${order.samples} answer${order.samples === 1 ? "" : "s"} each`);
  const player = {
    environment,
    renderer,
    sampler,
    sampling: order.sampling,
    templateKwargs: order.template_kwargs,
    weights: step,
    seed: order.seed,
    limit: new Limit(samplesAtOnce),
    firstSeq: 0,
    signal,
    onWaiting: (what: string, waitedMs: number) => {
      if (waitedMs > QUIET_WAIT_MS) onPhase(`waiting for ${what} since ${Math.round(waitedMs / 1000)} s`);
    },
  };
  const groups = await playEval(player, order);
  writeAttempts(join(folder, "attempts.jsonl"), groups.flat(), { durable: false });
  const result = judgeEval(groups, order, (task) => environment.tagOf(task));
  if (result.metrics.reward === undefined)
    fail("RL8101", `None of the answers of ${address} could be graded. Most often: ${result.fault}`, { address });
  return result;
}

const QUIET_WAIT_MS = 30_000;
