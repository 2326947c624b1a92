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

export function matchGrader(options: MatchOptions): Grader {
  const { mode, pattern } = options;
  if (mode === "regex") checkPattern(pattern);
  return { grade: async (request) => gradeMatch(request, options), close: async () => {} };
}

function checkPattern(pattern: string | undefined): void {
  if (pattern === undefined) fail("RL7102", "A match grader of mode `regex` needs a `pattern`.");
  try {
    new RegExp(pattern, "u");
  } catch (error) {
    fail("RL7102", `The pattern of a match grader is not a regular expression: ${messageOf(error)}.`);
  }
}

function gradeMatch(request: GradeRequest, options: MatchOptions): Grade {
  const fold = (text: string): string => (options.ignore_case ? text.toLowerCase() : text).normalize("NFC").trim();
  switch (options.mode) {
    case "exact":
      return graded(fold(request.completion) === fold(truthOf(request, options)), request.completion.trim());
    case "contains":
      return graded(fold(request.completion).includes(fold(truthOf(request, options))), undefined);
    case "regex": {
      const found = search(options.pattern as string, options.ignore_case ?? false, request.completion);
      if (options.answer === undefined || !found)
        return { ...graded(found !== undefined, found?.[0]), ...extracted(found !== undefined) };
      const text = found[1] ?? found[0];
      return { ...graded(fold(text) === fold(truthOf(request, options)), text), ...extracted(true) };
    }
    case "choice": {
      const letter = lastChoice(request.completion, options.choices ?? "ABCDEFGHIJ");
      const truth = lastChoice(truthOf(request, options), options.choices ?? "ABCDEFGHIJ");
      return {
        ...graded(letter !== undefined && letter === truth, letter ?? "no choice found"),
        ...extracted(letter !== undefined),
      };
    }
  }
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

/** The last match of a pattern. Throws RL7103 for one that takes too long. */
function search(pattern: string, ignoreCase: boolean, text: string): RegExpMatchArray | undefined {
  const flags = ignoreCase ? "giu" : "gu";
  if (worstSteps(pattern, text.length) <= FEW_STEPS) return [...text.matchAll(new RegExp(pattern, flags))].at(-1);
  const { context, script } = searchPlace();
  Object.assign(context, { pattern, flags, text });
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
