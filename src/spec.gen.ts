/** Generated from schemas/rlcli.schema.json by schemas/generate.mjs; do not edit. */

/**
 * An rlcli.yaml: what should exist (servers, datasets, losses, runs). `rlcli plan` says what it takes to get there, `rlcli apply` does it.
 */
export interface SpecFile {
  /**
   * Version of the spec language. Defaults and meanings of a version never change, so an old file never retrains by itself.
   */
  readonly rlcli: 1;
  /**
   * Names this project to servers and in checkpoint names. Another name is another project: nothing is shared.
   */
  readonly project: string;
  /**
   * Inputs of the spec, used as `${var.NAME}`. Set by --var NAME=VALUE, --var-file FILE or the environment variable RLCLI_VAR_NAME, in that order of precedence; else the default.
   */
  readonly variables?: {
    readonly [k: string]: VariableBlock;
  };
  /**
   * Where models are trained and sampled, by name.
   */
  readonly servers?: {
    readonly [k: string]: ServerBlock;
  };
  /**
   * Rows to train on, by name.
   */
  readonly datasets?: {
    readonly [k: string]: DatasetBlock;
  };
  /**
   * Loss functions with their options, by name. A run may also name a loss type directly and takes its defaults.
   */
  readonly losses?: {
    readonly [k: string]: LossBlock;
  };
  /**
   * Trainings, by name. Each ends in checkpoints that other runs may start from.
   */
  readonly runs?: {
    readonly [k: string]: RunBlock;
  };
}
/**
 * One input of the spec.
 */
export interface VariableBlock {
  /**
   * What the variable holds; values from the command line and the environment are read as this.
   */
  readonly type: "string" | "number" | "integer" | "boolean";
  /**
   * Taken when nothing sets the variable. Without one the variable must be set.
   */
  readonly default?: string | number | boolean;
  /**
   * What it is for, for whoever has to set it.
   */
  readonly description?: string;
}
/**
 * A training and sampling server. rlcli starts and stops it, except where the backend is `external`.
 */
export interface ServerBlock {
  /**
   * What runs the model: `embedded` (inside rlcli, small models, no GPU), `jax`, `fsdp` or `megatron` (SkyRL, started by rlcli), `external` (a Tinker-protocol server that someone else runs, at `url`).
   */
  readonly backend: "embedded" | "jax" | "fsdp" | "megatron" | "external";
  /**
   * The model that is trained: `builtin:tiny`, a folder in Hugging Face layout (`./models/qwen3`), or a hub name.
   */
  readonly model: string;
  /**
   * GPUs that the server takes on each node.
   */
  readonly gpus?: number;
  /**
   * Machines that the server spans.
   */
  readonly nodes?: number;
  /**
   * GPUs over which each layer is split. Divides `gpus`.
   */
  readonly tensor_parallel?: number;
  /**
   * Longest prompt and answer together, in tokens; 0 is the model's own limit.
   */
  readonly max_model_len?: number;
  /**
   * Address on which the server listens. Beyond loopback it always asks for a token.
   */
  readonly host?: string;
  /**
   * TCP port on which the server listens; 0 takes a free one.
   */
  readonly port?: number;
  /**
   * Base URL of a server that rlcli uses but does not run.
   */
  readonly url?: string;
  /**
   * Must be `${secret.NAME}`: the key is read from the environment variable NAME when it is used, and only its name is ever stored.
   */
  readonly api_key?: string;
  /**
   * Models that the server holds at once. Runs beyond that wait their turn.
   */
  readonly slots?: number;
  /**
   * The server stops after this long without a client or open work, and starts again when something needs it; `0s` never stops it.
   */
  readonly idle_timeout?: string;
  /**
   * Used by plans to estimate cost, in a currency of your choice.
   */
  readonly price_per_gpu_hour?: number;
  /**
   * Settings handed to the backend as they are, over those that rlcli derives.
   */
  readonly backend_config?: {
    readonly [k: string]: unknown;
  };
}
/**
 * Rows to train on: a file in rlcli's own form, or an import of other logs.
 */
