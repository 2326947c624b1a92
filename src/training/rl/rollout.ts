/** A rollout: one attempt at a task, what was said in it and what it was worth. And how it is written down. */
import type { ChatMessage } from "../../environments/grader.ts";
import { readFloat32, readInt32 } from "../../tinker/proto/bytes.ts";
import type { Turn } from "./segments.ts";

/** An answer as tokens and text, and what was said to it. */
export interface RolloutTurn extends Turn {
  /** Without the token that ended it. */
  readonly text: string;
  readonly stop: "stop" | "length";
  /** What a conversation began with: of the first turn, and of each that begins one anew. Absent in what older versions wrote. */
  readonly asked?: readonly ChatMessage[];
  /** What the environment said to the answer, whether or not the policy got to see it. */
  readonly reply?: readonly ChatMessage[];
}

/** Which attempt it is. */
export interface Place {
  /** Number of the group within its step, and of the attempt within its group. */
  readonly group: number;
  readonly index: number;
  /** Row of the task. */
  readonly task: number;
  /** In evals, where tasks have names; those of a run are in its order. */
  readonly taskName?: string;
}

/** An attempt that was graded. */
export interface Rollout extends Place {
  readonly turns: readonly RolloutTurn[];
  readonly reward: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly note?: string;
  /** Step after which the weights were taken that sampled it. */
  readonly weights: number;
  /** Log-probabilities of all tokens under the KL penalty's reference, a segment each. */
  readonly reference?: readonly Float32Array[];
}

/** An attempt that was lost to a fault, after all retries. */
export interface LostRollout extends Place {
  readonly fault: { readonly code: string; readonly message: string };
  /** What was answered before, where anything was; to look at, never trained on. */
  readonly turns?: readonly RolloutTurn[];
}

export type Attempt = Rollout | LostRollout;

export const isLost = (attempt: Attempt): attempt is LostRollout => "fault" in attempt;

/**
 * 2: tokens and log-probabilities as bytes. Files of version 1 are read too, and go on with lines of version 2.
 */
export const ROLLOUTS_VERSION = 2;

/**
 * Numbers in a file: base64 of int32 or float32, little-endian. A step has a hundred thousand of them; as digits they would be most of
 * the file and of the time to write it, and float32 is exact this way. Version 1 had lists.
 */
type Packed = string | readonly number[];

/** A turn in a file: its prompt whole, or what was added to what came before it. */
interface TurnLine {
  readonly prompt?: Packed;
  /** To the tokens of the turn before. */
  readonly added?: Packed;
  readonly tokens: Packed;
  readonly logprobs: Packed;
  readonly text: string;
  readonly stop: "stop" | "length";
  readonly asked?: readonly ChatMessage[];
  readonly reply?: readonly ChatMessage[];
}

interface RolloutLine extends Omit<Rollout, "turns" | "reference"> {
  readonly turns: readonly TurnLine[];
  readonly reference?: readonly Packed[];
}

interface LostLine extends Omit<LostRollout, "turns"> {
  readonly turns?: readonly TurnLine[];
}

export type AttemptLine = RolloutLine | LostLine;

/**
 * The lines of some groups: what is read is what was sampled, bit for bit. A first turn without a prompt was asked what the attempt of
 * its group on a line before was asked, as tokens and as messages.
 */
export function toLines(groups: readonly Attempt[]): readonly AttemptLine[] {
  let asked: { readonly group: number; readonly prompt: Int32Array | undefined } | undefined;
  return groups.map((attempt) => {
    if (isLost(attempt)) return lostLine(attempt);
    const { turns, reference, ...rest } = attempt;
    const known = asked?.group === attempt.group ? asked.prompt : undefined;
    const lines = turns.map((turn, at) => turnLine(turn, turns[at - 1], at === 0 ? known : undefined));
    asked = { group: attempt.group, prompt: turns[0]?.prompt };
    return {
      ...rest,
      turns: lines,
      ...(reference ? { reference: reference.map(pack) } : {}),
    };
  });
}

