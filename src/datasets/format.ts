/**
 * The contract of an import format: one parsed JSON value in, rows out. A new format is one file under `formats/` and
 * one entry in `registry.ts`.
 */
import type { Row } from "./row.ts";

export interface FormatOptions {
  /** Tool calls and their results: left out of the rows or kept for the chat template. */
  readonly tools: "drop" | "keep";
}

export interface FormatResult {
  readonly rows: readonly Row[];
  /** Tool turns left out. */
  readonly toolTurns: number;
}

export interface Format {
  readonly name: string;
  /** One line of the format, shown in diagnostics. */
  readonly expected: string;
  /** Whether a line looks like this format. More than one may say yes: the first in the registry wins. */
  detects(value: unknown): boolean;
  /** Throws `RejectedRow` for a line that is not what the format says. */
  read(value: unknown, options: FormatOptions): FormatResult;
}
