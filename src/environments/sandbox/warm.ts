/**
 * Sandboxes that are started ahead of who is going to ask for them. They take places and memory like any other, but only such that
 * nobody waits for, and give way to whoever is here already; each is handed out once.
 */
import type { Budget } from "./budget.ts";
import type { SandboxOrder } from "./sandbox.ts";

/** Starts ahead at once: those that are asked for come first on the daemon. */
const MOST_STARTING = 4;
/** One that waited longer is not handed out: its own end would be near. */
export const LONGEST_IDLE_MS = 600_000;

/** What a pool needs to know of a sandbox. */
export interface Warmable {
  /** False where it ended meanwhile. */
  isAlive(): Promise<boolean>;
  close(): Promise<void>;
}

/** Starts one that holds a place until it is closed; gives the place back where it fails. */
export type StartAhead<S> = (order: SandboxOrder, release: () => void) => Promise<S>;

interface Warm<S> {
  readonly bytes: number;
  /** Undefined where it could not be started. Whoever asks then starts one and hears why not. */
  readonly sandbox: Promise<S | undefined>;
  /** Of `performance.now()`. */
  readonly since: number;
}

/** One sandbox that is going to be asked for. */
export interface Expectation {
  readonly order: SandboxOrder;
}

interface Expected<S> extends Expectation {
  readonly key: string;
  warm: Warm<S> | undefined;
  /** One was started for it; where that was given up for somebody else, there is no second. */
  isSpent: boolean;
}

export class WarmPool<S extends Warmable> {
  readonly #budget: Budget;
  readonly #start: StartAhead<S>;
  /** In the order in which they are likely to be asked for. */
  readonly #expected: Expected<S>[] = [];
  #starting = 0;
  #isClosed = false;

  constructor(budget: Budget, start: StartAhead<S>) {
    this.#budget = budget;
    this.#start = start;
  }

  /** Starts one ahead as soon as there is room. Either `take` or `cancel` must follow. */
  expect(order: SandboxOrder): Expectation {
    const expected: Expected<S> = { order, key: JSON.stringify(order), warm: undefined, isSpent: false };
    this.#expected.push(expected);
    this.fill();
    return expected;
  }

  /** Starts what is expected while there is room that nobody waits for. */
  fill(): void {
    for (const expected of this.#expected) {
      if (this.#isClosed || this.#starting >= MOST_STARTING) return;
      if (expected.isSpent) continue;
      const release = this.#budget.tryTake(expected.order.memoryBytes);
      if (!release) return;
      expected.isSpent = true;
      expected.warm = this.#warm(expected.order, release);
    }
  }

  #warm(order: SandboxOrder, release: () => void): Warm<S> {
    this.#starting += 1;
    const started = this.#start(order, release)
      .catch(() => undefined)
      .finally(() => {
        this.#starting -= 1;
        this.fill();
      });
    return { bytes: order.memoryBytes, sandbox: started, since: performance.now() };
  }

  /** The one that was started for it, or another of the same kind; undefined where there is none that works. */
  async take(expectation: Expectation): Promise<S | undefined> {
    const warm = this.#withdraw(expectation);
    const sandbox = await warm?.sandbox;
    if (!warm || !sandbox) return undefined;
    const isGood = performance.now() - warm.since < LONGEST_IDLE_MS && (await sandbox.isAlive().catch(() => false));
    if (isGood) return sandbox;
    closeWarm(warm);
    return undefined;
  }

  /** It will not be asked for: what was started for it is another's, or goes. */
  cancel(expectation: Expectation): void {
    const warm = this.#withdraw(expectation, false);
    if (!warm) return;
    const { order } = expectation;
    const heir = this.#expected.find(({ key, warm: own }) => key === JSON.stringify(order) && !own);
    if (heir) Object.assign(heir, { warm, isSpent: true });
    else closeWarm(warm);
  }

  #withdraw(expectation: Expectation, isBorrowing = true): Warm<S> | undefined {
    const at = this.#expected.indexOf(expectation as Expected<S>);
    const [own] = at < 0 ? [] : this.#expected.splice(at, 1);
    if (!own || own.warm || !isBorrowing) return own?.warm;
    const lender = this.#expected.find(({ key, warm }) => key === own.key && warm);
    const warm = lender?.warm;
    // The lender stands where the borrower stood.
    if (lender) Object.assign(lender, { warm: undefined, isSpent: own.isSpent });
    return warm;
  }

  /** Gives up as many as make room for one that is asked for now, those that are expected last first. */
  yieldTo(bytes: number): void {
    const lacking = this.#budget.lacking(bytes);
    let [places, memory] = [lacking.places, lacking.bytes];
    for (const expected of this.#expected.toReversed()) {
      if (places <= 0 && memory <= 0) return;
      if (!expected.warm) continue;
      places -= 1;
      memory -= expected.warm.bytes;
      closeWarm(expected.warm);
      expected.warm = undefined;
    }
  }

  /** Starts none any more, and gives up all. */
  close(): void {
    this.#isClosed = true;
    for (const { warm } of this.#expected.splice(0)) if (warm) closeWarm(warm);
  }
}

/** What cannot be removed now is removed, or told, when the host is closed. */
function closeWarm<S extends Warmable>({ sandbox }: Warm<S>): void {
  sandbox.then((started) => started?.close()).catch(() => {});
}
