/**
 * Which weights a sampler would really sample. On hosted and embedded servers saved weights are snapshots. SkyRL keeps one
 * set for each living model: jax in the place where the model is trained, so that sampling older ones overwrites it;
 * fsdp and megatron in the inference engines, which know only what was pushed last. There a sample from older weights is
 * refused by the client, because the server would answer, and wrongly.
 */
import { SERVER_TRAITS, type ServerKind } from "../quirks.ts";

/** Where in its model's history some weights were saved. */
export interface SavedAt {
  readonly model: string;
  readonly updates: number;
  readonly saves: number;
}

interface History {
  updates: number;
  saves: number;
}

/** The histories of the models that live through one client. */
export class WeightHistory {
  readonly #models = new Map<string, History>();
  readonly #paths = new Map<string, SavedAt>();

  begin(model: string): void {
    this.#models.set(model, { updates: 0, saves: 0 });
  }

  end(model: string): void {
    this.#models.delete(model);
    for (const [path, saved] of this.#paths) if (saved.model === model) this.#paths.delete(path);
  }

  /** A call that changes the weights was submitted. */
  updated(model: string): void {
    const history = this.#models.get(model);
    if (history) history.updates += 1;
  }

  /** A save for sampling was submitted. */
  saved(model: string): SavedAt {
    const history = this.#models.get(model);
    if (!history) return { model, updates: 0, saves: 0 };
    history.saves += 1;
    return { model, ...history };
  }

  named(path: string, at: SavedAt): void {
    this.#paths.set(path, at);
  }

  /** Of a checkpoint; of one that another client saved from a model that lives here, all that is known is that it is older. */
  ofPath(path: string, run: string | undefined): SavedAt | undefined {
    const known = this.#paths.get(path);
    if (known || run === undefined || !this.#models.has(run)) return known;
    return { model: run, updates: -1, saves: -1 };
  }

  /** Why weights cannot be sampled now on this kind of server; undefined where they can. */
  fault(kind: ServerKind, { model, updates, saves }: SavedAt): string | undefined {
    const history = this.#models.get(model);
    const { samplers } = SERVER_TRAITS[kind];
    if (!history || samplers === "snapshots") return undefined;
    const isTrained = samplers === "the model's own" && updates !== history.updates;
    if (!isTrained && saves === history.saves) return undefined;
    const since = isTrained ? "has been trained" : "has saved other weights for sampling";
    return `the model ${since} since these were saved, and a ${kind} server would sample the wrong ones; save anew`;
  }
}
