/** Conversations as the whole program knows them: one canonical row of a dataset, and what templates are given. */

/** One turn. Fields beyond these (`reasoning_content`, `tool_calls`, `name`, …) reach the template as they are. */
export interface Message {
  readonly role: string;
  /** Text, or parts where the model's template takes parts. Null counts as empty. */
  readonly content?: unknown;
  /** Factor on the loss weight of this turn's tokens: 0 keeps it as context. 1 where absent. */
  readonly weight?: number;
  readonly [field: string]: unknown;
}

export interface Conversation {
  readonly messages: readonly Message[];
  /** Tool definitions as chat-completions APIs take them. */
  readonly tools?: readonly unknown[];
  /** Factor on the loss weights of the whole conversation. 1 where absent. */
  readonly weight?: number;
}

/** A training example. Position i of `weights` is the loss weight of predicting `tokens[i]`; the first is always 0. */
export interface TokenDatum {
  /** [N] */
  readonly tokens: Int32Array;
  /** [N] */
  readonly weights: Float32Array;
  /** The conversation's own weight, which is in `weights` already. 1 where absent. */
  readonly factor?: number;
}
