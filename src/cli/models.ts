/**
 * The models of an endpoint by the names of the command line: runs, deployments, checkpoints, base models. A name is looked up for each
 * request, so that a deployment that moves, or a run that is trained further, is followed. Weights stay loaded while they are used.
 */
import { nameOf } from "../address.ts";
import { fail } from "../diagnostic.ts";
import { digestJson, shortDigest } from "../digest.ts";
import { isManaged, serverFolder } from "../kinds/connect.ts";
import { resultsOf } from "../kinds/run/identity.ts";
import type { AskedModel, ModelCard, ModelSource } from "../servers/openai/source.ts";
import { readRuntime } from "../servers/runtime.ts";
import { didYouMean } from "../suggest.ts";
import { TinkerError } from "../tinker/errors.ts";
import type { CommandContext } from "./context.ts";
import type { OpenProject } from "./project.ts";
import { serverNodes } from "./servers.ts";
import { type AskedWeights, askedWeights, BASE, type Target, targetIn, type WeightFlags } from "./target.ts";
import { Link, type Voice } from "./voices.ts";

interface Loaded {
  readonly voice: Promise<Voice>;
  readonly server: string;
  uses: number;
}

const TAG = "rlcli serve openai";
/** Clients have patience of their own, and are told soon when the server behind does not answer. */
const PATIENCE_MS = 10_000;

export class ModelPool implements ModelSource {
  readonly #context: CommandContext;
  readonly #open: OpenProject;
  readonly #flags: WeightFlags;
  readonly #most: number;
  readonly #startedAt = Math.floor(Date.now() / 1000);
  readonly #links = new Map<string, Promise<Link>>();
  /** By server and weights, the longest unused first. */
  readonly #loaded = new Map<string, Loaded>();

  /** `most`: weights that stay loaded though nobody uses them now. */
  constructor(context: CommandContext, open: OpenProject, flags: WeightFlags, most: number) {
    this.#context = context;
    this.#open = open;
    this.#flags = flags;
    this.#most = most;
  }

  async list(): Promise<readonly ModelCard[]> {
    const { records } = await this.#open.store.list();
    const trained = [...records.values()].flatMap((record) => {
      const isRun = record.address.startsWith("run.") && resultsOf(record)?.training !== undefined;
      const isDeployment = record.address.startsWith("deployment.");
      const created = Math.floor(Date.parse(record.updatedAt) / 1000);
      return isRun || isDeployment ? [{ id: isRun ? nameOf(record.address) : record.address, created }] : [];
    });
    const { checkpoint } = this.#flags;
    const given = checkpoint === undefined ? [] : [{ id: checkpoint, created: this.#startedAt }];
    const bases = this.#baseModels().map(({ model }) => ({ id: model, created: this.#startedAt }));
    const runsFirst = trained.sort((a, b) => Number(a.id.includes(".")) - Number(b.id.includes(".")));
    return [...runsFirst, ...given, ...bases];
  }

  async use<T>(id: string, work: (asked: AskedModel) => Promise<T>, hasBegun: () => boolean): Promise<T> {
    const { target, weights } = await this.#find(id);
    for (let isLast = false; ; isLast = true) {
      try {
        return await this.#with(target, id, weights, work);
      } catch (error) {
        if (isLast || hasBegun() || !isLost(error)) throw error;
        await this.#drop(target.settings.address);
      }
    }
  }

  async close(): Promise<void> {
    for (const { voice } of this.#loaded.values()) await (await voice.catch(() => undefined))?.close();
    for (const server of [...this.#links.keys()]) await this.#drop(server);
  }

  async #find(id: string): Promise<{ readonly target: Target; readonly weights: AskedWeights | undefined }> {
    const base = this.#baseModels().find(({ model }) => model === id);
    if (base)
      return {
        target: targetIn(this.#context, this.#open, { ...this.#flags, server: base.server }),
        weights: undefined,
      };
    const target = targetIn(this.#context, this.#open, this.#flags, id);
    const { checkpoint: _, ...flags } = this.#flags;
    if (!/^(tinker:\/\/|deployment\.|run\.)/.test(id) && id !== BASE && !/^[\w-]+(@[\w]+)?$/.test(id)) {
      const known = (await this.list()).map((card) => card.id);
      fail("RL9009", `There is no model \`${id}\`.${didYouMean(id, known)}`);
    }
    return { target, weights: await askedWeights(target, id, flags) };
  }

  #baseModels(): readonly { readonly model: string; readonly server: string }[] {
    const nodes = serverNodes(this.#open).filter(
      ({ name }) => this.#flags.server === undefined || this.#flags.server === name,
    );
    return nodes.map((node) => ({ model: String(node.body.model ?? ""), server: node.name }));
  }

  async #with<T>(
    target: Target,
    id: string,
    weights: AskedWeights | undefined,
    work: (asked: AskedModel) => Promise<T>,
  ): Promise<T> {
    await this.#forgetDead(target);
    const loaded = this.#load(target, id, weights);
    loaded.uses += 1;
    try {
      const { model, weightsName } = await loaded.voice;
      return await work({ model, fingerprint: `fp_${shortDigest(digestJson(weightsName))}` });
    } finally {
      loaded.uses -= 1;
      await this.#evict();
    }
  }

  #load(target: Target, id: string, weights: AskedWeights | undefined): Loaded {
    const server = target.settings.address;
    const key = JSON.stringify([server, weights?.weights ?? null]);
    const known = this.#loaded.get(key);
    const voice = known?.voice ?? this.#link(target).then((link) => link.voice(id, weights));
    const loaded = known ?? { voice, server, uses: 0 };
    // Used last: to the end.
    this.#loaded.delete(key);
    this.#loaded.set(key, loaded);
    if (!known)
      voice.catch(() => {
        if (this.#loaded.get(key) === loaded) this.#loaded.delete(key);
      });
    return loaded;
  }

  #link(target: Target): Promise<Link> {
    const { address } = target.settings;
    const known = this.#links.get(address);
    if (known) return known;
    const link = Link.open(target, TAG, PATIENCE_MS);
    this.#links.set(address, link);
    link.catch(() => {
      if (this.#links.get(address) === link) this.#links.delete(address);
    });
    return link;
  }

  /** A server of ours that has ended since is seen at once, rather than after all retries of a request to it. */
  async #forgetDead({ settings, open }: Target): Promise<void> {
    const link = await this.#links.get(settings.address)?.catch(() => undefined);
    if (!link || !isManaged(settings)) return;
    const seen = readRuntime(serverFolder(open.context.dataFolder, settings.address));
    const isSame = seen.state === "running" && seen.runtime.serverRun === link.serverRun;
    if (!isSame && settings.backend === "embedded") await this.#drop(settings.address);
  }

  async #evict(): Promise<void> {
    for (const [key, { uses, voice }] of this.#loaded) {
      if (this.#loaded.size <= this.#most) return;
      if (uses > 0) continue;
      this.#loaded.delete(key);
      await (await voice.catch(() => undefined))?.close();
    }
  }

  /** Forgets a server's connection, and what was loaded through it: there is nothing left to free on a server that lost it. */
  async #drop(server: string): Promise<void> {
    const link = this.#links.get(server);
    this.#links.delete(server);
    for (const [key, loaded] of this.#loaded) if (loaded.server === server) this.#loaded.delete(key);
    await (await link?.catch(() => undefined))?.close();
  }
}

/** Whether the server does not know any more what was loaded, or is another one by now. */
function isLost(error: unknown): boolean {
  return error instanceof TinkerError && (error.kind === "gone" || error.kind === "network");
}
