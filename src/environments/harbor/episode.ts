/** An attempt of a policy at a task: its answers are commands until it stops giving any, and then the tests judge. */
import { fail, RlcliError } from "../../diagnostic.ts";
import type { AgentOrder } from "../../environment-order.ts";
import { parseCalls, type ToolCall } from "../../tokens/calls.ts";
import type { Answer, Episode, Response } from "../environment.ts";
import type { ChatMessage, Grade } from "../grader.ts";
import { BASH_TOOL, commandOf } from "./calls.ts";
import { scalarOf } from "./reward.ts";
import { maskSecrets, withoutSecrets } from "./templates.ts";
import type { Trial } from "./trial.ts";

/** Why an attempt ended. */
export type StopReason =
  | "completed"
  | "max_turns"
  | "max_tokens"
  | "context_overflow"
  | "parse_error"
  | "agent_timeout";

export interface EpisodeDeps {
  readonly trial: Trial;
  readonly agent: AgentOrder;
  readonly keepFailed: boolean;
  readonly signal: AbortSignal;
}

const SYSTEM =
  "You are a skilled software engineer working in a sandbox with a bash tool. Complete the user's task by running commands, and look at what they print before you go on. When the task is done, say so without calling the tool.";
const BLOCK_FORM =
  "To run a command, end your answer with it in a block that begins with a line ```bash and ends with a line ```.";

export class HarborEpisode implements Episode {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly unknown[];
  readonly maxTurns: number;
  readonly maxTokens?: number;
  readonly #deps: EpisodeDeps;
  readonly #counts = { turns: 0, tool_calls: 0, parse_errors: 0, steps: 0 };
  #hasBegun = false;
  #hasFailed = false;
  #stepTurns = 0;
  #malformed = 0;
  #deadlineMs = Number.POSITIVE_INFINITY;

  constructor(deps: EpisodeDeps) {
    const { agent, trial } = deps;
    this.#deps = deps;
    this.messages = this.#question(trial.task.steps[0]?.instruction ?? "");
    if (agent.tool_format !== "bash_block") this.tools = [BASH_TOOL];
    this.maxTurns = agent.max_turns * trial.task.steps.length;
    if (agent.max_trajectory_tokens !== undefined) this.maxTokens = agent.max_trajectory_tokens;
  }

