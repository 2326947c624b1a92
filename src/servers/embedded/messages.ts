/** What the HTTP side and the compute thread say to each other. Everything here survives a structured clone. */
import type { Diagnostic } from "../../diagnostic.ts";
import type { CheckpointInfo, LoraSettings, ModelRole } from "../checkpoints.ts";
import type { Datum } from "./batch.ts";
import type { SampleRequest, SampleResult } from "./sampler.ts";
import type { AdamParams, LossCall, PassResult } from "./trainer.ts";

export interface ComputeSettings {
  readonly modelFolder: string;
  /** Where checkpoints lie: the server's folder. */
  readonly serverFolder: string;
  /** The base model as clients name it, written into checkpoints. */
  readonly baseModel: string;
  /** Most models in training at a time. */
  readonly slots: number;
}

/** What the HTTP side must know of the model to check requests. */
export interface ModelFacts {
  readonly vocabSize: number;
  readonly contextLength: number;
  /** Longest row that can be trained in the memory there is; at most the context length. */
  readonly mostTrainedTokens: number;
  readonly eosTokens: readonly number[];
  readonly parameters: number;
  /** Largest LoRA rank that makes sense: the smallest side of a projection. */
  readonly mostRank: number;
}

/** How a checkpoint is to be described; the compute thread adds sizes, digests and the step. */
export interface SaveOrder {
  readonly name: string;
  readonly userMetadata: Readonly<Record<string, string>> | null;
  readonly expiresAt: string | null;
}

/** The weights to sample from: the base model, or a folder with sampler weights. */
export type WeightSource = { readonly base: true } | { readonly folder: string };

export type Operation =
  | { readonly op: "create"; readonly model: string; readonly lora: LoraSettings | null; readonly role: ModelRole }
  | { readonly op: "load"; readonly model: string; readonly folder: string; readonly optimizer: boolean }
  | { readonly op: "unload"; readonly model: string }
  | {
      readonly op: "pass";
      readonly model: string;
      readonly data: readonly Datum[];
      readonly loss: LossCall;
      readonly backward: boolean;
    }
  | { readonly op: "optim"; readonly model: string; readonly params: AdamParams }
  | { readonly op: "saveWeights"; readonly model: string; readonly order: SaveOrder }
  | {
      readonly op: "saveSampler";
      readonly model: string;
      readonly kind: "sampler_weights" | "external_weights";
      readonly order: SaveOrder;
    }
  | { readonly op: "saveUnnamed"; readonly model: string; readonly folder: string }
  | {
      readonly op: "sample";
      readonly source: WeightSource;
      readonly request: SampleRequest;
      /** By which it can be cancelled. */
      readonly ticket: string;
    }
  | { readonly op: "cancel"; readonly ticket: string };

/** The result of each operation by its name. */
export interface Results {
  readonly create: null;
  readonly load: null;
  readonly unload: null;
  readonly pass: PassResult;
  readonly optim: { readonly gradNorm: number };
  readonly saveWeights: CheckpointInfo;
  readonly saveSampler: CheckpointInfo;
  readonly saveUnnamed: null;
  readonly sample: SampleResult;
  readonly cancel: null;
}

export type ResultOf<O extends Operation> = Results[O["op"]];

export interface OperationMessage {
  readonly id: number;
  readonly operation: Operation;
}

export type ComputeMessage =
  | { readonly t: "ready"; readonly facts: ModelFacts }
  /** The model cannot be run; the thread ends. */
  | { readonly t: "refused"; readonly diagnostics: readonly Diagnostic[] }
  | { readonly t: "done"; readonly id: number; readonly result: Results[Operation["op"]] }
  /** `user`: the request's own fault; `server`: ours. */
  | { readonly t: "failed"; readonly id: number; readonly error: string; readonly category: "user" | "server" };
