/**
 * `rlcli.lock`, beside the spec and committed with it: what moving names of other places (a branch of a dataset on a hub) resolved to,
 * so that a plan means the same on every machine and on every day. Plan and apply only add what is missing; moving what is
 * there is `rlcli lock --upgrade`. Local files are not locked: they are hashed.
 */
import { readFileSync } from "node:fs";
import { type DiagnosticOptions, diagnostic, fail, messageOf, RlcliError } from "./diagnostic.ts";
import { writeFileWhole } from "./files.ts";
import { canonicalJson, type JsonObject } from "./value.ts";

export const LOCK_VERSION = 1;
export const LOCK_FILE = "rlcli.lock";

/** What a name resolved to. `type` says whose entry it is (`hub-dataset`); the rest is that kind's. */
export interface LockEntry extends JsonObject {
  readonly type: string;
}

/**
 * `add`: missing entries are added and written at once. `locked`: a missing entry is RL2006. `edit`: changes stay in memory
 * until `save`.
 */
export type LockMode = "add" | "locked" | "edit";

type Entries = ReadonlyMap<string, LockEntry>;

export class Lock {
  readonly path: string;
  readonly #mode: LockMode;
  #read: Map<string, LockEntry> | undefined;

  /** The file is read when it is first asked; one that is missing is an empty one. */
  constructor(path: string, mode: LockMode) {
    this.path = path;
    this.#mode = mode;
  }

  get #entries(): Map<string, LockEntry> {
    this.#read ??= new Map(readEntries(this.path));
    return this.#read;
  }

  /** What is locked, by name. Like all that asks for an entry, fails with RL2005 where the file cannot be read. */
  get entries(): Entries {
    return this.#entries;
  }

  /** Whether names are to be asked for again, rather than answered from a cache. */
  get isEdited(): boolean {
    return this.#mode === "edit";
  }

  get(name: string): LockEntry | undefined {
    return this.#entries.get(name);
  }

  /** Asked before a name that is not here is resolved: fails with RL2006 where that is not allowed. */
  allowAdding(name: string, place: DiagnosticOptions = {}): void {
    if (this.#mode !== "locked") return;
    fail(
      "RL2006",
      `${LOCK_FILE} does not say what \`${name}\` is, and this command must not add it (--locked, the default where CI is set). Run \`rlcli lock\` and commit the file.`,
      place,
    );
  }

  /** Adds what a name resolved to. In mode `add` it is written before this returns; RL2007 where it cannot be. */
  add(name: string, entry: LockEntry, place: DiagnosticOptions = {}): void {
    this.allowAdding(name, place);
    if (this.#mode === "add") {
      // Another command may have added others meanwhile.
      for (const [other, theirs] of readEntries(this.path))
        if (!this.#entries.has(other)) this.#entries.set(other, theirs);
    }
    this.#entries.set(name, entry);
    if (this.#mode === "add") this.save();
  }

  /** Leaves out entries; what is still needed is then resolved anew. */
  drop(names: Iterable<string>): void {
    for (const name of names) this.#entries.delete(name);
  }

  /** Puts an entry back as it was. */
  restore(name: string, entry: LockEntry): void {
    this.#entries.set(name, entry);
  }

  /** Writes the file whole, in an order that does not depend on who added what when. Fails with RL2007. */
  save(): void {
    try {
      writeFileWhole(this.path, encode(this.#entries));
    } catch (error) {
      fail("RL2007", `${LOCK_FILE} cannot be written: ${messageOf(error)}.`, { cause: error });
    }
  }
}

/** JSON with sorted keys, an entry's lists one element a line: a changed entry is a short diff. */
function encode(entries: Entries): string {
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
  const blocks = sorted.map(([name, entry]) => `    ${JSON.stringify(name)}: ${encodeEntry(entry)}`);
  const body = blocks.length === 0 ? "{}" : `{\n${blocks.join(",\n")}\n  }`;
  return `{\n  "formatVersion": ${LOCK_VERSION},\n  "entries": ${body}\n}\n`;
}

function encodeEntry(entry: LockEntry): string {
  const fields = Object.entries(entry).sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = fields.map(([field, value]) => {
    const isList = Array.isArray(value) && value.length > 0;
    const text = isList
      ? `[\n${value.map((element) => `        ${canonicalJson(element)}`).join(",\n")}\n      ]`
      : canonicalJson(value);
    return `      ${JSON.stringify(field)}: ${text}`;
  });
  return `{\n${lines.join(",\n")}\n    }`;
}

function readEntries(path: string): Entries {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    return damaged(`cannot be read: ${messageOf(error)}`);
  }
  try {
    return decode(JSON.parse(text));
  } catch (error) {
    if (error instanceof RlcliError) throw error;
    const isConflict = /^(<{7}|={7}|>{7})/m.test(text);
    return damaged(isConflict ? "holds the marks of a merge conflict" : "is not JSON");
  }
}

function decode(read: unknown): Entries {
  const { formatVersion, entries } = (read ?? {}) as { formatVersion?: unknown; entries?: unknown };
  if (typeof formatVersion === "number" && formatVersion > LOCK_VERSION) {
    throw new RlcliError(
      diagnostic(
        "RL2005",
        `${LOCK_FILE} has format ${formatVersion}, this rlcli reads ${LOCK_VERSION}. Use a newer rlcli.`,
      ),
    );
  }
  const isFile = formatVersion === LOCK_VERSION && typeof entries === "object" && entries !== null;
  if (!isFile || Object.values(entries).some((entry) => typeof (entry as LockEntry | null)?.type !== "string"))
    damaged("is not what rlcli writes");
  return new Map(Object.entries(entries as Record<string, LockEntry>));
}

function damaged(why: string): never {
  return fail(
    "RL2005",
    `${LOCK_FILE} ${why}. Take the committed version of it, or delete it and run \`rlcli lock\`, which resolves all names anew.`,
  );
}
