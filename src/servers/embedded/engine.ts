/**
 * All computation of one server, without threads or HTTP: the base model, models in training, snapshots being sampled.
 * Operations on models run one after another; sampling goes on between them in turns.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writeFileWhole } from "../../files.ts";
import {
  type CheckpointInfo,
  type CheckpointPath,
  checkpointFolder,
  type LoraSettings,
  type ModelRole,
} from "../checkpoints.ts";
import type { Architecture } from "./architecture.ts";
import { joinMoments, OPTIMIZER_FILE, readInfo, readVerified, splitMoments, writeArchive } from "./archive.ts";
import { Decoder } from "./decoder.ts";
import { type ArrayTree, arrayOf, type Jax } from "./jax.ts";
import { Kernels } from "./kernels.ts";
import { layOut, ownNames, tensorFiles } from "./layout.ts";
import { initialAdapter, mergeAdapter } from "./lora.ts";
import type { ComputeSettings, ModelFacts, Operation, ResultOf, SaveOrder } from "./messages.ts";
import { encodeTensors, readTensors, type Tensor, type Tensors } from "./safetensors.ts";
import { CANCELLED, type Decode, Sampler } from "./sampler.ts";
import { loadDecode } from "./text.ts";
import { type OptimizerState, RequestError, Trainer } from "./trainer.ts";
import { type Model, PROJECTIONS, parameterCount, projectionShape, VALUE_HEAD } from "./weights.ts";

interface TrainedModel {
  readonly trainer: Trainer;
  readonly lora: LoraSettings | null;
  readonly role: ModelRole;
}

/** Describes sampler weights without a name, which have no checkpoint.json. */
const UNNAMED_FILE = "unnamed.json";
export interface EngineHooks {
  /** Called when there is new work for `sampleTurn`. */
  readonly onSampling?: () => void;
  /** Awaited between the batches of a pass: the time for samples. */
  readonly pause?: () => Promise<void>;
}

const MOST_PASS_BYTES = 2 ** 31;
/** Snapshots kept in memory; others are read again from their folder. */
const MOST_SNAPSHOTS = 8;

export class Engine {
  readonly #settings: ComputeSettings;
  readonly #jax: Jax;
  readonly #kernels: Kernels;
  readonly #base: Model;
  readonly #baseDecoder: Decoder;
  readonly #models = new Map<string, TrainedModel>();
  /** By folder, least recently used first. */
  readonly #snapshots = new Map<string, Decoder>();
  readonly #sampler = new Sampler();
  /** Samples whose weights are being read, and whether they were cancelled meanwhile. */
  readonly #opening = new Map<string, { isCancelled: boolean }>();
  readonly #onSampling: () => void;
  #frozen: ArrayTree | undefined;
  #decode: Decode | undefined;

  constructor(jax: Jax, base: Model, settings: ComputeSettings, { onSampling, pause }: EngineHooks = {}) {
    this.#onSampling = onSampling ?? (() => {});
    this.#settings = settings;
    this.#jax = jax;
    this.#kernels = new Kernels(jax, pause);
    this.#base = base;
    this.#baseDecoder = new Decoder(base);
  }

  get facts(): ModelFacts {
    const { architecture } = this.#base;
    const { vocabSize, contextLength, eosTokens } = architecture;
    const mostRank = Math.min(...PROJECTIONS.flatMap((projection) => projectionShape(architecture, projection)));
    const mostTrainedTokens = Math.min(contextLength, longestTrainable(architecture));
    const parameters = parameterCount(architecture);
    return { vocabSize, contextLength, mostTrainedTokens, eosTokens, mostRank, parameters };
  }

  get isSampling(): boolean {
    return this.#sampler.hasWork;
  }

  /** Moves all samples in flight on by a token or so. */
  sampleTurn(): void {
    this.#sampler.turn();
  }

  /**
   * Carries out one operation. A sample's promise settles in a later `sampleTurn`; all others must be awaited before the
   * next is given. Throws RequestError for what the sender can mend, and leaves models as they were.
   */
  async run<O extends Operation>(operation: O): Promise<ResultOf<O>> {
    return (await this.#run(operation)) as ResultOf<O>;
  }

  #run(operation: Operation): Promise<unknown> | unknown {
    switch (operation.op) {
      case "create":
        return this.#create(operation.model, operation.lora, operation.role);
      case "load":
        return this.#load(operation.model, operation.folder, operation.optimizer);
      case "unload":
        return this.#unload(operation.model);
      case "pass": {
        const { trainer } = this.#find(operation.model);
        const { data, loss } = operation;
        return operation.backward ? trainer.forwardBackward(data, loss) : trainer.forward(data, loss);
      }
      case "optim":
        return this.#find(operation.model).trainer.optimStep(operation.params);
      case "saveWeights":
        return this.#saveWeights(operation.model, operation.order);
      case "saveSampler":
        return this.#saveSampler(operation);
      case "saveUnnamed":
        return this.#saveUnnamed(operation.model, operation.folder);
      case "sample":
        return this.#sample(operation);
      case "cancel":
        this.#cancel(operation.ticket);
        return null;
      default:
        return operation satisfies never;
    }
  }

