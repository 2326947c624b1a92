/**
 * A rollout as a document of the Agent Trajectory Interchange Format (ATIF 1.7, Harbor's RFC 0001): who said what, which tools were
 * called, what they gave, what it cost. A document is one conversation; a rollout whose conversation began anew (the steps of a
 * task) is a chain of them. https://github.com/laude-institute/harbor/blob/main/docs/rfcs/0001-trajectory-format.md
 */
import type { ChatMessage } from "../../environments/grader.ts";
import { parseCalls, partThinking, type ToolFormat } from "../../tokens/calls.ts";
import { type Attempt, isLost, type RolloutTurn } from "./rollout.ts";

/** All that is written is in 1.7; 1.8 added sound. */
export const ATIF_VERSION = "ATIF-v1.7";

export interface Trajectory {
  readonly schema_version: typeof ATIF_VERSION;
  /** Of the rollout: all its conversations have it. */
  readonly session_id: string;
  readonly trajectory_id: string;
  readonly agent: TrajectoryAgent;
  readonly steps: readonly TrajectoryStep[];
  readonly final_metrics: FinalMetrics;
  /** Name of the file with the next conversation. */
  readonly continued_trajectory_ref?: string;
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface TrajectoryAgent {
  readonly name: string;
  readonly version: string;
  readonly model_name?: string;
  readonly tool_definitions?: readonly unknown[];
}

export interface TrajectoryStep {
  /** From 1. */
  readonly step_id: number;
  readonly source: "system" | "user" | "agent";
  readonly message: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly tool_call_id: string;
    readonly function_name: string;
    readonly arguments: Readonly<Record<string, unknown>>;
  }[];
  readonly observation?: {
    readonly results: readonly { readonly source_call_id?: string; readonly content: string }[];
  };
  readonly metrics?: TurnMetrics;
  readonly is_copied_context?: true;
  /** 1 for an answer of the policy; 0 for an example of one in the prompt. */
  readonly llm_call_count?: 0 | 1;
  /** `stop: length` where the answer was cut. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

interface TurnMetrics {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_token_ids?: readonly number[];
  readonly completion_token_ids?: readonly number[];
  /** In nats, one for each token of the answer. */
  readonly logprobs?: readonly number[];
}

interface FinalMetrics {
  readonly total_prompt_tokens: number;
  readonly total_completion_tokens: number;
  readonly total_steps: number;
  /** The reward and all that was measured; of the last document of a chain. */
  readonly extra?: Readonly<Record<string, number>>;
}

export interface TrajectoryContext {
  readonly sessionId: string;
  readonly agent: TrajectoryAgent;
  /** How tools are called; absent where there are none. */
  readonly toolFormat?: ToolFormat;
  /** Token ids and log-probabilities too. */
  readonly hasTokens: boolean;
  readonly extra: Readonly<Record<string, unknown>>;
  /** Text of tokens, for rollouts that were written down without messages. */
  decode(tokens: Int32Array): string;
}

/** File of the n-th conversation, from 0, as Harbor calls them. */
export const trajectoryFile = (at: number): string => (at === 0 ? "trajectory.json" : `trajectory.cont-${at}.json`);

/** One document for each conversation, in order. */
export function trajectoriesOf(rollout: Attempt, context: TrajectoryContext): readonly Trajectory[] {
  const all = conversationsOf(rollout.turns ?? []);
  return all.map((turns, at) => {
    const steps = stepsOf(turns, context);
    const isLast = at === all.length - 1;
    return {
      schema_version: ATIF_VERSION,
      session_id: context.sessionId,
      trajectory_id: `${context.sessionId}/${at}`,
      agent: context.agent,
      steps,
      final_metrics: {
        total_prompt_tokens: turns.reduce((sum, { prompt }) => sum + prompt.length, 0),
        total_completion_tokens: turns.reduce((sum, { tokens }) => sum + tokens.length, 0),
        total_steps: steps.length,
        ...(isLast && !isLost(rollout) ? { extra: { reward: rollout.reward, ...rollout.metrics } } : {}),
      },
      ...(isLast ? {} : { continued_trajectory_ref: trajectoryFile(at + 1) }),
      extra: {
        ...context.extra,
        ...worthOf(rollout),
      },
    };
  });
}

function worthOf(attempt: Attempt): Readonly<Record<string, unknown>> {
  if (isLost(attempt)) return { fault: attempt.fault };
  const { weights, reward, note } = attempt;
  return { weights_step: weights, reward, ...(note === undefined ? {} : { note }) };
}

/** Turns of one conversation each: a new one begins where a turn says what it began with. */
function conversationsOf(turns: readonly RolloutTurn[]): readonly (readonly RolloutTurn[])[] {
  const all: RolloutTurn[][] = [];
  for (const turn of turns) {
    const open = all.at(-1);
    if (open === undefined || turn.asked) all.push([turn]);
    else open.push(turn);
  }
  return all;
}

type Step = Omit<TrajectoryStep, "step_id">;

function stepsOf(turns: readonly RolloutTurn[], context: TrajectoryContext): readonly TrajectoryStep[] {
  let known = new Int32Array();
  let wasTold = false;
  const steps = turns.flatMap((turn): Step[] => {
    const asked = wasTold ? [] : (turn.asked ?? [promptText(turn, known, context)]);
    known = Int32Array.from([...turn.prompt, ...turn.tokens]);
    wasTold = turn.reply !== undefined;
    const before = asked.map((message) => messageStep(message));
    const answer = agentStep(turn, context);
    const said = answer.observation ? [] : (turn.reply ?? []).map((message) => messageStep(message));
    return [...before, answer, ...said];
  });
  return steps.map((step, at) => ({ step_id: at + 1, ...step }));
}

/** What was asked in the template's own words, where the messages were not written down: of a later turn what was added. */
function promptText({ prompt }: RolloutTurn, known: Int32Array, { decode }: TrajectoryContext): ChatMessage {
  const isAdded = known.every((token, at) => token === prompt[at]);
  return { role: "user", content: decode(isAdded ? prompt.subarray(known.length) : prompt) };
}

function messageStep({ role, content }: ChatMessage): Step {
  if (role === "assistant") return { source: "agent", message: content, is_copied_context: true, llm_call_count: 0 };
  return { source: role === "system" ? "system" : "user", message: content };
}

function agentStep(turn: RolloutTurn, { toolFormat, hasTokens }: TrajectoryContext): Step {
  const { text, stop, prompt, tokens, logprobs, reply = [] } = turn;
  const { thought, said } = partThinking(text);
  const parsed = toolFormat && parseCalls(text, toolFormat);
  const calls = (parsed?.calls ?? []).map((call, at) => ({
    tool_call_id: `call_${at + 1}`,
    function_name: call.name,
    arguments: call.arguments,
  }));
  // Replies to calls come first and in their order; what follows them says what was malformed.
  const results = reply.map(({ content }, at) => {
    const call = calls[at];
    return { ...(call ? { source_call_id: call.tool_call_id } : {}), content };
  });
  return {
    source: "agent",
    message: (parsed?.said ?? said).trim(),
    ...(thought === "" ? {} : { reasoning_content: thought }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(toolFormat && results.length > 0 ? { observation: { results } } : {}),
    metrics: {
      prompt_tokens: prompt.length,
      completion_tokens: tokens.length,
      ...(hasTokens
        ? {
            prompt_token_ids: Array.from(prompt),
            completion_token_ids: Array.from(tokens),
            logprobs: Array.from(logprobs),
          }
        : {}),
    },
    llm_call_count: 1,
    ...(stop === "length" ? { extra: { stop } } : {}),
  };
}
