/** What `rlcli lock` did, for people. */
import { digestJson, shortDigest } from "../../digest.ts";
import type { LockEntry } from "../../lock.ts";
import type { Style } from "./style.ts";
import { bytes } from "./units.ts";

export interface LockChange {
  readonly name: string;
  /** Null where it was not locked, or is not any more. */
  readonly before: LockEntry | null;
  readonly after: LockEntry | null;
}

export function renderLock(changes: readonly LockChange[], count: number, style: Style): string {
  if (changes.length === 0) return `rlcli.lock is up to date: ${names(count)}.\n`;
  const lines = changes.map(({ name, before, after }) => {
    if (!after) return `${style.red("-")} ${name}  nothing needs it any more\n`;
    if (!before) return `${style.green("+")} ${name}  ${describe(after)}\n`;
    const moved = [before, after].map(stateOf);
    return `${style.yellow("~")} ${name}  ${moved[0] === moved[1] ? describe(after) : moved.join(" → ")}\n`;
  });
  return `${lines.join("")}\nrlcli.lock holds ${names(count)}. Commit it with the spec.\n`;
}

const names = (count: number): string => `${count} ${count === 1 ? "name" : "names"}`;
/** The commit; of files at addresses, what tells one state of them from another. */
const stateOf = ({ commit, files }: LockEntry): string =>
  typeof commit === "string" ? commit.slice(0, 12) : shortDigest(digestJson(files ?? null));

function describe(entry: LockEntry): string {
  const { files } = entry;
  if (!Array.isArray(files)) return stateOf(entry);
  const size = (files as { bytes: number }[]).reduce((sum, file) => sum + file.bytes, 0);
  return `${stateOf(entry)}, ${files.length} ${files.length === 1 ? "file" : "files"}, ${bytes(size)}`;
}
