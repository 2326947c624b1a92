/**
 * The one table of diagnostic codes. Families: RL1 spec, RL2 plan, RL3 state, RL4 apply, RL5 servers and protocol,
 * RL6 datasets, RL7 environments, RL8 training, RL9 command line. A code is never reused for another meaning.
 */
import type { Severity } from "./diagnostic.ts";

interface CodeInfo {
  /** Short, the same for every instance, no user names, no full stop. */
  readonly summary: string;
  /** For `rlcli explain CODE`: when it appears and what mends it. */
  readonly explanation: string;
  readonly severity?: Severity;
}

const table = <K extends string>(codes: Record<K, CodeInfo>): Readonly<Record<K, CodeInfo>> => codes;

export const CODES = table({
  RL1001: {
    summary: "File cannot be read",
    explanation:
      "The spec, or a file it names, is missing, is a folder, or may not be read. Check the path and its permissions.",
  },
  RL2001: {
    summary: "Dependency cycle",
    explanation:
      "Blocks refer to each other in a circle, so none can be made first. Remove one of the references that the message lists.",
  },
  RL2002: {
    summary: "Saved plan is stale",
    explanation:
      "A record or an input that the plan was computed from has changed since. Plan again and review the new plan.",
  },
  RL2003: {
    summary: "Unknown address",
    explanation: "An address given to --target or --replace is neither in the spec nor in the state.",
  },
  RL2004: {
    summary: "Saved plan cannot be read",
    explanation:
      "The file is not a plan, is damaged, or was written by a newer rlcli. Make it again with `rlcli plan -o`.",
  },
  RL3001: {
    summary: "State record is damaged",
    explanation:
      "A file under .rlcli/state does not hold the record it should. The message names the file and the newest earlier version that still reads.",
  },
  RL3002: {
    summary: "State record was changed by someone else",
    explanation: "Another rlcli wrote this record since it was read. Nothing was overwritten; plan again.",
  },
  RL3003: {
    summary: "Address is in use",
    explanation:
      "Another process holds the lease of this address and is working on it. Wait for it, or stop it; a dead owner's lease is taken over by itself.",
  },
  RL3004: {
    summary: "State cannot be written",
    explanation:
      "The state folder is read-only or the disk is full. What should have been stored was written to a recovery file; the message says how to put it back.",
  },
  RL3005: {
    summary: "Lease was lost",
    explanation:
      "This process stopped renewing its lease (asleep, stopped, or cut off) and another took over. Its writes are refused so that nothing is overwritten.",
  },
  RL3006: {
    summary: "State was written by a newer rlcli",
    explanation: "The record's formatVersion is above what this rlcli reads. Use the newer rlcli.",
  },
  RL3007: {
    summary: "Run record is damaged",
    explanation:
      "A line of a run's journal or checkpoint list does not parse and is not the torn last line that a crash may leave.",
  },
});

export type DiagnosticCode = keyof typeof CODES;
