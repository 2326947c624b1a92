/** The timeline of a run from its record: what it did when, over all processes that worked on it. */
import { readJsonLines } from "../files.ts";
import type { JournalEntry, MetricsLine, RunEvent } from "../run-record.ts";
import { type Span, Trace, type TraceFile } from "../trace.ts";
import { RECORD_FILES } from "./record.ts";

/** Metrics that are drawn as curves. */
const CURVES: readonly (readonly [name: string, of: (line: MetricsLine) => number | undefined])[] = [
  ["loss", ({ loss }) => loss],
  ["tokens/s", ({ tokensPerSecond }) => tokensPerSecond],
  ["reward", ({ values }) => values?.["reward/mean"]],
  ["eval reward", ({ evalReward }) => evalReward],
  ["held-out loss", ({ heldOutLoss }) => heldOutLoss],
];

/** Reads `journal.jsonl`, `metrics.jsonl` and `events.jsonl` of a run's folder; what is missing or damaged is left out. */
export function runTimeline(folder: string, run: string): TraceFile {
  const read = <T>(name: string): readonly T[] => readJsonLines<T>(`${folder}/${name}`).values;
  const journal = read<JournalEntry>(RECORD_FILES.journal);
  const metrics = read<MetricsLine>(RECORD_FILES.metrics);
  const events = read<RunEvent>(RECORD_FILES.events);
  const trace = new Trace(run, { run });
  trace.spans("phases", phaseSpans(events));
  trace.spans("steps", stepSpans(journal, new Map(metrics.map((line) => [line.step, line]))));
  trace.spans("saves", saveSpans(journal));
  for (const entry of journal) mark(trace, entry);
  for (const event of events) {
    if (event.t === "checkpoint") trace.instant("checkpoints", `step ${event.step}`, event.at, { path: event.path });
    if (event.t === "warning")
      trace.instant("warnings", event.diagnostic.code, event.at, { detail: event.diagnostic.detail });
  }
  for (const line of metrics)
    for (const [name, of] of CURVES) {
      const value = of(line);
      if (value !== undefined && Number.isFinite(value)) trace.counter(name, line.at, value);
    }
  return trace.file();
}

function mark(trace: Trace, entry: JournalEntry): void {
  if (entry.t === "open")
    trace.instant("server", `model of step ${entry.step}`, entry.at, { model: entry.model, loaded: entry.loaded });
  if (entry.t === "rollback") trace.instant("server", `back to step ${entry.to}`, entry.at, { reason: entry.reason });
  if (entry.t === "end") trace.instant("server", `${entry.status} at step ${entry.step}`, entry.at);
}

/** Each phase lasts until the next, or until the worker's end. */
function phaseSpans(events: readonly RunEvent[]): readonly Span[] {
  const spans: Span[] = [];
  const last = events.at(-1);
  let open: { readonly name: string; readonly from: string } | undefined;
  for (const event of events) {
    if (event.t !== "phase" && event.t !== "end") continue;
    if (open) spans.push({ ...open, to: event.at });
    open =
      event.t === "phase"
        ? { name: event.detail ? `${event.phase}: ${event.detail}` : event.phase, from: event.at }
        : undefined;
  }
  return open && last ? [...spans, { ...open, to: last.at }] : spans;
}

/** From the first thing that was sent of a step to its results. A step that was cut off ends with the last entry of its lineage. */
function stepSpans(journal: readonly JournalEntry[], metrics: ReadonlyMap<number, MetricsLine>): readonly Span[] {
  const spans: Span[] = [];
  const begun = new Map<number, string>();
  let lastAt: string | undefined;
  const cut = () => {
    for (const [step, from] of begun) if (lastAt) spans.push({ name: `step ${step} (cut off)`, from, to: lastAt });
    begun.clear();
  };
  for (const entry of journal) {
    if (entry.t === "open" || entry.t === "rollback") cut();
    if (entry.t === "step" || entry.t === "sampler" || entry.t === "part")
      if (!begun.has(entry.step)) begun.set(entry.step, entry.at);
    if (entry.t === "done") {
      const line = metrics.get(entry.step);
      const args = line && { loss: line.loss, tokens: line.tokens, ...line.values };
      const from = begun.get(entry.step) ?? entry.at;
      spans.push({ name: `step ${entry.step}`, from, to: entry.at, ...(args ? { args } : {}) });
      begun.delete(entry.step);
    }
    lastAt = entry.at;
  }
  cut();
  return spans;
}

function saveSpans(journal: readonly JournalEntry[]): readonly Span[] {
  const begun = new Map<number, { readonly at: string; readonly name: string }>();
  return journal.flatMap((entry) => {
    if (entry.t === "save") begun.set(entry.step, entry);
    const save = entry.t === "saved" ? begun.get(entry.step) : undefined;
    return save
      ? [
          {
            name: `step ${entry.t === "saved" ? entry.step : 0}`,
            from: save.at,
            to: entry.at,
            args: { name: save.name },
          },
        ]
      : [];
  });
}
