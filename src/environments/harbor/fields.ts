/** Reads tables of a task.toml field by field: whatever is not asked for is reported, and so is what has another type. */

import type { DiagnosticCode } from "../../codes.ts";
import { type Diagnostic, type DiagnosticOptions, diagnostic } from "../../diagnostic.ts";
import { didYouMean } from "../../suggest.ts";
import { placeOf, type TomlPath } from "./places.ts";

export type TomlTable = Readonly<Record<string, unknown>>;

/** The text that is read and what was found wrong with it so far. */
export class TomlReport {
  readonly file: string;
  readonly #text: string;
  readonly diagnostics: Diagnostic[] = [];

  constructor(text: string, file: string) {
    this.#text = text;
    this.file = file;
  }

  add(code: DiagnosticCode, path: TomlPath, detail: string, options: DiagnosticOptions = {}): void {
    this.diagnostics.push(diagnostic(code, detail, { ...placeOf(this.#text, this.file, path), ...options }));
  }
}

interface NumberRule {
  readonly isWhole?: boolean;
  /** Zero and below are refused. */
  readonly isPositive?: boolean;
}

export class Fields {
  readonly #table: TomlTable;
  readonly #path: TomlPath;
  readonly report: TomlReport;
  readonly #asked = new Set<string>();

  constructor(table: TomlTable, path: TomlPath, report: TomlReport) {
    this.#table = table;
    this.#path = path;
    this.report = report;
  }

  has(key: string): boolean {
    return this.#table[key] !== undefined;
  }

  /** The value as it stands; it counts as asked for. */
  raw(key: string): unknown {
    this.#asked.add(key);
    return this.#table[key];
  }

  at(key: string): TomlPath {
    return [...this.#path, key];
  }

  fault(key: string, detail: string): undefined {
    this.report.add("RL7202", this.at(key), detail);
    return undefined;
  }

  /** What this version does not do, said where it is asked for. */
  refuse(key: string, detail: string): void {
    this.report.add("RL7203", this.at(key), detail);
  }

  warn(key: string, detail: string): void {
    this.report.add("RL7204", this.at(key), detail);
  }

  string(key: string): string | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "string") return value;
    return this.#wrong(key, "a text", value);
  }

  /** Texts with a number in them count as numbers, as in Harbor. */
  number(key: string, { isWhole = false, isPositive = true }: NumberRule = {}): number | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (typeof number !== "number" || Number.isNaN(number)) return this.#wrong(key, "a number", value);
    if (!Number.isFinite(number)) return this.fault(key, `\`${key}\` must be finite.`);
    if (isWhole && !Number.isInteger(number)) return this.fault(key, `\`${key}\` is ${number} and must be whole.`);
    if (isPositive && number <= 0) return this.fault(key, `\`${key}\` is ${number} and must be above 0.`);
    return number;
  }

  boolean(key: string): boolean | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "boolean") return value;
    return this.#wrong(key, "true or false", value);
  }

  oneOf<T extends string>(key: string, values: readonly T[]): T | undefined {
    const value = this.string(key)?.toLowerCase();
    if (value === undefined) return undefined;
    const found = values.find((one) => one === value);
    if (found !== undefined) return found;
    return this.fault(
      key,
      `\`${key}\` is \`${value}\` and must be one of ${values.map((v) => `\`${v}\``).join(", ")}.`,
    );
  }

  strings(key: string): readonly string[] | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value as readonly string[];
    return this.#wrong(key, "a list of texts", value);
  }

  /** A table whose values are texts. */
  texts(key: string): Readonly<Record<string, string>> {
    const table = this.#tableOf(key) ?? {};
    const texts: Record<string, string> = {};
    for (const [name, value] of Object.entries(table)) {
      if (typeof value === "string") texts[name] = value;
      else this.report.add("RL7202", [...this.at(key), name], `\`${name}\` must be a text in quotes.`);
    }
    return texts;
  }

  /** Name of a user, or its number. */
  user(key: string): string | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "string") return value;
    if (typeof value === "number" && Number.isInteger(value) && value >= 0) return String(value);
    return this.#wrong(key, "a user's name or number", value);
  }

  /** A table's own fields; an empty one where it is missing. */
  table(key: string): Fields {
    return new Fields(this.#tableOf(key) ?? {}, this.at(key), this.report);
  }

  tables(key: string): readonly Fields[] {
    const value = this.raw(key);
    if (value === undefined) return [];
    if (!Array.isArray(value) || !value.every(isTable)) {
      this.#wrong(key, "a list of tables", value);
      return [];
    }
    return value.map((table, index) => new Fields(table, [...this.at(key), index], this.report));
  }

  /** Reports what nobody asked for: Harbor ignores it, which hides typing errors. */
  done(): void {
    const path = this.#path.filter((part) => typeof part === "string").join(".");
    for (const key of Object.keys(this.#table)) {
      if (this.#asked.has(key)) continue;
      const where = path === "" ? "A task.toml" : `\`[${path}]\``;
      this.warn(key, `${where} has no field \`${key}\`; it is ignored.${didYouMean(key, this.#asked)}`);
    }
  }

  #tableOf(key: string): TomlTable | undefined {
    const value = this.raw(key);
    if (value === undefined || isTable(value)) return value as TomlTable | undefined;
    return this.#wrong(key, "a table", value);
  }

  #wrong(key: string, wanted: string, value: unknown): undefined {
    return this.fault(key, `\`${key}\` must be ${wanted}, not ${kindOf(value)}.`);
  }
}

export function isTable(value: unknown): value is TomlTable {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "a text";
  if (isTable(value)) return "a table";
  return `\`${String(value)}\``;
}
