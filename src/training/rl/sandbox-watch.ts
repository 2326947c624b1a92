/** Tells how many sandboxes a run's environments have, while it is at work. */
import type { SandboxMeter } from "../../environments/sandbox/meter.ts";
import type { SandboxCount } from "../../run-record.ts";
import type { RlRun } from "./rl-run.ts";

const EVERY_MS = 1000;

export class SandboxWatch {
  readonly #run: RlRun;
  /** The run's own first, then those of its evals. */
  readonly #meters: readonly SandboxMeter[];
  readonly #timer: NodeJS.Timeout | undefined;
  #told: string | undefined;

  constructor(run: RlRun) {
    const { environment, evals } = run.parts;
    this.#run = run;
    this.#meters = [environment, ...evals.map((one) => one.environment)].flatMap(({ sandboxes }) => sandboxes ?? []);
    if (this.#meters.length > 0) this.#timer = setInterval(() => this.#tick(), EVERY_MS).unref();
  }

  /** A disk that takes no more is told by what must be written: nothing is lost with this. */
  #tick(): void {
    try {
      this.tell();
    } catch {}
  }

  /** The number now, where it is not what was told last. */
  tell(): void {
    const sandboxes = countOf(this.#meters);
    const words = JSON.stringify(sandboxes);
    if (!sandboxes || words === this.#told) return;
    this.#told = words;
    const { record } = this.#run;
    record.emit({ t: "sandboxes", step: record.journal.state.done + 1, sandboxes });
  }

  /** Most at once in the run's own environment since this was last asked; undefined where it has none. */
  takeMost(): SandboxCount | undefined {
    const meter = this.#run.parts.environment.sandboxes;
    return meter && { inUse: meter.takeMost(), places: meter.places };
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Of the environments that are at work; of the first where none is. */
function countOf(meters: readonly SandboxMeter[]): SandboxCount | undefined {
  const busy = meters.filter(({ inUse }) => inUse > 0);
  const shown = busy.length > 0 ? busy : meters.slice(0, 1);
  if (shown.length === 0) return undefined;
  const sum = (of: "inUse" | "places") => shown.reduce((total, meter) => total + meter[of], 0);
  return { inUse: sum("inUse"), places: sum("places") };
}
