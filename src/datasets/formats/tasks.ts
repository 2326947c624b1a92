/** Rows of any fields, for environments: each JSON object is a task and is kept as it is. */
import type { Format } from "../format.ts";
import { damaged, isRecord } from "../row.ts";

export const tasksFormat: Format = {
  name: "tasks",
  isLog: false,
  expected: '{"question": "…", "answer": "…"}',
  detects: () => false,
  read(value) {
    if (!isRecord(value)) throw damaged("not a JSON object");
    return { rows: [], toolTurns: 0, task: value };
  },
};
