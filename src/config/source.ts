/** A file's decoded text and the way from an offset in it to line and column. */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { DiagnosticCode } from "../codes.ts";
import {
  type Diagnostic,
  type DiagnosticOptions,
  diagnostic,
  messageOf,
  type Position,
  type SourceRange,
} from "../diagnostic.ts";
import { type Digest, digestBytes } from "../digest.ts";
import { withoutCredentials } from "../url.ts";

/** Half-open offsets into a source's text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

type SpanOptions = Pick<DiagnosticOptions, "severity" | "address">;

export class Source {
  /** As the user named it. */
  readonly file: string;
  /** Absolute. */
  readonly path: string;
  readonly text: string;
  readonly digest: Digest;
  /** Secrets in the text, which must not be printed. */
  readonly #hidden: Span[] = [];
  /** Offset at which each line starts. */
  #lineStarts: number[] | undefined;

  constructor(file: string, path: string, text: string, digest: Digest) {
    this.file = file;
    this.path = path;
    this.text = text;
    this.digest = digest;
  }

  #lines(): number[] {
    if (this.#lineStarts === undefined) {
      this.#lineStarts = [0];
      for (let at = this.text.indexOf("\n"); at >= 0; at = this.text.indexOf("\n", at + 1))
        this.#lineStarts.push(at + 1);
    }
    return this.#lineStarts;
  }

  position(offset: number): Position {
    const starts = this.#lines();
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - starts[low]! + 1, offset };
  }

  range({ start, end }: Span): SourceRange {
    const last = this.text.length;
    const from = Math.min(start, last);
    return { file: this.file, start: this.position(from), end: this.position(Math.min(Math.max(end, from), last)) };
  }

  /** The text of a line that counts from 1, without its line break; what is hidden, and what is secret in an address, is masked. */
  line(number: number): string {
    const starts = this.#lines();
    const start = starts[number - 1] ?? this.text.length;
    let text = this.text.slice(start, starts[number] ?? this.text.length).replace(/\r?\n?$/, "");
    for (const span of this.#hidden) {
      const from = Math.max(span.start - start, 0);
      const to = Math.min(span.end - start, text.length);
      if (from < to) text = text.slice(0, from) + "*".repeat(to - from) + text.slice(to);
    }
    // Also where nothing was parsed, so that nobody could hide it.
    return withoutCredentials(text, (secret) => "*".repeat(secret.length));
  }

  /** Whether secrets stand in it in the open. */
  get hasHidden(): boolean {
    return this.#hidden.length > 0;
  }

  /** Masks a part of the text in all lines that are asked for from now on. */
  hide(span: Span): void {
    this.#hidden.push(span);
  }

  /** The diagnostic with its source line as it is to be printed now. */
  masked(d: Diagnostic): Diagnostic {
    if (this.#hidden.length === 0 || d.range === undefined || d.sourceLine === undefined) return d;
    return Object.freeze({ ...d, sourceLine: this.line(d.range.start.line) });
  }

  diagnostic(code: DiagnosticCode, detail: string, span: Span, options: SpanOptions = {}): Diagnostic {
    const range = this.range(span);
    return diagnostic(code, detail, { ...options, range, sourceLine: this.line(range.start.line) });
  }
}

/** What a file is read for. */
export type SourceRole = "spec" | "variables";

/** Why a file cannot be opened, as a sentence that says what to do. */
function openFault(file: string, role: SourceRole, error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case "ENOENT":
      if (role === "variables")
        return `There is no file \`${file}\`, which --var-file names. Correct the path; a relative one begins where you are, or where -C says.`;
      return `There is no file \`${file}\`. Name the spec with -f, change to its folder with -C, or write a new one with \`rlcli init\`.`;
    case "EISDIR":
      return `\`${file}\` is a folder. Name the file in it, for instance \`${file.replace(/\/+$/, "")}/${role === "spec" ? "rlcli" : "variables"}.yaml\`.`;
    case "EACCES":
    case "EPERM":
      return `\`${file}\` may not be read by this user. Check its permissions.`;
    case "ENOTDIR":
      return `A part of the path \`${file}\` is a file, not a folder.`;
    default:
      return `\`${file}\` cannot be read: ${messageOf(error)}.`;
  }
}

function encodingOf(bytes: Uint8Array): "utf-8" | "utf-16le" | "utf-16be" {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return "utf-8";
}

/** Offset of the first thing that text cannot hold, with its name; undefined for sound text. */
function findFault(text: string, bytes: Uint8Array): { at: number; what: string } | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
  const control = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/.exec(text);
  if (control)
    return { at: control.index, what: `the control character ${JSON.stringify(control[0])}; is this a binary file?` };
  try {
    new TextDecoder(encodingOf(bytes), { fatal: true }).decode(bytes);
    return undefined;
  } catch {
    return { at: Math.max(0, text.indexOf("\uFFFD")), what: "a byte that is not UTF-8 text" };
  }
}

/** Reads and decodes a file, byte-order mark removed; a fault is a diagnostic. */
export function readSource(file: string, cwd: string, role: SourceRole = "spec"): Source | Diagnostic {
  const path = resolve(cwd, file);
  if (file === "")
    return diagnostic("RL1001", `The name of the ${role === "spec" ? "spec file" : "file of variables"} is empty.`);
  let bytes: Uint8Array;
  try {
    // A pipe (`-f <(…)`) is read to its end; a device may have none.
    if (statSync(path).isCharacterDevice())
      return diagnostic(
        "RL1001",
        `\`${file}\` is a device, not a file with ${role === "spec" ? "a spec" : "variables"}.`,
      );
    bytes = readFileSync(path);
  } catch (error) {
    return diagnostic("RL1001", openFault(file, role, error));
  }
  const text = new TextDecoder(encodingOf(bytes)).decode(bytes);
  const source = new Source(file, path, text, digestBytes(bytes));
  const fault = findFault(text, bytes);
  return fault === undefined
    ? source
    : source.diagnostic("RL1002", `The file holds ${fault.what}. Save it as UTF-8.`, {
        start: fault.at,
        end: fault.at + 1,
      });
}
