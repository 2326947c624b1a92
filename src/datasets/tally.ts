/** Counts what an import did, so that nothing is left out in silence. */
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import type { RedactionCounts } from "./redact.ts";
import type { Rejection } from "./row.ts";

/** Places remembered for each reason. */
const PLACES = 5;

/** Where a line was left out. `excerpt`: what stood there, without secrets, where the line was damaged. */
export interface Place {
  readonly line: number;
  readonly column: number;
  readonly excerpt?: string;
}

export interface RejectedLines extends Rejection {
  readonly count: number;
  /** The first few, `file:line:column`. */
  readonly places: readonly string[];
  /** What stood at those places, for damaged lines. */
  readonly excerpts?: readonly string[];
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
  /** What was redacted, by type; only where redaction was asked for. */
  readonly redacted?: Readonly<RedactionCounts>;
}

interface Rejected {
  readonly rejection: Rejection;
  count: number;
  readonly places: Place[];
}

/** Counts of one block of lines; lines are numbered from the block's first. Plain data but for the map, so a thread can send it. */
export class BlockTally {
  /** Places kept for each reason. */
  readonly mostPlaces: number;
  lines = 0;
  emptyTurns = 0;
  toolTurns = 0;
  readonly redacted: RedactionCounts = {};
  readonly rejected = new Map<string, Rejected>();

  constructor(mostPlaces = PLACES) {
    this.mostPlaces = mostPlaces;
  }

  /** `place` is made only where it is kept. */
  reject(rejection: Rejection, place: () => Place): void {
    const key = `${rejection.kind}: ${rejection.reason}`;
    const { kind, reason } = rejection;
    const entry = this.rejected.get(key) ?? { rejection: { kind, reason }, count: 0, places: [] };
    this.rejected.set(key, entry);
    entry.count += 1;
    if (entry.places.length < this.mostPlaces) entry.places.push(place());
  }
}

/** A line that gave no row. Lines and columns from 1. */
export interface DroppedLine extends Rejection, Place {
  readonly file: string;
}

/** Sums over everything that was read. */
export class Tally {
  /** Told of every line that gave no row, where all are asked for (`ConvertRequest.reportsAll`). */
  readonly #onDrop: ((dropped: DroppedLine) => void) | undefined;
  lines = 0;
  rows = 0;
  emptyTurns = 0;
  toolTurns = 0;
  /** Damaged lines so far. */
  damaged = 0;
  redacted: RedactionCounts | undefined;
  readonly #rejected = new Map<string, { rejection: Rejection; count: number; places: string[]; excerpts: string[] }>();
  readonly #formats = new Map<string, string>();

  constructor(onDrop?: (dropped: DroppedLine) => void) {
    this.#onDrop = onDrop;
  }

  sawFormat(source: string, format: string): void {
    this.#formats.set(source, format);
  }

  /** Adds a block of a file whose first line has the number `firstLine`. */
  add(file: string, firstLine: number, block: BlockTally): void {
    this.lines += block.lines;
    this.emptyTurns += block.emptyTurns;
    this.toolTurns += block.toolTurns;
    for (const [type, count] of Object.entries(block.redacted)) {
      this.redacted ??= {};
      this.redacted[type] = (this.redacted[type] ?? 0) + count;
    }
    for (const { rejection, count, places } of block.rejected.values())
      this.#count(file, firstLine - 1, rejection, count, places);
  }

  /** One line, or a row that has no line of its own. */
  reject(file: string, rejection: Rejection, place?: Place): void {
    this.#count(file, 0, rejection, 1, place ? [place] : []);
  }

  #count(file: string, before: number, rejection: Rejection, count: number, places: readonly Place[]): void {
    const { kind, reason } = rejection;
    const key = `${kind}: ${reason}`;
    const entry = this.#rejected.get(key) ?? { rejection: { kind, reason }, count: 0, places: [], excerpts: [] };
    this.#rejected.set(key, entry);
    entry.count += count;
    if (kind === "damaged") this.damaged += count;
    if (this.#onDrop)
      for (const place of places) this.#onDrop({ file, ...place, line: before + place.line, kind, reason });
    for (const { line, column, excerpt } of places.slice(0, PLACES - entry.places.length)) {
      entry.places.push(`${file}:${before + line}:${column}`);
      if (excerpt !== undefined) entry.excerpts.push(excerpt);
    }
  }

  statistics(): ImportStatistics {
    const rejected = [...this.#rejected.values()]
      .map(({ rejection: { kind, reason }, count, places, excerpts }) => {
        return { kind, reason, count, places, ...(excerpts.length > 0 ? { excerpts } : {}) };
      })
      .sort((a, b) => b.count - a.count);
    const { lines, rows, emptyTurns, toolTurns, redacted } = this;
    const dropped = Object.fromEntries(rejected.map((r) => [r.reason, r.count]));
    const formats = Object.fromEntries(this.#formats);
    return { lines, rows, rejected, dropped, emptyTurns, toolTurns, formats, ...(redacted ? { redacted } : {}) };
  }
}

/** `12 lines: not valid JSON (a.jsonl:3:1, a.jsonl:9:14, …)` */
export function describeRejected({ reason, count, places }: RejectedLines): string {
  const more = count > places.length ? ", …" : "";
  const where = places.length > 0 ? ` (${places.join(", ")}${more})` : "";
  return `${count} ${count === 1 ? "line" : "lines"}: ${reason}${where}`;
}

/** One warning for each reason for which damaged lines were left out. */
export function importWarnings({ rejected }: ImportStatistics, expected: string): Diagnostic[] {
  return rejected.filter((r) => r.kind === "damaged").map((r) => damagedDiagnostic(r, expected));
}

/** A damaged line as a diagnostic: a warning, or with `severity` the error that ends a strict import. */
export function damagedDiagnostic(lines: RejectedLines, expected: string, severity?: "error"): Diagnostic {
  const place = /^(.*):(\d+):(\d+)$/s.exec(lines.places[0] ?? "");
  const at = { line: Number(place?.[2] ?? 1), column: Number(place?.[3] ?? 1), offset: 0 };
  const range = { file: place?.[1] ?? "", start: at, end: at };
  const excerpt = lines.excerpts?.[0] ? ` There stands \`${lines.excerpts[0]}\`.` : "";
  const detail = `Left out ${describeRejected(lines)}.${excerpt} A line should look like ${expected}.`;
  return diagnostic(severity ? "RL6014" : "RL6005", detail, { range });
}