/** With its prompt: it may be lost on its own, or be taken out of the file. */
function lostLine({ turns, ...rest }: LostRollout): LostLine {
  return turns ? { ...rest, turns: turns.map((turn, at) => turnLine(turn, turns[at - 1], undefined)) } : rest;
}

function turnLine(
  { prompt, tokens, logprobs, text, stop, asked: beginning, reply }: RolloutTurn,
  before: RolloutTurn | undefined,
  asked: Int32Array | undefined,
): TurnLine {
  const answer = { tokens: pack(tokens), logprobs: pack(logprobs), text, stop };
  const replied = { ...answer, ...(reply ? { reply } : {}) };
  const said = { ...replied, ...(beginning ? { asked: beginning } : {}) };
  if (asked && (prompt === asked || (prompt.length === asked.length && startsWith(prompt, asked)))) return replied;
  const known = before && joined(before);
  if (known && startsWith(prompt, known)) return { added: pack(prompt.subarray(known.length)), ...said };
  return { prompt: pack(prompt), ...said };
}

function pack(values: Int32Array | Float32Array): string {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("base64");
}

function integers(packed: Packed): Int32Array {
  return typeof packed === "string" ? readInt32(Buffer.from(packed, "base64")) : Int32Array.from(packed);
}

function floats(packed: Packed): Float32Array {
  return typeof packed === "string" ? readFloat32(Buffer.from(packed, "base64")) : Float32Array.from(packed);
}

/** Attempts from their lines, in order. One whose prompt stood on a line that is missing is left out. */
export function fromLines(lines: readonly AttemptLine[]): readonly Attempt[] {
  let asked = NOTHING_ASKED;
  let group: number | undefined;
  return lines.flatMap((line): Attempt | [] => {
    if ("fault" in line) {
      const { turns, ...rest } = line;
      return turns ? { ...rest, turns: readTurns(turns, NOTHING_ASKED) } : rest;
    }
    if (line.group !== group && line.turns[0]?.prompt === undefined) return [];
    group = line.group;
    const { turns: written, reference, ...rest } = line;
    const turns = readTurns(written, asked);
    const [first] = turns;
    if (first) asked = { prompt: first.prompt, ...(first.asked ? { messages: first.asked } : {}) };
    return {
      ...rest,
      turns,
      ...(reference ? { reference: reference.map(floats) } : {}),
    };
  });
}

/** What the attempt before of the same group was asked first. */
interface Asked {
  readonly prompt: Int32Array;
  readonly messages?: readonly ChatMessage[];
}

const NOTHING_ASKED: Asked = { prompt: new Int32Array() };

function readTurns(written: readonly TurnLine[], before: Asked): readonly RolloutTurn[] {
  const turns: RolloutTurn[] = [];
  for (const { prompt, added, tokens, logprobs, text, stop, asked: own, reply } of written) {
    const last = turns.at(-1);
    const beginning = own ?? (last || prompt !== undefined ? undefined : before.messages);
    const whole =
      prompt !== undefined
        ? integers(prompt)
        : last
          ? joined({ prompt: joined(last), tokens: integers(added ?? []) })
          : before.prompt;
    turns.push({
      prompt: whole,
      tokens: integers(tokens),
      logprobs: floats(logprobs),
      text,
      stop,
      ...(beginning ? { asked: beginning } : {}),
      ...(reply ? { reply } : {}),
    });
  }
  return turns;
}

function joined({ prompt, tokens }: Pick<Turn, "prompt" | "tokens">): Int32Array {
  const all = new Int32Array(prompt.length + tokens.length);
  all.set(prompt);
  all.set(tokens, prompt.length);
  return all;
}

function startsWith(tokens: Int32Array, start: Int32Array): boolean {
  return tokens.length >= start.length && start.every((token, at) => tokens[at] === token);
}
