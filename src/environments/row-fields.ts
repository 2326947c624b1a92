/** Fields that an environment needs of the rows of its dataset, looked at before anything is sampled. */
import type { EnvironmentOrder, GraderOrder } from "../environment-order.ts";
import type { JsonObject } from "../value.ts";
import { fieldText } from "./grader.ts";
import { hasQuestion } from "./prompt.ts";

export interface RowField {
  /** Name in the rows. */
  readonly name: string;
  /** Where the environment's block says so: `question`, `answer`, `parts.0.answer`. */
  readonly path: string;
  readonly isIn: (row: JsonObject) => boolean;
}

/** What must be in every row for it to be asked and graded. */
export function neededFields({
  question,
  graders,
}: Pick<EnvironmentOrder, "question" | "graders">): readonly RowField[] {
  const asked: RowField = { name: question, path: "question", isIn: (row) => hasQuestion(row, question) };
  return [
    asked,
    ...graders.flatMap((grader, at) => answerField(grader, at === 0 ? "answer" : `parts.${at - 1}.answer`)),
  ];
}

/** The field with the right answer, of graders that compare with one. */
function answerField({ type, options }: GraderOrder, path: string): readonly RowField[] {
  const name = options.answer;
  if (typeof name !== "string") return [];
  if (type === "json_schema") return [{ name, path, isIn: (row) => name in row }];
  if (type !== "math" && type !== "match") return [];
  return [{ name, path, isIn: (row) => fieldText(row, name) !== undefined }];
}

export interface LackingField extends RowField {
  /** Rows that lack it. */
  readonly count: number;
  /** The first of them, from 0. */
  readonly first: number;
}

/** Needed fields that some of the rows lack. */
export function lackingFields(needed: readonly RowField[], rows: readonly JsonObject[]): readonly LackingField[] {
  return needed.flatMap((field) => {
    const lacking = rows.flatMap((row, at) => (field.isIn(row) ? [] : [at]));
    const [first] = lacking;
    return first === undefined ? [] : [{ ...field, count: lacking.length, first }];
  });
}
