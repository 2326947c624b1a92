/**
 * Timelines in the Trace Event Format (JSON), which Perfetto (ui.perfetto.dev) and Chrome's tracing open: tracks with spans, instants
 * and counters. Times are in microseconds from the epoch.
 */

export interface TraceEvent {
  readonly name: string;
  /** M: names a track; X: a span; i: an instant; C: a counter. */
  readonly ph: "M" | "X" | "i" | "C";
  readonly pid: number;
  readonly tid?: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly s?: "t";
  readonly cat?: string;
  readonly args?: Readonly<Record<string, unknown>>;
}

export interface TraceFile {
  readonly traceEvents: readonly TraceEvent[];
  readonly displayTimeUnit: "ms";
  readonly otherData: Readonly<Record<string, unknown>>;
}

export interface Span {
  readonly name: string;
  /** ISO 8601, or milliseconds since the epoch. */
  readonly from: string | number;
  readonly to: string | number;
  readonly args?: Readonly<Record<string, unknown>>;
}

const micros = (time: string | number): number =>
  Math.round((typeof time === "number" ? time : Date.parse(time)) * 1000);

/** One process of a timeline, with its tracks. */
export class Trace {
  readonly #events: TraceEvent[] = [];
  readonly #tracks = new Map<string, number>();
  readonly #other: Readonly<Record<string, unknown>>;

  constructor(process: string, other: Readonly<Record<string, unknown>> = {}) {
    this.#other = other;
    this.#events.push({ name: "process_name", ph: "M", pid: 1, args: { name: process } });
  }

  /** Spans of one kind: those that overlap lie on tracks of their own, since a track's spans must nest. */
  spans(track: string, spans: readonly Span[]): void {
    const ends: number[] = [];
    for (const { name, from, to, args } of [...spans].sort((a, b) => micros(a.from) - micros(b.from))) {
      const [ts, end] = [micros(from), Math.max(micros(to), micros(from))];
      const free = ends.findIndex((busyUntil) => busyUntil <= ts);
      const lane = free < 0 ? ends.length : free;
      ends[lane] = end;
      const tid = this.#track(lane === 0 ? track : `${track} (${lane + 1})`);
      this.#events.push({ name, ph: "X", pid: 1, tid, ts, dur: end - ts, cat: track, ...(args ? { args } : {}) });
    }
  }

  instant(track: string, name: string, at: string | number, args?: Readonly<Record<string, unknown>>): void {
    const place = { pid: 1, tid: this.#track(track), ts: micros(at) };
    this.#events.push({ name, ph: "i", s: "t", cat: track, ...place, ...(args ? { args } : {}) });
  }

  /** A curve below the tracks. */
  counter(name: string, at: string | number, value: number): void {
    this.#events.push({ name, ph: "C", pid: 1, ts: micros(at), args: { value } });
  }

  file(): TraceFile {
    return { traceEvents: this.#events, displayTimeUnit: "ms", otherData: this.#other };
  }

  #track(name: string): number {
    const known = this.#tracks.get(name);
    if (known !== undefined) return known;
    const tid = this.#tracks.size + 1;
    this.#tracks.set(name, tid);
    this.#events.push({ name: "thread_name", ph: "M", pid: 1, tid, args: { name } });
    return tid;
  }
}
