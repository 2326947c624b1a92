/** Counts what an import did, so that nothing is left out in silence. */
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import type { Rejection } from "./row.ts";

/** Places remembered for each reason. */
const PLACES = 5;

export interface RejectedLines extends Rejection {
  readonly count: number;
  /** The first few, `file:line`. */
  readonly places: readonly string[];
}

export interface ImportStatistics {
  /** Lines that were not empty. */
  readonly lines: number;
  readonly rows: number;
  readonly rejected: readonly RejectedLines[];
  /** The same as counts by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  /** Turns without text that were dropped from rows that were kept. */
  readonly emptyTurns: number;
  readonly toolTurns: number;
  /** Format of each source, by name. */
  readonly formats: Readonly<Record<string, string>>;
}

export class Tally {
  lines = 0;
  rows = 0;
  emptyTurns = 0;
  toolTurns = 0;
  readonly #rejected = new Map<string, { rejection: Rejection; count: number; places: string[] }>();
  readonly #formats = new Map<string, string>();

  sawFormat(source: string, format: string): void {
    this.#formats.set(source, format);
  }

  reject(file: string, line: number, rejection: Rejection): void {
    const key = `${rejection.kind}: ${rejection.reason}`;
    const entry = this.#rejected.get(key) ?? { rejection, count: 0, places: [] };
    this.#rejected.set(key, entry);
    entry.count += 1;
    if (entry.places.length < PLACES) entry.places.push(`${file}:${line}`);
  }

  statistics(): ImportStatistics {
    const rejected = [...this.#rejected.values()]
      .map(({ rejection: { kind, reason }, count, places }) => ({ kind, reason, count, places }))
      .sort((a, b) => b.count - a.count);
    const { lines, rows, emptyTurns, toolTurns } = this;
    const dropped = Object.fromEntries(rejected.map((r) => [r.reason, r.count]));
    return { lines, rows, rejected, dropped, emptyTurns, toolTurns, formats: Object.fromEntries(this.#formats) };
  }
}

/** `12 lines: not valid JSON (a.jsonl:3, a.jsonl:9, …)` */
export function describeRejected({ reason, count, places }: RejectedLines): string {
  const more = count > places.length ? ", …" : "";
  return `${count} ${count === 1 ? "line" : "lines"}: ${reason} (${places.join(", ")}${more})`;
}

/** One warning for each reason for which damaged lines were left out. */
export function importWarnings({ rejected }: ImportStatistics, expected: string): Diagnostic[] {
  return rejected
    .filter((r) => r.kind === "damaged")
    .map((r) => {
      const place = /^(.*):(\d+)$/.exec(r.places[0] ?? "");
      const at = { line: Number(place?.[2] ?? 1), column: 1, offset: 0 };
      const range = { file: place?.[1] ?? "", start: at, end: at };
      return diagnostic("RL6005", `Left out ${describeRejected(r)}. A line should look like ${expected}.`, { range });
    });
}