export interface DatasetBlock {
  /**
   * A JSONL file with one `{"messages": […]}` a line, relative to the spec.
   */
  readonly source?: string;
  /**
   * Reads logs of another form and turns them into rows.
   */
  readonly import?: {
    /**
     * Form of the files; `auto` looks and says what it saw.
     */
    readonly format?: "auto" | "messages" | "openai" | "anthropic" | "langsmith" | "litellm" | "langfuse" | "otel" | "alpaca";
    /**
     * Files, globs or folders, relative to the spec; a single one may be written without the list. JSONL, JSON arrays or values one after another, also compressed by gzip.
     *
     * @minItems 1
     */
    readonly from: string[];
    /**
     * Shorter conversations are left out and counted.
     */
    readonly min_messages?: number;
    /**
     * Takes at most this many conversations, in the order of the files.
     */
    readonly limit?: number;
    /**
     * Tool calls, their results and tool definitions stay in the rows. By default they are left out.
     */
    readonly keep_tools?: boolean;
    /**
     * The model's thinking stays, as `reasoning_content`. By default it is left out.
     */
    readonly keep_thinking?: boolean;
    /**
     * Which answers of a response with several become rows: the `first` (default) or `all`.
     */
    readonly choices?: "first" | "all";
    /**
     * Takes only log lines that meet every condition, `NAME OPERATOR VALUE` with one of = != > >= < <= ~ (a regular expression). Names are looked for on the line, then in its metadata.
     *
     * @minItems 1
     */
    readonly where?: string[];
    /**
     * Takes only conversations whose feedback scores at least this; those without a score are left out.
     */
    readonly min_score?: number;
    /**
     * `score`: each row's loss is scaled by its score; scores below 0 count as 0, and conversations without one are left out.
     */
    readonly weight_by?: "score";
    /**
     * Longer conversations are left out, counted with the tokenizer and chat template of `model`.
     */
    readonly max_tokens?: number;
    /**
     * Whose tokenizer and chat template `max_tokens` counts with: `builtin:tiny` or a model folder.
     */
    readonly model?: string;
    /**
     * `exact` takes equal conversations once; `prefix` also leaves out those that a longer one repeats from its start, as logs of growing conversations do; `none` (default) takes all.
     */
    readonly dedupe?: "none" | "exact" | "prefix";
    /**
     * Takes so many conversations, chosen by a hash of their content and `seed`; their order stays.
     */
    readonly sample?: number;
    /**
     * Another seed chooses other conversations. 0 by default.
     */
    readonly seed?: number;
    /**
     * Takes one side of a split by a hash of how each conversation begins: the same conversation is always on the same side.
     */
    readonly split?: "train" | "test";
    /**
     * Share of conversations on the `test` side of the split; 0.1 by default.
     */
    readonly test_share?: number;
    /**
     * Replaces personal data and secrets by placeholders such as `[EMAIL_1]`: e-mail addresses, telephone and card numbers, IBANs, IP addresses, keys and tokens of well-known services, private keys, passwords.
     */
    readonly redact?: boolean;
    /**
     * With `redact`: names and words that are replaced wherever they stand as whole words, in any case.
     *
     * @minItems 1
     */
    readonly redact_names?: string[];
    /**
     * With `redact`: own regular expressions.
     *
     * @minItems 1
     */
    readonly redact_patterns?: string[];
    /**
     * A damaged line fails the import instead of being left out with a warning.
     */
    readonly strict?: boolean;
    /**
     * More damaged lines than this fail the import. Any number by default.
     */
    readonly max_errors?: number;
    /**
     * Longer lines are left out as damaged, in bytes; 16 MiB by default.
     */
    readonly max_line_bytes?: number;
  };
}
/**
 * A loss function and its options. What a loss means is fixed here and the same on every server.
 */
export interface LossBlock {
  /**
   * The formula. `cross_entropy` is for supervised runs, the others for reinforcement learning.
   */
  readonly type: "cross_entropy" | "importance_sampling" | "ppo" | "cispo" | "dro" | "gspo" | "dppo" | "ppo_critic";
  /**
   * Ratios of new to old probability below this are clipped.
   */
  readonly clip_low_threshold?: number;
  /**
   * Ratios of new to old probability above this are clipped.
   */
  readonly clip_high_threshold?: number;
  /**
   * Weight of the squared log-ratio that holds the policy near the one that sampled.
   */
  readonly beta?: number;
  /**
   * Tokens whose probability fell by more than this are masked where the advantage is negative.
   */
  readonly delta_low?: number;
  /**
   * Tokens whose probability rose by more than this are masked where the advantage is positive.
   */
  readonly delta_high?: number;
  /**
   * How far a value may move from the old one before its loss is clipped.
   */
  readonly value_clip?: number;
  /**
   * `fused` has the server compute the loss and is an error where it cannot; `two_pass` computes the exact gradient weights in rlcli from a forward pass; `auto` takes fused where the server has it. The result is the same.
   */
  readonly strategy?: "fused" | "two_pass" | "auto";
}
/**
 * A training. Its result is checkpoints of the base model, adapted to the dataset.
 */
