/**
 * Diagnostics: problems a user can fix, as data. Work that can find several returns them all beside whatever value it
 * could still build; only a single operation that cannot go on throws, as `RlcliError`, carrying its diagnostics.
 * `codes.ts` is the one table of codes; `docs/diagnostics.md` is generated from it.
 */
import type { Address } from "./address.ts";
import { CODES, type DiagnosticCode } from "./codes.ts";

export type Severity = "error" | "warning";

/** A place in a file. Lines and columns count from 1; a column counts UTF-16 units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
  /** UTF-16 units from the start of the decoded text (after a byte-order mark). */
  readonly offset: number;
}

export interface SourceRange {
  /** As the user named it, relative to the working directory where possible. */
  readonly file: string;
  readonly start: Position;
  /** Exclusive. */
  readonly end: Position;
}

export interface Diagnostic {
  readonly severity: Severity;
  readonly code: DiagnosticCode;
  /** Short and the same for every instance of a code; never contains the user's names. */
  readonly summary: string;
  /** Full sentences: what is wrong here, why it matters if not obvious, what to do. */
  readonly detail: string;
  readonly address?: Address;
  readonly range?: SourceRange;
  /** The text of the line that `range` starts on, kept so that a view need not read the file again. */
  readonly sourceLine?: string;
}

export interface DiagnosticOptions {
  readonly severity?: Severity;
  readonly address?: Address | undefined;
  readonly range?: SourceRange | undefined;
  readonly sourceLine?: string | undefined;
}

/** Builds a diagnostic of a known code; the summary comes from the table. */
export function diagnostic(code: DiagnosticCode, detail: string, options: DiagnosticOptions = {}): Diagnostic {
  const { severity, address, range, sourceLine } = options;
  return Object.freeze({
    severity: severity ?? CODES[code].severity ?? "error",
    code,
    summary: CODES[code].summary,
    detail,
    ...(address === undefined ? {} : { address }),
    ...(range === undefined ? {} : { range }),
    ...(sourceLine === undefined ? {} : { sourceLine }),
  });
}

export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some((d) => d.severity === "error");
}

/** Thrown by an operation that cannot go on for a reason the user can mend. Anything else thrown is a bug of ours. */
export class RlcliError extends Error {
  readonly diagnostics: readonly Diagnostic[];
  constructor(diagnostics: Diagnostic | readonly Diagnostic[], options?: ErrorOptions) {
    const list = Array.isArray(diagnostics) ? (diagnostics as readonly Diagnostic[]) : [diagnostics as Diagnostic];
    super(list.map((d) => `${d.code}: ${d.detail}`).join("\n"), options);
    this.name = "RlcliError";
    this.diagnostics = list;
  }
}

/** Throws one diagnostic. Short for the commonest way to fail. */
export function fail(code: DiagnosticCode, detail: string, options: DiagnosticOptions & ErrorOptions = {}): never {
  throw new RlcliError(diagnostic(code, detail, options), "cause" in options ? { cause: options.cause } : undefined);
}

/** What an unknown thrown value says, for use inside a detail sentence. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
