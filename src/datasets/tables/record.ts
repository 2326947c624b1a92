/** What a table gives for each of its rows. */
import type { RejectedRow } from "../row.ts";

export type TableRecord =
  /** `line`: where it stands in the file, or for files without lines its number from 1. */
  { readonly line: number; readonly value: object } | { readonly line: number; readonly rejected: RejectedRow };
