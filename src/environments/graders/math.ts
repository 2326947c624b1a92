/** `type: math` — is the final answer right? Numbers, fractions, percent, units, sets, intervals and expressions. */
import { fail } from "../../diagnostic.ts";
import { fieldText, type Grade, type GradeRequest, type Grader } from "../grader.ts";
import { type Answer, parseAnswer } from "./math/answer.ts";
import { sameAnswer } from "./math/compare.ts";
import { ANSWER_FORMATS, type AnswerFormat, extractAnswer } from "./math/extract.ts";
import { sameExpression } from "./math/symbolic.ts";

export interface MathOptions {
  /** Field of the row with the right answer: bare, or a worked solution that ends in `####` or `\boxed{}`. */
  readonly answer: string;
  /** Where the completion's answer may stand, the most trusted first. */
  readonly formats?: readonly AnswerFormat[];
  /** Relative difference that rounded decimals may have. */
  readonly tolerance?: number;
}

const DEFAULT_TOLERANCE = 1e-6;

export function mathGrader(options: MathOptions): Grader {
  return { grade: (request) => gradeMath(request, options), close: async () => {} };
}

async function gradeMath({ completion, row }: GradeRequest, options: MathOptions): Promise<Grade> {
  const truth = fieldText(row, options.answer);
  if (truth === undefined) {
    fail(
      "RL7101",
      `A row has no text or number in its field \`${options.answer}\`, which holds the right answer. It has ${Object.keys(row).join(", ") || "no fields"}.`,
    );
  }
  const found = extractAnswer(completion, options.formats ?? ANSWER_FORMATS);
  const formats = Object.fromEntries(
    ANSWER_FORMATS.map((format) => [`format/${format}`, found?.format === format ? 1 : 0]),
  );
  if (!found) return { reward: 0, metrics: { extracted: 0, ...formats }, note: "no answer found" };
  const isRight = await sameText(found.text, truth, options.tolerance);
  return { reward: isRight ? 1 : 0, metrics: { extracted: 1, ...formats }, note: found.text };
}

/** Whether a text says what the right answer says. */
export async function sameText(text: string, truth: string, tolerance = DEFAULT_TOLERANCE): Promise<boolean> {
  const options = { tolerance, symbolic: sameExpression };
  return sameAnswer(parseAnswer(text), parseTruth(truth), options);
}

/** A worked solution is reduced to its marked answer; anything else is the answer itself. */
function parseTruth(truth: string): Answer {
  const marked = extractAnswer(truth, ["boxed", "hash"]);
  return parseAnswer(marked?.text ?? truth);
}