  #find(model: string): TrainedModel {
    const found = this.#models.get(model);
    if (found === undefined) throw new RequestError(`Model ${model} is not loaded.`);
    return found;
  }

  #create(model: string, lora: LoraSettings | null, role: ModelRole): null {
    const { slots } = this.#settings;
    if (this.#models.size >= slots)
      throw new RequestError(
        `All ${slots} model slots of this server are taken. Unload a model, end its session, or give the server more slots.`,
      );
    const trainer = new Trainer(this.#kernels, {
      architecture: this.#base.architecture,
      trainable: this.#initial(lora, role),
      output: role === "critic" ? "values" : "logprobs",
      ...(lora === null ? { frozen: {} } : { frozen: this.#frozenBase(), adapterScale: lora.alpha / lora.rank }),
    });
    this.#models.set(model, { trainer, lora, role });
    return null;
  }

  /** What a model starts from. A critic's head is zero, so that its first values are. */
  #initial(lora: LoraSettings | null, role: ModelRole): Tensors {
    const { architecture, tensors } = this.#base;
    const own = lora === null ? tensors : initialAdapter(architecture, lora);
    const { hiddenSize } = architecture;
    const head = { shape: [1, hiddenSize], data: new Float32Array(hiddenSize) };
    return role === "critic" ? new Map([...own, [VALUE_HEAD, head]]) : own;
  }

  /** The base model's arrays, uploaded once and shared by all adapters. */
  #frozenBase(): ArrayTree {
    if (this.#frozen === undefined) {
      this.#frozen = {};
      for (const [name, { data, shape }] of this.#base.tensors) this.#frozen[name] = arrayOf(this.#jax, data, shape);
    }
    return this.#frozen;
  }

  #unload(model: string): null {
    this.#models.get(model)?.trainer.dispose();
    this.#models.delete(model);
    return null;
  }

  async #load(model: string, folder: string, withOptimizer: boolean): Promise<null> {
    const found = this.#find(model);
    const info = await readInfo(folder);
    if (describeModel(info) !== describeModel(found))
      throw new RequestError(
        `The checkpoint is ${describeModel(info)}, the model ${describeModel(found)}: they do not fit.`,
      );
    const weights = this.#checkTrainable(await readWeights(folder, info), info, folder);
    found.trainer.restore(weights, withOptimizer ? await this.#readOptimizer(folder, info) : undefined);
    return null;
  }

  async #readOptimizer(folder: string, info: CheckpointInfo): Promise<OptimizerState> {
    const { first, second } = splitMoments(await readVerified(folder, OPTIMIZER_FILE, info));
    const check = (moments: Tensors) => this.#checkTrainable(moments, info, folder);
    return { step: info.step, first: check(first), second: check(second) };
  }

  #checkTrainable(found: Tensors, { lora, role }: Pick<CheckpointInfo, "lora" | "role">, folder: string): Tensors {
    for (const [name, { data }] of this.#initial(lora, role))
      if (found.get(name)?.data.length !== data.length)
        throw new RequestError(`The checkpoint in ${folder} lacks ${name}, or has it in another shape.`);
    return found;
  }

  async #saveWeights(model: string, order: SaveOrder): Promise<CheckpointInfo> {
    const { trainer, lora, role } = this.#find(model);
    const optimizer = encodeTensors(joinMoments(await trainer.exportOptimizer()));
    const weights = layOut(await trainer.exportWeights(), lora, this.#settings.modelFolder);
    const path: CheckpointPath = { run: model, kind: "weights", name: order.name };
    const files = new Map([...weights, [OPTIMIZER_FILE, optimizer]]);
    return writeArchive(this.#settings, path, { order, lora, role, step: trainer.step, files });
  }

  async #saveSampler({ model, kind, order }: Extract<Operation, { op: "saveSampler" }>): Promise<CheckpointInfo> {
    const { trainer, lora, role } = this.#findPolicy(model);
    const files = layOut(await trainer.exportWeights(), lora, this.#settings.modelFolder);
    const path: CheckpointPath = { run: model, kind, name: order.name };
    // The name may have been used before, by a checkpoint that was deleted or is replaced now.
    this.#snapshots.delete(checkpointFolder(this.#settings.serverFolder, path));
    return writeArchive(this.#settings, path, { order, lora, role, step: trainer.step, files });
  }

  /** For the rest of a session: not synced and not listed, but files, so that many of them do not fill the memory. */
  async #saveUnnamed(model: string, folder: string): Promise<null> {
    const { trainer, lora, role } = this.#findPolicy(model);
    const weights = await trainer.exportWeights();
    mkdirSync(folder, { recursive: true });
    const write = (file: string, bytes: Uint8Array | string) =>
      writeFileWhole(join(folder, file), bytes, { durable: false });
    for (const [file, bytes] of layOut(weights, lora, this.#settings.modelFolder)) write(file, bytes);
    write(UNNAMED_FILE, JSON.stringify({ lora, role }));
    this.#keep(folder, new Decoder(this.#whole(weights, lora)));
    return null;
  }

  #findPolicy(model: string): TrainedModel {
    const found = this.#find(model);
    if (found.role === "critic")
      throw new RequestError(`Model ${model} is a critic: there is nothing to sample from it.`);
    return found;
  }

  /** Trained weights in the base's form. */
  #whole(weights: Tensors, lora: LoraSettings | null): Model {
    return lora === null
      ? { architecture: this.#base.architecture, tensors: weights }
      : mergeAdapter(this.#base, weights, lora);
  }

  async #sample({ source, request, ticket }: Extract<Operation, { op: "sample" }>) {
    const opening = { isCancelled: false };
    this.#opening.set(ticket, opening);
    let decoder: Decoder;
    try {
      decoder = "base" in source ? this.#baseDecoder : await this.#openSnapshot(source.folder);
    } finally {
      this.#opening.delete(ticket);
    }
    if (opening.isCancelled) throw new RequestError(CANCELLED);
    if (request.stopStrings.length > 0) this.#decode ??= loadDecode(this.#settings.modelFolder);
    const sampled = this.#sampler.sample(decoder, request, this.#decode, ticket);
    this.#onSampling();
    return sampled;
  }

  #cancel(ticket: string): void {
    const opening = this.#opening.get(ticket);
    if (opening) opening.isCancelled = true;
    else this.#sampler.cancel(ticket);
  }

  async #openSnapshot(folder: string): Promise<Decoder> {
    const known = this.#snapshots.get(folder);
    if (known) {
      this.#snapshots.delete(folder);
      this.#snapshots.set(folder, known);
      return known;
    }
    const unnamed = join(folder, UNNAMED_FILE);
    const isUnnamed = existsSync(unnamed);
    const info = isUnnamed ? JSON.parse(readFileSync(unnamed, "utf8")) : await readInfo(folder);
    const found = isUnnamed
      ? ownNames(readTensors(join(folder, tensorFiles(info.lora, false)[0] as string)))
      : await readWeights(folder, info);
    const decoder = new Decoder(this.#whole(this.#checkTrainable(found, info, folder), info.lora));
    this.#keep(folder, decoder);
    return decoder;
  }

  #keep(folder: string, decoder: Decoder): void {
    this.#snapshots.delete(folder);
    this.#snapshots.set(folder, decoder);
    for (const oldest of this.#snapshots.keys()) {
      if (this.#snapshots.size <= MOST_SNAPSHOTS) break;
      this.#snapshots.delete(oldest);
    }
  }
}

