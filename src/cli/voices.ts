/** Models that a command talks to: a connection to a server, and weights on it with the text of their model. */
import type { ChatModel } from "../chat/answer.ts";
import { fail } from "../diagnostic.ts";
import { modelFolder } from "../kinds/model.ts";
import { finishSession, samplerOf, unloadAll } from "../kinds/sampler.ts";
import { TinkerClient } from "../tinker/client.ts";
import { TinkerError } from "../tinker/errors.ts";
import type { TrainingModel } from "../tinker/model.ts";
import { serverFamily } from "../tinker/quirks/probe.ts";
import type { Session } from "../tinker/session.ts";
import { loadRenderer } from "../tokens/load.ts";
import type { Renderer } from "../tokens/renderer.ts";
import type { CommandContext } from "./context.ts";
import { type AskedWeights, askedWeights, openPlace, type Target, targetIn, type WeightFlags } from "./target.ts";

/** What is asked by one name. */
export interface Voice {
  /** For people. */
  readonly name: string;
  /** Of the weights themselves: another one when a run or a deployment has moved on. */
  readonly weightsName: string;
  readonly model: ChatModel;
  /** Frees what was loaded on the server for it. */
  close(): Promise<void>;
}

const HEALTH_TIMEOUT_MS = 10_000;
const CAPABILITIES_TIMEOUT_MS = 10_000;

interface LinkFacts {
  readonly serverRun: string;
  readonly baseModel: string;
  readonly contextLength: number | undefined;
  readonly seedsGoOn: boolean;
}

/** A connection to a server, with what is the same for all weights on it. */
export class Link {
  readonly #client: TinkerClient;
  readonly #session: Session;
  readonly #renderer: Renderer;
  readonly #baseModel: string;
  readonly #contextLength: number | undefined;
  readonly #seedsGoOn: boolean;

  /** Of the server that was connected to: another one after a restart. */
  readonly serverRun: string;

  private constructor(client: TinkerClient, session: Session, renderer: Renderer, facts: LinkFacts) {
    this.serverRun = facts.serverRun;
    this.#client = client;
    this.#session = session;
    this.#renderer = renderer;
    this.#baseModel = facts.baseModel;
    this.#contextLength = facts.contextLength;
    this.#seedsGoOn = facts.seedsGoOn;
  }

  /**
   * Starts a server of ours on need. `tag` names the command to the server; `patienceMs` is how long a request is tried again while no
   * answer comes, the client's own default where absent. Fails with TinkerError where it does not answer.
   */
  static async open(target: Target, tag: string, patienceMs?: number): Promise<Link> {
    const renderer = await loadRenderer(await modelFolder(target.settings.model, target.open.context));
    const { url, token, serverRun, model: baseModel = target.settings.model } = await target.connect();
    const client = new TinkerClient({
      baseUrl: url,
      ...(token === undefined ? {} : { apiKey: token }),
      ...(patienceMs === undefined ? {} : { retry: { deadlineMs: patienceMs } }),
    });
    try {
      await requireAnswer(client);
      const [session, family, contextLength] = await Promise.all([
        client.createSession({ tags: [tag] }),
        serverFamily(client),
        contextLengthOf(client, [baseModel, target.settings.model]),
      ]);
      return new Link(client, session, renderer, {
        serverRun,
        baseModel,
        contextLength,
        seedsGoOn: family === "embedded",
      });
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  /** The base model where no weights are given. */
  async voice(name: string, asked: Pick<AskedWeights, "weights"> | undefined): Promise<Voice> {
    const scope: TrainingModel[] = [];
    const sampler = asked
      ? await samplerOf(this.#session, asked.weights, scope)
      : await this.#session.createSampler({ baseModel: this.#baseModel });
    return {
      name,
      weightsName: asked?.weights.training ?? asked?.weights.sampler ?? this.#baseModel,
      model: {
        sampler,
        renderer: this.#renderer,
        contextLength: this.#contextLength,
        seedsGoOn: this.#seedsGoOn,
      },
      close: () => unloadAll(scope),
    };
  }

  async close(): Promise<void> {
    await finishSession(this.#session);
    await this.#client.close();
  }
}

/** Fails at once where no server is there: whoever waits for an answer should not wait through all retries for it. */
export async function requireAnswer(client: TinkerClient): Promise<void> {
  try {
    await client.health({ timeoutMs: HEALTH_TIMEOUT_MS });
  } catch (error) {
    // A server may have no health to tell of; the request itself will show.
    if (error instanceof TinkerError && error.kind === "network") throw error;
  }
}

/** Undefined where the server does not tell. */
async function contextLengthOf(client: TinkerClient, names: readonly string[]): Promise<number | undefined> {
  try {
    const models = await client.capabilities({ signal: AbortSignal.timeout(CAPABILITIES_TIMEOUT_MS) });
    const own = models.find(({ modelName }) => modelName !== undefined && names.includes(modelName));
    return (own ?? (models.length === 1 ? models[0] : undefined))?.maxContextLength;
  } catch {
    return undefined;
  }
}

/** What a server's refusal is to a user; anything else is thrown on. */
export function serverFault(error: unknown): never {
  if (error instanceof TinkerError) fail("RL5013", `${error.message.replace(/\.$/, "")}.`, { cause: error });
  throw error;
}

export interface OpenVoices {
  /** In the order of their names. */
  readonly voices: readonly Voice[];
  close(): Promise<void>;
}

/**
 * The models that names stand for (undefined is what the flags or the spec say); each server is connected to once. All names are looked
 * up before any server is started.
 */
export async function openVoices(
  context: CommandContext,
  names: readonly (string | undefined)[],
  flags: WeightFlags,
  tag: string,
): Promise<OpenVoices> {
  const open = await openPlace(context, flags);
  const asked: { readonly target: Target; readonly weights: AskedWeights | undefined }[] = [];
  for (const name of names) {
    const target = targetIn(context, open, flags, name);
    asked.push({ target, weights: await askedWeights(target, name, flags) });
  }
  const links = new Map<string, Link>();
  const voices: Voice[] = [];
  const close = async () => {
    for (const voice of voices) await voice.close();
    for (const link of links.values()) await link.close();
  };
  try {
    for (const [i, { target, weights }] of asked.entries()) {
      const { address, model } = target.settings;
      const link = links.get(address) ?? (await Link.open(target, tag));
      links.set(address, link);
      voices.push(await link.voice(names[i] ?? weights?.name ?? model, weights));
    }
    return { voices, close };
  } catch (error) {
    await close();
    return serverFault(error);
  }
}
