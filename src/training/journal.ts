/**
 * The journal, and what it means. A process that starts and one that goes on after losing its server both look at the
 * same state, made by folding the entries one by one; nothing else decides what was done.
 */
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import { type BadLine, JsonLinesFile, readJsonLines } from "../files.ts";
import { type JournalEntry, RUN_RECORD_VERSION } from "../run-record.ts";

type Entry<T extends JournalEntry["t"]> = Extract<JournalEntry, { t: T }>;

export interface JournalState {
  /** The lineage that may still live on its server; none after a rollback or an end. */
  readonly open: Entry<"open"> | undefined;
  /** Last step whose results are here and which was not rolled back. */
  readonly done: number;
  /** Begun in this lineage and not done, in order. */
  readonly pending: readonly Entry<"step">[];
  /** Numbers of held-out passes that were begun in this lineage, by step. */
  readonly evals: ReadonlyMap<number, readonly number[]>;
  /** Weights for sampling that were asked for in this lineage, by the step that is trained on the samples (`rl`). */
  readonly samplers: ReadonlyMap<number, Entry<"sampler">>;
  /** What of steps that are not done was begun in this lineage, in order (`rl`). */
  readonly sent: readonly (Entry<"part"> | Entry<"update">)[];
  /** Begun and not known to be complete. */
  readonly save: Entry<"save"> | undefined;
  /** The lineage in which `save` was begun, where that is over. */
  readonly saveModel: string | undefined;
  /** First `seq_id` that this lineage has not used. */
  readonly nextSeq: number;
  /** Whether this lineage has done anything after loading. */
  readonly isFresh: boolean;
  readonly end: Entry<"end"> | undefined;
}

export const EMPTY_JOURNAL: JournalState = {
  open: undefined,
  done: 0,
  pending: [],
  evals: new Map(),
  samplers: new Map(),
  sent: [],
  save: undefined,
  saveModel: undefined,
  nextSeq: 1,
  isFresh: true,
  end: undefined,
};

const after = (state: JournalState, seq: readonly number[]): number =>
  Math.max(state.nextSeq, ...seq.map((n) => n + 1));

/** The state after one more entry. */
export function fold(state: JournalState, entry: JournalEntry): JournalState {
  switch (entry.t) {
    case "open": {
      // Loading takes the model's first number.
      const nextSeq = entry.loaded === undefined ? 1 : 2;
      return { ...EMPTY_JOURNAL, open: entry, done: entry.step, nextSeq };
    }
    case "step":
      return {
        ...state,
        pending: [...state.pending, entry],
        nextSeq: after(state, entry.seq),
        isFresh: false,
        end: undefined,
      };
    case "sampler":
      return {
        ...state,
        samplers: new Map([...state.samplers, [entry.step, entry]]),
        nextSeq: after(state, entry.seq),
        isFresh: false,
      };
    case "part":
    case "update":
      return {
        ...state,
        sent: [...state.sent, entry],
        nextSeq: after(state, entry.seq),
        isFresh: false,
        end: undefined,
      };
    case "done":
      return {
        ...state,
        done: entry.step,
        pending: state.pending.filter((s) => s.step > entry.step),
        sent: state.sent.filter((s) => s.step > entry.step),
        samplers: new Map([...state.samplers].filter(([step]) => step > entry.step)),
      };
    case "eval":
      return {
        ...state,
        evals: new Map([...state.evals, [entry.step, entry.seq]]),
        nextSeq: after(state, entry.seq),
        isFresh: false,
      };
    case "save":
      return {
        ...state,
        save: entry,
        saveModel: state.open?.model,
        nextSeq: after(state, entry.seq),
        isFresh: false,
        end: undefined,
      };
    case "saved":
      return { ...state, save: undefined, saveModel: undefined };
    case "rollback":
      return { ...EMPTY_JOURNAL, done: entry.to };
    case "end":
      return { ...state, open: undefined, pending: [], sent: [], samplers: new Map(), end: entry };
    default:
      return entry satisfies never;
  }
}

/** Entries of calls that carry numbers. */
const NUMBERED: ReadonlySet<string> = new Set(["step", "sampler", "part", "update", "eval", "save"]);
const KINDS: ReadonlySet<string> = new Set([...NUMBERED, "open", "done", "saved", "rollback", "end"]);

function isEntry(value: unknown): value is JournalEntry {
  const { t, step, to, seq } = (value ?? {}) as Record<string, unknown>;
  if (typeof t !== "string" || !KINDS.has(t)) return false;
  if (NUMBERED.has(t) && !(Array.isArray(seq) && seq.every(Number.isSafeInteger))) return false;
  return Number.isSafeInteger(t === "rollback" ? to : step);
}

/** Reads a journal. A torn last line is no fault; any other line that is no entry is RL3007. */
export function readJournal(path: string): { state: JournalState; diagnostics: Diagnostic[] } {
  const { values, bad, formatVersion } = readJsonLines<unknown>(path);
  const wrong = values.findIndex((value) => !isEntry(value));
  const diagnostics = [...newerFormat(path, formatVersion), ...bad.map((line) => damagedLine(path, line))];
  if (wrong >= 0) {
    diagnostics.push(diagnostic("RL3007", `${path} has an entry that is not a journal's: number ${wrong + 1}.`));
  }
  return { state: values.filter(isEntry).reduce(fold, EMPTY_JOURNAL), diagnostics };
}

/** RL3006 where a newer rlcli wrote a file of which this one knows the format up to `known`. */
export function newerFormat(path: string, formatVersion: number | undefined, known = RUN_RECORD_VERSION): Diagnostic[] {
  if ((formatVersion ?? 0) <= known) return [];
  const detail = `${path} has format version ${formatVersion}; this rlcli reads ${known}. Use the newer rlcli.`;
  return [diagnostic("RL3006", detail)];
}

export function damagedLine(path: string, { line, message }: BadLine): Diagnostic {
  return diagnostic(
    "RL3007",
    `${path}:${line} does not parse: ${message}. Put the file back from a backup, or train the run anew with \`rlcli apply --replace run.NAME\`.`,
  );
}

/** The journal of the process that works on the run. */
export class Journal {
  readonly #file: JsonLinesFile;
  #state: JournalState;

  constructor(path: string, state: JournalState) {
    this.#file = new JsonLinesFile(path, RUN_RECORD_VERSION);
    this.#state = state;
  }

  get state(): JournalState {
    return this.#state;
  }

  /** On disk when this returns: for what must be known before anything is sent. Several share one wait for the disk. */
  begin(...entries: readonly JournalEntry[]): void {
    for (const entry of entries) this.note(entry);
    if (entries.length > 0) this.#file.sync();
  }

  /** Handed to the system: for what can be asked of the server again. */
  note(entry: JournalEntry): void {
    this.#file.append(entry);
    this.#state = fold(this.#state, entry);
  }

  /** Gives up the lineage in memory: the server said that its model is gone. */
  abandon(): void {
    this.#state = { ...this.#state, open: undefined };
  }

  close(): void {
    this.#file.close();
  }
}