/**
 * Longest row whose pass fits into WebAssembly's 4 GiB: an estimate from above of what is alive at once, six arrays as
 * large as all attention scores, six as large as the logits, and about twenty a layer as wide as the MLP.
 */
function longestTrainable({ heads, layers, vocabSize, intermediateSize }: Architecture): number {
  const bytes = (length: number) => 4 * length * (6 * heads * length + 6 * vocabSize + 20 * layers * intermediateSize);
  let length = 32;
  while (bytes(length * 2) <= MOST_PASS_BYTES) length *= 2;
  return length;
}

/** The trained tensors of a checkpoint, verified. */
async function readWeights(folder: string, info: CheckpointInfo): Promise<Tensors> {
  const parts: (readonly [string, Tensor])[] = [];
  for (const file of tensorFiles(info.lora, info.role === "critic"))
    parts.push(...ownNames(await readVerified(folder, file, info)));
  return new Map(parts);
}

/** All that decides which tensors a model trains. */
function describeModel({ lora, role }: Pick<CheckpointInfo, "lora" | "role">): string {
  if (lora === null) return `a ${role} with all weights trained`;
  const { attention, mlp, unembedding } = lora;
  const parts = [attention && "attention", mlp && "MLP", unembedding && "unembedding"].filter(Boolean);
  return `a ${role} with a LoRA adapter of rank ${lora.rank} on ${parts.join(", ")}`;
}
