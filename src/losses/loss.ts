/** What a loss is to the rest of the program: its options and where it exists. The formulas' code lives beside it. */

export interface LossOption {
  readonly name: string;
  readonly description: string;
  /** The value every backend is given where the spec leaves the option out; undefined: "as the server has it". */
  readonly default?: number;
  /** Inclusive. */
  readonly min?: number;
  readonly max?: number;
}

export interface LossDefinition {
  /** As in the spec and on the wire. */
  readonly name: string;
  readonly description: string;
  readonly options: readonly LossOption[];
  /** Tensors that each datum must carry beside `target_tokens`, each [N]. */
  readonly inputs: readonly string[];
  /** Which kind of run may use it. */
  readonly runs: readonly ("sl" | "rl")[];
  /** Backends that compute it themselves. */
  readonly backends: readonly ("embedded" | "jax" | "fsdp" | "megatron" | "hosted")[];
}
