/** What `rlcli eval` is told, and how its results are shown, whichever way they were measured. */
import type { EnvironmentFlags } from "./adhoc/environment.ts";
import type { CommandContext } from "./context.ts";
import type { SpecOptions } from "./options.ts";
import { renderEval, type ShownEval } from "./views/eval.ts";

export interface EvalFlags extends Partial<SpecOptions>, Omit<EnvironmentFlags, "dataset"> {
  readonly fresh?: boolean;
  readonly dataset?: string;
  readonly run?: string;
  readonly checkpoint?: string;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly server?: string;
  readonly tasks?: number;
  readonly samples?: number;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
  readonly minReward?: number;
}

export const EVALS_JSON_VERSION = 1;

export function showEvals(context: CommandContext, shown: readonly ShownEval[]): void {
  if (context.isJson) {
    const evals = shown.map(({ result, ...rest }) => ({ ...rest, ...result }));
    context.out(`${JSON.stringify({ formatVersion: EVALS_JSON_VERSION, evals })}\n`);
    return;
  }
  context.out(shown.map((one) => renderEval(one, context.style)).join("\n"));
}
