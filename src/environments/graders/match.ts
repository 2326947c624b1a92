/** `type: match` — plain comparison of the answer's text: exact, contained, by regular expression, or a choice's letter. */
import { createContext, Script } from "node:vm";
import { fail, messageOf } from "../../diagnostic.ts";
import { fieldText, type Grade, type GradeRequest, type Grader } from "../grader.ts";
import { worstSteps } from "./backtracking.ts";

export interface MatchOptions {
  readonly mode: "exact" | "contains" | "regex" | "choice";
  /** Field with the right answer. Optional for `regex`, where a match alone may count. */
  readonly answer?: string;
  /** For `regex`: searched in the completion; its first group, if it has one, is compared with the answer. */
  readonly pattern?: string;
  readonly ignore_case?: boolean;
  /** For `choice`: the letters there are. */
  readonly choices?: string;
}

/** A pattern of the user's may need exponential time on some completion. */
const REGEX_TIMEOUT_MS = 1000;

/** Grades one answer. */
type Grading = (request: GradeRequest) => Grade;

export function matchGrader(options: MatchOptions): Grader {
  const grade = GRADINGS[options.mode](options);
  return { grade: async (request) => grade(request), close: async () => {} };
}

const GRADINGS: Readonly<Record<MatchOptions["mode"], (options: MatchOptions) => Grading>> = {
  exact: (options) => (request) =>
    graded(fold(request.completion, options) === fold(truthOf(request, options), options), request.completion.trim()),
  contains: (options) => (request) =>
    graded(fold(request.completion, options).includes(fold(truthOf(request, options), options)), undefined),
  regex: regexGrading,
  choice: choiceGrading,
};

const fold = (text: string, { ignore_case }: MatchOptions): string =>
  (ignore_case ? text.toLowerCase() : text).normalize("NFC").trim();

function regexGrading(options: MatchOptions): Grading {
  const { pattern, ignore_case: ignoreCase = false, answer } = options;
  checkPattern(pattern);
  const find = finder(pattern, ignoreCase);
  return (request) => {
    const found = find(request.completion);
    if (answer === undefined || !found)
      return { ...graded(found !== undefined, found?.[0]), ...extracted(found !== undefined) };
    const text = found[1] ?? found[0];
    const isRight = fold(text, options) === fold(truthOf(request, options), options);
    return { ...graded(isRight, text), ...extracted(true) };
  };
}

function checkPattern(pattern: string | undefined): asserts pattern is string {
  if (pattern === undefined) fail("RL7102", "A match grader of mode `regex` needs a `pattern`.");
  try {
    new RegExp(pattern, "u");
  } catch (error) {
    fail("RL7102", `The pattern of a match grader is not a regular expression: ${messageOf(error)}.`);
  }
}

function choiceGrading(options: MatchOptions): Grading {
  const { choices = "ABCDEFGHIJ" } = options;
  return (request) => {
    const letter = lastChoice(request.completion, choices);
    const right = lastChoice(truthOf(request, options), choices);
    return {
      ...graded(letter !== undefined && letter === right, letter ?? "no choice found"),
      ...extracted(letter !== undefined),
    };
  };
}

function graded(isRight: boolean, note: string | undefined): Grade {
  return { reward: isRight ? 1 : 0, metrics: {}, ...(note === undefined ? {} : { note }) };
}

const extracted = (isThere: boolean) => ({ metrics: { extracted: isThere ? 1 : 0 } });

function truthOf({ row }: GradeRequest, { answer }: MatchOptions): string {
  const truth = answer === undefined ? undefined : fieldText(row, answer);
  return (
    truth ??
    fail(
      "RL7101",
      `A row has no text or number in its field \`${answer}\`. It has ${Object.keys(row).join(", ") || "no fields"}.`,
    )
  );
}

/** Where patterns run, so that they can be interrupted. Making one takes longer than most patterns do, so it is made once. */
let place: { readonly context: Record<string, unknown>; readonly script: Script } | undefined;

function searchPlace() {
  place ??= {
    context: createContext({}) as Record<string, unknown>,
    script: new Script("[...text.matchAll(new RegExp(pattern, flags))].at(-1)"),
  };
  return place;
}

/** So many steps take milliseconds: less than what it costs to be able to interrupt them, for most patterns and answers. */
const FEW_STEPS = 5e6;

/** Finds the last match of a pattern, which is looked at once. The search throws RL7103 where it takes too long. */
function finder(pattern: string, ignoreCase: boolean): (text: string) => RegExpMatchArray | undefined {
  const flags = ignoreCase ? "giu" : "gu";
  const expression = new RegExp(pattern, flags);
  const steps = worstSteps(pattern);
  return (text) =>
    steps(text.length) <= FEW_STEPS
      ? [...text.matchAll(expression)].at(-1)
      : findInterruptibly({ pattern, flags, text });
}

function findInterruptibly(search: { pattern: string; flags: string; text: string }): RegExpMatchArray | undefined {
  const { context, script } = searchPlace();
  Object.assign(context, search);
  try {
    const found = script.runInContext(context, { timeout: REGEX_TIMEOUT_MS }) as RegExpMatchArray | undefined;
    return found && ([...found] as RegExpMatchArray);
  } catch (error) {
    return fail(
      "RL7103",
      `The pattern of a match grader did not end within ${REGEX_TIMEOUT_MS} ms on a completion: ${messageOf(error)}.`,
    );
  }
}

/** The letter that was chosen: boxed or named as the answer if there is such a place, else the last one that stands alone. */
export function lastChoice(text: string, letters: string): string | undefined {
  const set = `[${letters}]`;
  const marks = [
    new RegExp(`\\\\boxed\\s*\\{\\s*(?:\\\\text\\s*\\{)?\\s*\\(?(${set})\\)?`, "gi"),
    new RegExp(`(?:answer|choice|option)(?:\\s+is)?\\s*[:=]?\\s*\\**\\s*\\(?(${set})(?![a-z])\\)?`, "gi"),
    new RegExp(`(?<![\\p{L}\\d])\\(?(${set})(?:\\)|\\.|:|(?![\\p{L}\\d'’]))`, "gu"),
  ];
  for (const mark of marks) {
    const found = [...text.matchAll(mark)].at(-1)?.[1];
    if (found) return found.toUpperCase();
  }
  return undefined;
}
