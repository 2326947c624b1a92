/** Where the endpoint's models come from; who names and loads them is the caller's. */
import type { ChatModel } from "../../chat/answer.ts";

export interface ModelCard {
  /** By which clients ask for it. */
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
}

export interface AskedModel {
  readonly model: ChatModel;
  /** Of the weights: another one when what the name stands for has moved. */
  readonly fingerprint: string;
}

export interface ModelSource {
  list(): Promise<readonly ModelCard[]>;
  /**
   * Works with the model that a name stands for now, which stays loaded meanwhile. Where the server lost it, it is loaded anew and
   * `work` is called again, unless `hasBegun` says that its answer is on its way. Fails with RlcliError (RL9009 for an unknown name).
   */
  use<T>(id: string, work: (asked: AskedModel) => Promise<T>, hasBegun: () => boolean): Promise<T>;
}
