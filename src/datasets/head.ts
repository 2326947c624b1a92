/** The first rows of a dataset, for a look at what they have. */
import { statSync } from "node:fs";
import type { JsonObject } from "../value.ts";
import { convertRows, type LineSource } from "./convert.ts";
import { tasksFormat } from "./formats/tasks.ts";
import { type DatasetRequest, sourceFiles } from "./identity.ts";
import { fileLines } from "./linefile.ts";
import { openSource, type SourceFile } from "./sources.ts";
import { Tally } from "./tally.ts";

/** How many rows are looked at. */
export const HEAD_ROWS = 100;

/** Of imported rows. Rejects with what the file system says. */
export async function firstRows(path: string): Promise<readonly JsonObject[]> {
  const rows: JsonObject[] = [];
  for await (const { bytes } of fileLines(path)) {
    rows.push(JSON.parse(bytes.toString()) as JsonObject);
    if (rows.length >= HEAD_ROWS) break;
  }
  return rows;
}

/** Of files with tasks that are not imported yet; damaged lines are passed over. Fails as an import of them does. */
export async function firstTasks(request: DatasetRequest): Promise<readonly JsonObject[]> {
  const options = { ...request.options, limit: HEAD_ROWS };
  const rows: JsonObject[] = [];
  const taken = { format: tasksFormat, options, isVerbatim: true, threads: 0 };
  for await (const row of convertRows(opened(await sourceFiles(request)), taken, new Tally()))
    rows.push(JSON.parse(row) as JsonObject);
  return rows;
}

/** One after another, as they are needed. What can be read only once is left for the import. */
function* opened(files: readonly SourceFile[]): Generator<LineSource> {
  for (const file of files) if (statSync(file.path).isFile()) yield openSource(file, { keepsNulls: true });
}