export interface RunBlock {
  /**
   * `sl`: supervised learning on the rows of a dataset.
   */
  readonly type: "sl";
  /**
   * The server that trains it.
   */
  readonly server?: string;
  /**
   * The rows to train on.
   */
  readonly dataset: string;
  /**
   * Another run whose weights this one starts from: `warmup` (its last step), `warmup@best` (its best held-out loss) or `warmup@40` (a kept step).
   */
  readonly from?: string;
  /**
   * With `from`: also load that run's optimizer moments and step count, not the weights alone.
   */
  readonly from_optimizer?: boolean;
  /**
   * A loss of this spec by name, or a loss type, which then has its default options.
   */
  readonly loss?: string;
  /**
   * Passes over the training rows; may be a fraction. Use either this or `steps`.
   */
  readonly epochs?: number;
  /**
   * Optimizer steps. More than before extends a run whose schedule allows it; fewer selects a kept checkpoint.
   */
  readonly steps?: number;
  /**
   * The full learning rate, before the schedule.
   */
  readonly learning_rate?: number;
  readonly schedule?: ScheduleBlock;
  /**
   * AdamW settings. What is left out stays as the server has it; what is written is enforced, or refused where the server cannot.
   */
  readonly optimizer?: {
    /**
     * Decay of the mean of gradients.
     */
    readonly beta1?: number;
    /**
     * Decay of the mean of squared gradients.
     */
    readonly beta2?: number;
    /**
     * Added to the root of the second moment.
     */
    readonly eps?: number;
    /**
     * Decoupled weight decay.
     */
    readonly weight_decay?: number;
    /**
     * L2 norm to which the whole gradient is clipped; 0 is off.
     */
    readonly grad_clip_norm?: number;
  };
  /**
   * Most rows in a batch.
   */
  readonly batch_size?: number;
  /**
   * Most tokens in a batch, counted before padding; a single longer row still makes a batch of its own.
   */
  readonly batch_tokens?: number;
  /**
   * Rows of more tokens are cut at the right.
   */
  readonly max_length?: number;
  /**
   * Which tokens the loss counts: those of every assistant message, of the last one only, or all.
   */
  readonly train_on?: "all_assistant" | "last_assistant" | "all";
  /**
   * What the loss is a mean over: `token` weighs every token alike, `sequence` every row.
   */
  readonly normalize?: "token" | "sequence";
  /**
   * Decides the order of rows and the initial adapter. The same seed gives the same weights on the embedded server.
   */
  readonly seed?: number;
  /**
   * Rank of the trained adapter; 0 trains all weights.
   */
  readonly lora_rank?: number;
  /**
   * Rows kept out of training to measure the loss on, chosen by a stable hash.
   */
  readonly test_size?: number;
  /**
   * Held-out loss every so many steps; 0 measures it at the end only. Needs `test_size`.
   */
  readonly eval_every?: number;
  /**
   * A durable checkpoint every so many steps; the last step always has one. 0 saves at the end only.
   */
  readonly save_every?: number;
  /**
   * Newest checkpoints kept beside the final and the best one.
   */
  readonly keep_last?: number;
  /**
   * `replace` trains anew, `continue` goes on from the run's own last checkpoint over the new rows, `ignore` leaves the run as it is.
   */
  readonly on_data_change?: "replace" | "continue" | "ignore";
  /**
   * Extra variables for the model's chat template.
   */
  readonly template_kwargs?: {
    readonly [k: string]: unknown;
  };
}
/**
 * How the learning rate moves; a type alone (`schedule: cosine`) is short for `{ type: cosine }`.
 */
export interface ScheduleBlock {
  /**
   * `constant`, `linear` or `cosine`: the last two fall from the full rate to `final_ratio` of it over the horizon.
   */
  readonly type?: "constant" | "linear" | "cosine";
  /**
   * Steps over which the rate first rises from 0.
   */
  readonly warmup_steps?: number;
  /**
   * The rate at the end as a share of the full one; of linear and cosine schedules.
   */
  readonly final_ratio?: number;
  readonly horizon?: Length;
}
/**
 * Length over which the schedule runs, frozen at the first apply; a number alone is steps. Written down, it lets a run be extended later.
 */
export interface Length {
  /**
   * Optimizer steps.
   */
  readonly steps?: number;
  /**
   * Passes over the training rows; may be a fraction.
   */
  readonly epochs?: number;
}
