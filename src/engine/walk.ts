/**
 * The order of work: a change starts when all it needs is done, when a lane is free, and when each server it needs has a
 * free slot. Something that ends in any other way keeps what needs it from starting; the rest goes on.
 */
import type { Address } from "../address.ts";
import type { Change } from "../change.ts";

export interface WalkOptions {
  readonly parallelism: number;
  /** How many changes that take a slot an address hosts at once; undefined for one that hosts nothing. */
  slotsOf(address: Address): number | undefined;
  takesSlot(change: Change): boolean;
  /** Once true nothing new starts. */
  isStopped(): boolean;
}

export class Walk {
  readonly #options: WalkOptions;
  /** In plan order, so that ready work starts in it. */
  readonly #waiting: Map<Address, Change>;
  readonly #unmet = new Map<Address, number>();
  readonly #dependents = new Map<Address, Address[]>();
  readonly #inUse = new Map<Address, number>();
  readonly #ready: Change[] = [];
  #running = 0;

  constructor(changes: readonly Change[], options: WalkOptions) {
    this.#options = options;
    this.#waiting = new Map(changes.map((change) => [change.address, change]));
    for (const change of changes) {
      const needs = change.dependsOn.filter((need) => this.#waiting.has(need));
      this.#unmet.set(change.address, needs.length);
      for (const need of needs) {
        const list = this.#dependents.get(need);
        if (list) list.push(change.address);
        else this.#dependents.set(need, [change.address]);
      }
      if (needs.length === 0) this.#ready.push(change);
    }
  }

  /** Resolves when nothing runs and nothing more can start. A throw of `work` is a bug: it rejects once the rest has ended. */
  run(work: (change: Change) => Promise<"done" | "blocked">): Promise<void> {
    return new Promise((resolve, reject) => {
      let bug: { error: unknown } | undefined;
      const step = (): void => {
        while (!bug && !this.#options.isStopped() && this.#running < this.#options.parallelism) {
          const change = this.#takeReady();
          if (!change) break;
          this.#running += 1;
          work(change)
            .then(
              (end) => {
                if (end === "done") this.#release(change);
              },
              (error: unknown) => {
                bug ??= { error };
              },
            )
            .finally(() => {
              this.#running -= 1;
              this.#free(change);
              step();
            });
        }
        if (this.#running > 0) return;
        if (bug) reject(bug.error);
        else resolve();
      };
      step();
    });
  }

  #takeReady(): Change | undefined {
    const at = this.#ready.findIndex((change) => this.#hosts(change).every((host) => this.#hasRoom(host)));
    if (at < 0) return undefined;
    const [change] = this.#ready.splice(at, 1) as [Change];
    for (const host of this.#hosts(change)) this.#inUse.set(host, (this.#inUse.get(host) ?? 0) + 1);
    return change;
  }

  #hosts(change: Change): readonly Address[] {
    if (!this.#options.takesSlot(change)) return [];
    return change.dependsOn.filter((need) => this.#options.slotsOf(need) !== undefined);
  }

  #hasRoom(host: Address): boolean {
    return (this.#inUse.get(host) ?? 0) < (this.#options.slotsOf(host) ?? 0);
  }

  #free(change: Change): void {
    for (const host of this.#hosts(change)) this.#inUse.set(host, (this.#inUse.get(host) ?? 1) - 1);
  }

  #release(change: Change): void {
    for (const address of this.#dependents.get(change.address) ?? []) {
      const left = (this.#unmet.get(address) ?? 0) - 1;
      this.#unmet.set(address, left);
      const next = this.#waiting.get(address);
      if (left === 0 && next) this.#ready.push(next);
    }
  }
}
