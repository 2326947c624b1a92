/**
 * The contract of an import format: one parsed JSON value in, conversations out. A new format is one file under `formats/`
 * and one entry in `registry.ts`.
 */
import type { Conversation } from "../tokens/conversation.ts";
import type { JsonRecord } from "./row.ts";
import type { SessionRules } from "./session.ts";

/** Text at the beginning of a turn that says who speaks. */
export interface RolePrefix {
  readonly role: string;
  readonly prefix: string;
}

export interface FormatOptions {
  /** Tool calls, their results and tool definitions: kept for the chat template, or left out. */
  readonly keepTools: boolean;
  /** Thinking, as `reasoning_content`. */
  readonly keepThinking: boolean;
  /** The first that fits counts. */
  readonly rolePrefixes: readonly RolePrefix[];
  /** A conversation for each choice of a response, not for the first alone. */
  readonly allChoices: boolean;
  /** Rows that are ours already: every field stays. */
  readonly isVerbatim: boolean;
}

/** One conversation as a format found it. */
export interface Candidate extends Conversation {
  /** How good somebody found it, where the log says so. */
  readonly score?: number;
}

/** A request or a result that stands on a line of its own and waits for the other with the same key. */
export interface Half {
  readonly key: string;
  readonly side: "request" | "result";
  readonly body: unknown;
}

export interface FormatResult {
  readonly rows: readonly Candidate[];
  /** Tool turns left out. */
  readonly toolTurns: number;
  readonly half?: Half;
  /** A row that is no conversation: it is kept as it is, and no rule for conversations is asked. */
  readonly task?: JsonRecord;
}

/** A conversation's line is `SessionConversation` where there is a `session`. */
export interface Format {
  readonly name: string;
  /** Whether lines are requests of an agent, which repeat a growing conversation: only the longest is taken by default. */
  readonly isLog: boolean;
  /** One line of the format, shown in diagnostics. */
  readonly expected: string;
  /** Whether a line looks like this format. More than one may say yes: the first in the registry wins. */
  detects(value: unknown): boolean;
  /** Throws `RejectedRow` for a line that is not what the format says. */
  read(value: unknown, options: FormatOptions): FormatResult;
  /** Of a format whose conversations go over the lines of a file; `read` is then given what this puts together. */
  readonly session?: SessionRules;
}
