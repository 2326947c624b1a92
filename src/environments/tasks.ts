/** The tasks of an environment: rows of a dataset by number, read when they are asked for. */
import { fileLines, LineFile } from "../datasets/linefile.ts";
import { isRecord } from "../datasets/row.ts";
import { fail, messageOf } from "../diagnostic.ts";
import type { JsonObject } from "../value.ts";

export interface TaskStore {
  /** Rows there are. */
  readonly count: number;
  /** The row at an index from 0. Fails with RL8002 where the file is not what it was when it was opened. */
  read(index: number): JsonObject;
  close(): void;
}

/**
 * Opens the rows of a dataset (`rows.jsonl`: one JSON object a line). One pass notes where lines begin, eight bytes a row;
 * rows stay in the file. Fails with RL8002 where it cannot be read.
 */
export async function openTasks(rowsPath: string): Promise<TaskStore> {
  try {
    const starts = await lineStarts(rowsPath);
    return new TaskFile(new LineFile(rowsPath), starts);
  } catch (error) {
    return fail("RL8002", `The tasks cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** Byte at which each line starts, and one past the newline of the last. */
async function lineStarts(path: string): Promise<Float64Array> {
  let starts = new Float64Array(1 << 10);
  let count = 0;
  let next = 0;
  for await (const { bytes } of fileLines(path)) {
    next += bytes.length + 1;
    count += 1;
    if (count === starts.length) {
      const larger = new Float64Array(starts.length * 2);
      larger.set(starts);
      starts = larger;
    }
    starts[count] = next;
  }
  return starts.slice(0, count + 1);
}

class TaskFile implements TaskStore {
  readonly #file: LineFile;
  readonly #starts: Float64Array;
  /** All attempts of a group ask for the same one. */
  #last: { readonly index: number; readonly row: JsonObject } | undefined;

  constructor(file: LineFile, starts: Float64Array) {
    this.#file = file;
    this.#starts = starts;
  }

  get count(): number {
    return this.#starts.length - 1;
  }

  read(index: number): JsonObject {
    if (!Number.isInteger(index) || index < 0 || index >= this.count)
      throw new RangeError(`no task ${index} of ${this.count}`);
    if (this.#last?.index !== index) this.#last = { index, row: this.#parse(index) };
    return this.#last.row;
  }

  #parse(index: number): JsonObject {
    const start = this.#starts[index] as number;
    const length = (this.#starts[index + 1] as number) - start - 1;
    let value: unknown;
    try {
      value = JSON.parse(this.#file.read(start, length).toString());
    } catch (error) {
      return this.#changed(index, messageOf(error));
    }
    return isRecord(value) ? (value as JsonObject) : this.#changed(index, "it is not a JSON object");
  }

  #changed(index: number, why: string): never {
    return fail("RL8002", `${this.#file.path}:${index + 1} is not a task: ${why}. Apply again to make the rows anew.`);
  }

  close(): void {
    this.#file.close();
  }
}
