/** Where in a TOML text a key is written: the parser keeps no positions, and a diagnostic without one is half a diagnostic. */
import type { SourceRange } from "../../diagnostic.ts";

export type TomlPath = readonly (string | number)[];

export interface TomlPlace {
  readonly range: SourceRange;
  readonly sourceLine: string;
}

/**
 * The line of a key, or of the nearest table around it where the key is in an inline table; the file's start where nothing is
 * found. A number in a path is an index of an array of tables.
 */
export function placeOf(text: string, file: string, path: TomlPath): TomlPlace {
  const lines = text.split("\n");
  const places = keyLines(lines);
  for (let length = path.length; length > 0; length -= 1) {
    const found = places.get(JSON.stringify(path.slice(0, length)));
    if (found !== undefined) return lineRange(lines, file, found);
  }
  return lineRange(lines, file, 0);
}

/** A place by line and column from 1, as a parser's error says it. */
export function placeAt(text: string, file: string, line: number, column: number): TomlPlace {
  const lines = text.split("\n");
  let at = Math.min(Math.max(line, 1), lines.length) - 1;
  // What is missing at the end of a file is missing behind its last words.
  const isBehind = at > 0 && lineAt(lines, at).trim() === "";
  while (at > 0 && lineAt(lines, at).trim() === "") at -= 1;
  const before = lines.slice(0, at).reduce((sum, one) => sum + one.length + 1, 0);
  const shown = isBehind ? lineAt(lines, at).length + 1 : column;
  const start = { line: at + 1, column: shown, offset: before + shown - 1 };
  return {
    range: { file, start, end: { ...start, column: shown + 1, offset: start.offset + 1 } },
    sourceLine: lineAt(lines, at),
  };
}

const lineAt = (lines: readonly string[], at: number): string => (lines[at] ?? "").replace(/\r$/, "");

function lineRange(lines: readonly string[], file: string, at: number): TomlPlace {
  const sourceLine = lineAt(lines, at);
  const indent = sourceLine.length - sourceLine.trimStart().length;
  const before = lines.slice(0, at).reduce((sum, one) => sum + one.length + 1, 0);
  const start = { line: at + 1, column: indent + 1, offset: before + indent };
  const length = Math.max(1, sourceLine.trim().length);
  return {
    range: { file, start, end: { line: at + 1, column: indent + 1 + length, offset: start.offset + length } },
    sourceLine,
  };
}

const HEADER = /^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$/;
const KEY = /^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=/;

/** Line, from 0, of each key and table by the JSON of its path. */
function keyLines(lines: readonly string[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  const indexes = new Map<string, number>();
  let table: TomlPath = [];
  const note = (path: TomlPath, line: number): void => {
    const key = JSON.stringify(path);
    if (!places.has(key)) places.set(key, line);
  };
  for (const [line, text] of lines.entries()) {
    const [, bracket, header] = HEADER.exec(text) ?? [];
    if (header !== undefined) {
      table = tablePath(partsOf(header), bracket === "[[", indexes);
      note(table, line);
      continue;
    }
    const key = KEY.exec(text)?.[1];
    if (key !== undefined) note([...table, ...partsOf(key)], line);
  }
  return places;
}

/** A header's path with the index of each array of tables that it goes through. */
function tablePath(parts: readonly string[], isArray: boolean, indexes: Map<string, number>): TomlPath {
  const path: (string | number)[] = [];
  for (const [at, part] of parts.entries()) {
    path.push(part);
    const key = JSON.stringify(path);
    if (isArray && at === parts.length - 1) indexes.set(key, (indexes.get(key) ?? -1) + 1);
    const index = indexes.get(key);
    if (index !== undefined) path.push(index);
  }
  return path;
}

function partsOf(key: string): string[] {
  return [...key.matchAll(/"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)/g)].map(
    (found) => found[1] ?? found[2] ?? found[3] ?? "",
  );
}
