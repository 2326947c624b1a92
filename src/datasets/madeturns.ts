/**
 * Messages that are more than plain text (tool calls and results, lists of parts), on the short way: they alone are parsed, and read as the
 * formats read them.
 */
import type { Message } from "../tokens/conversation.ts";
import type { FormatOptions } from "./format.ts";
import { RejectedRow, saysNothing } from "./row.ts";
import { readTurns, type Turns } from "./turns.ts";

export interface MadeTurns {
  readonly messages: readonly Message[];
  /** Turns that said nothing. */
  readonly emptyTurns: number;
  /** Tool results left out. */
  readonly toolTurns: number;
}

/** The turns of a message, given as JSON; undefined where it is for the formats to say what is wrong with it. */
export function madeTurns(json: string, options: FormatOptions): MadeTurns | undefined {
  const turns: Turns = { messages: [], toolTurns: 0 };
  try {
    readTurns(JSON.parse(json), options, turns);
  } catch (error) {
    if (error instanceof RejectedRow || error instanceof RangeError) return undefined;
    throw error;
  }
  const messages = turns.messages.filter((message) => !saysNothing(message));
  return { messages, emptyTurns: turns.messages.length - messages.length, toolTurns: turns.toolTurns };
}
