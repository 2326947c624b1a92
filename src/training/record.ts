/** The files of a run record as its worker holds them: opened together, appended to, closed together. */
import { join } from "node:path";
import { hasErrors, RlcliError } from "../diagnostic.ts";
import { JsonLinesFile, readJsonLines, writeFileWhole } from "../files.ts";
import { type MetricsLine, RUN_RECORD_VERSION, type RunEvent } from "../run-record.ts";
import { CheckpointList, readCheckpoints } from "./checkpoints.ts";
import { Journal, readJournal } from "./journal.ts";
import { WireTrace } from "./wire-trace.ts";

export const RECORD_FILES = {
  order: "spec.json",
  journal: "journal.jsonl",
  metrics: "metrics.jsonl",
  checkpoints: "checkpoints.jsonl",
  events: "events.jsonl",
  worker: "worker.json",
  wire: "wire.jsonl",
} as const;

type EventBody = RunEvent extends infer E ? (E extends RunEvent ? Omit<E, "at"> : never) : never;

/** One line a step: a step that is done again after a crash is not written twice, one that is rolled back is taken out. */
class Metrics {
  readonly #path: string;
  #file: JsonLinesFile;
  #last: MetricsLine | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#file = new JsonLinesFile(path, RUN_RECORD_VERSION);
    this.#last = readJsonLines<MetricsLine>(path).values.at(-1);
  }

  get last(): MetricsLine | undefined {
    return this.#last;
  }

  add(line: MetricsLine): void {
    if (this.#last && line.step <= this.#last.step) return;
    this.#file.append(line);
    this.#last = line;
  }

  rollBack(to: number): void {
    if ((this.#last?.step ?? 0) <= to) return;
    const kept = readJsonLines<MetricsLine>(this.#path).values.filter((line) => line.step <= to);
    this.#file.close();
    const lines = [{ formatVersion: RUN_RECORD_VERSION }, ...kept].map((line) => `${JSON.stringify(line)}\n`);
    writeFileWhole(this.#path, lines.join(""));
    this.#file = new JsonLinesFile(this.#path, RUN_RECORD_VERSION);
    this.#last = kept.at(-1);
  }

  close(): void {
    this.#file.close();
  }
}

export class RunRecord {
  readonly journal: Journal;
  readonly checkpoints: CheckpointList;
  readonly metrics: Metrics;
  readonly wire: WireTrace;
  readonly #events: JsonLinesFile;
  readonly #now: () => Date;

  /** Fails with RL3007 where the journal or the checkpoint list is damaged: guessing could repeat or lose a step. */
  constructor(folder: string, now: () => Date) {
    const path = (file: keyof typeof RECORD_FILES) => join(folder, RECORD_FILES[file]);
    const journal = readJournal(path("journal"));
    const checkpoints = readCheckpoints(path("checkpoints"));
    const diagnostics = [...journal.diagnostics, ...checkpoints.diagnostics];
    if (hasErrors(diagnostics)) throw new RlcliError(diagnostics);
    this.#now = now;
    this.journal = new Journal(path("journal"), journal.state);
    this.checkpoints = new CheckpointList(path("checkpoints"), checkpoints.list);
    this.metrics = new Metrics(path("metrics"));
    this.wire = new WireTrace(path("wire"), now);
    this.#events = new JsonLinesFile(path("events"), RUN_RECORD_VERSION);
  }

  /** Time for an entry. */
  at(): string {
    return this.#now().toISOString();
  }

  emit(event: EventBody): void {
    this.#events.append({ ...event, at: this.at() });
  }

  phase(phase: string, detail?: string): void {
    this.emit({ t: "phase", phase, ...(detail === undefined ? {} : { detail }) });
  }

  close(): void {
    this.journal.close();
    this.checkpoints.close();
    this.metrics.close();
    this.wire.close();
    this.#events.close();
  }
}
