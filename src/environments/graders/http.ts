/** `type: http` — a server as a grader: the question as JSON in a POST, a grade as the answer. */
import type { Grade, GradeRequest, Grader } from "../grader.ts";
import { readGrade } from "./answer.ts";
import { postJson } from "./request.ts";

export interface HttpOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly tries: number;
}

export function httpGrader({ url, headers, timeoutMs, tries }: HttpOptions): Grader {
  const who = `The grader at ${url}`;
  const grade = async ({ prompt, completion, row, signal }: GradeRequest): Promise<Grade> =>
    readGrade(await postJson({ url, headers, timeoutMs, tries, signal, who, body: { prompt, completion, row } }), who);
  return { grade, close: async () => {} };
}