  #question(instruction: string): readonly ChatMessage[] {
    const { agent } = this.#deps;
    const system = agent.system ?? (agent.tool_format === "bash_block" ? `${SYSTEM}\n${BLOCK_FORM}` : SYSTEM);
    return [...(system === "" ? [] : [{ role: "system", content: system }]), { role: "user", content: instruction }];
  }

  async respond(answer: Answer): Promise<Response> {
    return this.#noting(async () => {
      this.#counts.turns += 1;
      this.#stepTurns += 1;
      if (!answer.isWhole) return this.#limit("max_tokens");
      const parsed = parseCalls(answer.text, this.#deps.agent.tool_format);
      if (parsed.calls.length === 0 && parsed.faults.length > 0) return this.#refuse(parsed);
      this.#malformed = 0;
      this.#counts.parse_errors += parsed.faults.length;
      if (parsed.calls.length === 0) return this.#judge("completed");
      await this.#begin();
      const replies: ChatMessage[] = [];
      for (const call of parsed.calls) replies.push(await this.#call(call, parsed.isToolForm));
      for (const fault of parsed.faults) replies.push(errorMessage(fault, parsed.isToolForm));
      const ending = this.#ending(answer);
      if (ending) return { ...(await this.#judge(ending)), outputs: replies };
      return { messages: replies };
    });
  }

  /** Why there is no further answer in this step, if so. */
  #ending(answer: Answer): StopReason | undefined {
    if (performance.now() >= this.#deadlineMs) return "agent_timeout";
    return answer.isLast || this.#stepTurns >= this.#deps.agent.max_turns ? "max_turns" : undefined;
  }

  /** The conversation became too long to go on. */
  async tooLong(): Promise<Grade> {
    const response = await this.#noting(() => this.#limit("context_overflow"));
    // A next step would be asked with a conversation of its own; what is counted here is one conversation.
    return "messages" in response ? this.#penalty("context_overflow") : response;
  }

  async close(): Promise<void> {
    await this.#deps.trial.close({ keep: this.#hasFailed && this.#deps.keepFailed });
  }

  /** The container is made when it is first needed: an attempt that waits for an answer holds no place. */
  async #begin(): Promise<void> {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    await this.#deps.trial.begin();
    this.#startClock();
  }

  #startClock(): void {
    this.#deadlineMs = performance.now() + this.#deps.trial.agentTimeoutMs;
  }

  async #call(call: ToolCall, isToolForm: boolean): Promise<ChatMessage> {
    this.#counts.tool_calls += 1;
    const read = commandOf(call);
    if ("error" in read) return errorMessage(read.error, isToolForm, call.name);
    const { trial, agent, signal } = this.#deps;
    const result = await trial.sandbox.run({
      command: read.command,
      user: trial.agentUser,
      timeoutMs: Math.max(1, Math.min(agent.command_timeout_ms, this.#deadlineMs - performance.now())),
      keepBytes: agent.output_bytes,
      signal,
    });
    const shown = (text: string) => maskSecrets(text, trial.env.secrets);
    const said = {
      exit_code: result.exitCode,
      ...(result.hasTimedOut ? { timed_out: true } : {}),
      ...(result.memoryKills > 0 ? { out_of_memory: true } : {}),
      stdout: shown(result.stdout.text),
      stderr: shown(result.stderr.text),
    };
    return toolMessage(said, isToolForm, call.name);
  }

  #refuse({
    faults,
    isToolForm,
  }: {
    readonly faults: readonly string[];
    readonly isToolForm: boolean;
  }): Promise<Response> {
    this.#counts.parse_errors += faults.length;
    this.#malformed += 1;
    const { agent } = this.#deps;
    if (this.#malformed > agent.malformed_retries) return this.#limit("parse_error");
    if (this.#stepTurns >= agent.max_turns) return this.#judge("max_turns");
    return Promise.resolve({ messages: faults.map((fault) => errorMessage(fault, isToolForm)) });
  }

  /** Ended by a limit of its own making: a price, or the tests all the same. */
  #limit(reason: StopReason): Promise<Response> {
    return this.#deps.agent.on_limit === "grade" ? this.#judge(reason) : Promise.resolve(this.#penalty(reason));
  }

  #penalty(reason: StopReason): Grade {
    return { reward: this.#deps.agent.limit_reward, metrics: this.#metrics(reason), note: reason };
  }

  async #judge(reason: StopReason): Promise<Response> {
    const { trial, agent } = this.#deps;
    await this.#begin();
    this.#counts.steps += 1;
    if (await trial.judge()) {
      this.#stepTurns = 0;
      this.#malformed = 0;
      this.#startClock();
      return { messages: this.#question(trial.step.instruction), isFresh: true };
    }
    const rewards = trial.rewards.task;
    const reward = scalarOf(rewards, agent.reward_key);
    const named = Object.entries(rewards).map(([key, value]) => [`verifier/${key}`, value] as const);
    return { reward, metrics: { ...Object.fromEntries(named), ...this.#metrics(reason) }, note: reason };
  }

  #metrics(reason: StopReason): Record<string, number> {
    const { memoryKills } = this.#deps.trial;
    const memory = memoryKills === 0 ? {} : { memory_kills: memoryKills };
    return { ...this.#counts, ...memory, [`stop/${reason}`]: 1 };
  }

  async #noting(work: () => Promise<Response>): Promise<Response> {
    try {
      return await work();
    } catch (error) {
      this.#hasFailed = true;
      // An aborted run is no fault of the sandbox.
      this.#deps.signal.throwIfAborted();
      if (error instanceof RlcliError) throw withoutSecrets(error, this.#deps.trial.env.secrets);
      return fail("RL7303", `The sandbox failed: ${String(error)}.`, { cause: error });
    }
  }
}

function toolMessage(said: object, isToolForm: boolean, name: string): ChatMessage {
  const content = JSON.stringify(said);
  return isToolForm ? { role: "tool", name, content } : { role: "user", content };
}

const errorMessage = (error: string, isToolForm: boolean, name = "bash"): ChatMessage =>
  toolMessage({ error }, isToolForm, name);
