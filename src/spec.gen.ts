/** Generated from schemas/rlcli.schema.json by schemas/generate.mjs; do not edit. */

/**
 * An rlcli.yaml: what should exist (servers, datasets, losses, environments, runs, evals, deployments). `rlcli plan` says what it takes to get there, `rlcli apply` does it.
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
   * Tasks with graders, by name.
   */
  readonly environments?: {
    readonly [k: string]: EnvironmentBlock;
  };
  /**
   * Trainings, by name. Each ends in checkpoints that other runs may start from.
   */
  readonly runs?: {
    readonly [k: string]: RunBlock;
  };
  /**
   * Measurements of checkpoints, by name.
   */
  readonly evals?: {
    readonly [k: string]: EvalBlock;
  };
  /**
   * Named pointers to checkpoints that move only when their evals pass.
   */
  readonly deployments?: {
    readonly [k: string]: DeploymentBlock;
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
   * GPUs that the server takes on each node. 0 is the CPU, which only `jax` runs on.
   */
  readonly gpus?: number;
  /**
   * Machines that the server spans; more than one needs `ray`.
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
   * Address on which the server listens; beyond loopback it always asks for a token. `user@machine` instead starts the server on that machine over ssh and forwards it here.
   */
  readonly host?: string;
  /**
   * TCP port on which the server listens; 0 takes a free one.
   */
  readonly port?: number;
  /**
   * `token`: only who sends the server's key (`rlcli serve token`) is served; `none`: everyone who reaches it, on loopback only.
   */
  readonly auth?: "token" | "none";
  /**
   * Certificate and key with which the server speaks HTTPS.
   */
  readonly tls?: {
    /**
     * PEM file with the certificate and those that vouch for it.
     */
    readonly certificate: string;
    /**
     * PEM file with the certificate's key.
     */
    readonly key: string;
  };
  /**
   * Base URL of a server that rlcli uses but does not run.
   */
  readonly url?: string;
  /**
   * Must be `${secret.NAME}`: the key is read from the environment variable NAME when it is used, and only its name is ever stored.
   */
  readonly api_key?: string;
  /**
   * Models that the server holds at once. Runs beyond that wait their turn. On megatron more than one means adapters of one rank, and GPUs of their own for sampling.
   */
  readonly slots?: number;
  /**
   * Room that each adapter gets. A run with a larger `lora_rank` is refused at plan.
   */
  readonly max_lora_rank?: number;
  /**
   * Share of a GPU's memory: of the sampler on fsdp and megatron, of the whole server on jax.
   */
  readonly gpu_memory?: number;
  /**
   * The server stops after this long without a client or open work, and starts again when something needs it; `0s` never stops it.
   */
  readonly idle_timeout?: string;
  /**
   * What happens when the server crashes: `on_failure` starts it again, at most three times in ten minutes; `never` leaves it to whoever needs it next.
   */
  readonly restart?: "on_failure" | "never";
  /**
   * An existing cluster whose machines the server uses. `rlcli` runs on one of its nodes.
   */
  readonly ray?: {
    /**
     * The head node: `host:port` of `ray start --head`, or `auto` for the cluster that this machine belongs to.
     */
    readonly address: string;
  };
  /**
   * How the server's Python environment is made, where the defaults do not reach: mirrors, sites without a network, another SkyRL.
   */
  readonly python?: {
    /**
     * What to install as SkyRL: a requirement, a wheel's path or a URL; `{extras}` in it becomes the extras that the backend needs.
     */
    readonly package?: string;
    /**
     * Version of Python, found or fetched by uv.
     */
    readonly version?: string;
    /**
     * URL of the package index to use instead of the default one.
     */
    readonly index?: string;
    /**
     * Further arguments of `uv pip install`.
     */
    readonly arguments?: string[];
  };
  /**
   * Used by plans to estimate cost, in a currency of your choice.
   */
  readonly price_per_gpu_hour?: number;
  /**
   * Settings handed to the backend as they are, over those that rlcli derives; the plan shows what comes of both.
   */
  readonly backend_config?: {
    readonly [k: string]: unknown;
  };
}
/**
 * Rows to train on or tasks: a file or a dataset of a hub as it is, or an import of other logs.
 */
export interface DatasetBlock {
  /**
   * A file of rows, relative to the spec: JSONL, CSV or Parquet; `hf://ORG/NAME/CONFIG/SPLIT@REVISION` from the Hugging Face hub; or `https://…` or `s3://BUCKET/KEY`, where a key with `*` is several files. Conversations have one `{"messages": […]}` a row; tasks have the fields that an environment names.
   */
  readonly source?: string;
  /**
   * Reads logs of another form and turns them into rows.
   */
  readonly import?: {
    /**
     * Form of the files; `auto` looks and says what it saw.
     */
    format?:
      | "auto"
      | "messages"
      | "openai"
      | "anthropic"
      | "langsmith"
      | "litellm"
      | "claude-code"
      | "codex"
      | "langfuse"
      | "otel"
      | "alpaca";
    /**
     * Files, globs or folders, relative to the spec, and `https://…` or `s3://BUCKET/KEY` (a key with `*`, or with `/` at its end, is several files); a single one may be written without the list. JSONL, JSON arrays or values one after another, also compressed by gzip.
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
     * Who speaks, where a log says it in the text: a turn that begins with the prefix has the role, and the prefix and the white space behind it are taken off. Other turns keep their roles.
     *
     * @minItems 1
     */
    readonly role_prefix?: string[];
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
     * `prefix` takes of log lines that repeat a growing conversation only the longest, and equal ones once; `near` also leaves out, of conversations that are nearly equal, all but the first; `exact` takes equal conversations once; `none` takes all. By default `prefix` for logs of requests (openai, anthropic, langsmith, litellm, langfuse, otel, claude-code, codex), `none` for rows that somebody made (messages, alpaca).
     */
    readonly dedupe?: "none" | "exact" | "prefix" | "near";
    /**
     * For `dedupe: near`: how much two conversations must share to be nearly equal, as a share of what either has (Jaccard similarity of their word 5-grams, without system messages). 0.8 by default.
     */
    readonly near_threshold?: number;
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
  /**
   * `conversations` to train on as they are, or `tasks` for environments: rows of any fields, kept as they are.
   */
  readonly rows?: "conversations" | "tasks";
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
 * Tasks and a grader: what a policy is asked, and what its answers are worth.
 */
export interface EnvironmentBlock {
  /**
   * The grader: `math` compares final answers, `match` compares texts, `json_schema` checks a structure, `command` asks a program, `http` a service, `module` a JavaScript file (also over several turns), `judge` another model. `harbor`: no grader but tasks in sandboxes, each with its own tests.
   */
  readonly type: "math" | "match" | "json_schema" | "command" | "http" | "module" | "judge" | "harbor";
  /**
   * The tasks, one a row.
   */
  readonly dataset?: string;
  /**
   * Field of a row with what the user says: text, or a list of messages.
   */
  readonly question?: string;
  /**
   * Field of a row with the right answer.
   */
  readonly answer?: string;
  /**
   * Said before every question. `{field}` stands for a field of the row.
   */
  readonly system?: string;
  /**
   * The user's message around the question. `{field}` stands for a field of the row; braces around anything else stay as they are.
   */
  readonly prompt?: string;
  /**
   * Questions and answers shown before the question, as turns of the conversation.
   */
  readonly few_shot?: {
    readonly question: string;
    readonly answer: string;
  }[];
  /**
   * Field of a row by whose values evals also report apart.
   */
  readonly tag?: string;
  /**
   * What this grader's reward is multiplied by, beside `parts`.
   */
  readonly weight?: number;
  /**
   * Graders whose rewards, each times its `weight`, are added: an entry has a `type`, the options of that type, a `weight` and a `name` for its metrics.
   */
  readonly parts?: {
    readonly type: "math" | "match" | "json_schema" | "command" | "http" | "module" | "judge";
    readonly name?: string;
    readonly weight?: number;
    readonly [k: string]: unknown;
  }[];
  /**
   * Takes from the reward of long answers.
   */
  readonly length_penalty?: {
    /**
     * Characters that cost nothing.
     */
    readonly free: number;
    /**
     * Characters from which the whole penalty is taken; in between it rises evenly.
     */
    readonly full: number;
    /**
     * Taken at the most.
     */
    readonly penalty: number;
  };
  /**
   * Where the final answer may stand, the most trusted first: `boxed`, `hash` (after `####`), `answer_is` (the answer is …), `last_number`.
   *
   * @minItems 1
   */
  readonly formats?: ("boxed" | "hash" | "answer_is" | "last_number")[];
  /**
   * Relative difference that rounded decimals may have.
   */
  readonly tolerance?: number;
  /**
   * `exact`: the answer is the whole text; `contains`: it occurs; `regex`: what `pattern` finds; `choice`: a letter.
   */
  readonly mode?: "exact" | "contains" | "regex" | "choice";
  /**
   * For `mode: regex`: searched in the completion. Where `answer` is written, what is found (its first group, if it has one) is compared with it; else a match is enough.
   */
  readonly pattern?: string;
  /**
   * Whether upper and lower case count as equal.
   */
  readonly ignore_case?: boolean;
  /**
   * For `mode: choice`: the letters there are.
   */
  readonly choices?: string;
  /**
   * What the JSON in the answer must satisfy (draft 2020-12).
   */
  readonly schema?: {
    readonly [k: string]: unknown;
  };
  /**
   * A program and its arguments. It gets one JSON object a line on standard input and answers each with one line: `{"reward": 1}`.
   *
   * @minItems 1
   */
  readonly command?: string[];
  /**
   * Files that belong to the command beside those it names: a change to one is a change to the environment.
   *
   * @minItems 1
   */
  readonly files?: string[];
  /**
   * A JavaScript file, relative to the spec. It exports `grade({ prompt, completion, row, turn })`, which returns a reward, or `{ messages }` to answer back.
   */
  readonly module?: string;
  /**
   * Answers of the policy at the most, where the module answers back; for `harbor` in each step of a task.
   */
  readonly max_turns?: number;
  /**
   * For `http`: where requests are posted. For `judge`: an OpenAI-compatible endpoint, up to and with `/v1`.
   */
  readonly url?: string;
  /**
   * Must be `${secret.NAME}`: read from the environment variable NAME when it is used; only its name is ever stored.
   */
  readonly api_key?: string;
  /**
   * The model that judges.
   */
  readonly model?: string;
  /**
   * What a good answer is, in words. `{field}` stands for a field of the row.
   */
  readonly rubric?: string;
  /**
   * Of the judge; it counts as a reward of 0.
   */
  readonly scale_min?: number;
  /**
   * Of the judge; it counts as a reward of 1.
   */
  readonly scale_max?: number;
  /**
   * Harbor tasks: a folder with them, or a dataset's `name@version` from a registry.
   */
  readonly tasks?: string;
  /**
   * Where datasets are looked up by name: a `registry.json` by path or address.
   */
  readonly registry?: string;
  /**
   * A folder that holds datasets by name, as `name@version` or `name`; looked into before any registry.
   */
  readonly mirror?: string;
  /**
   * Patterns of tasks' names: only what matches one is used.
   *
   * @minItems 1
   */
  readonly include?: string[];
  /**
   * Patterns of tasks' names that are left out.
   *
   * @minItems 1
   */
  readonly exclude?: string[];
  /**
   * The first so many of what is left.
   */
  readonly first?: number;
  /**
   * How the model writes a call of its tool: `hermes` (`<tool_call>` with JSON), `qwen_xml`, `llama`, or `bash_block` (a ```bash block, for models that know no tools). `auto` takes any.
   */
  readonly tool_format?: "auto" | "hermes" | "qwen_xml" | "llama" | "bash_block";
  /**
   * For one command of the agent; then it is killed with all that it started, and the agent is told.
   */
  readonly command_timeout?: string;
  /**
   * For one attempt at a task (one step of it), over the task's own limit; the tests judge what there is by then.
   */
  readonly agent_timeout?: string;
  /**
   * Tokens of one conversation, answers included. An attempt that would need more ends as `on_limit` says.
   */
  readonly max_trajectory_tokens?: number;
  /**
   * Bytes of each stream of a command that the agent sees; of longer ones the beginning and the end.
   */
  readonly output_bytes?: number;
  /**
   * What an attempt is worth that ended by `max_tokens`, `max_trajectory_tokens` or malformed calls: `penalty` gives `limit_reward`, `grade` what the tests say.
   */
  readonly on_limit?: "penalty" | "grade";
  /**
   * The reward of an attempt that a limit ended, with `on_limit: penalty`.
   */
  readonly limit_reward?: number;
  /**
   * How many malformed calls in a row are answered; one more ends the attempt.
   */
  readonly malformed_retries?: number;
  /**
   * Which number counts where a task's tests write several.
   */
  readonly reward_key?: string;
  /**
   * The containers in which tasks are tried.
   */
  readonly sandbox?: {
    /**
     * Containers at the same time.
     */
    readonly concurrency?: number;
    /**
     * Of a container whose task says nothing.
     */
    readonly memory?: string;
    /**
     * Of all containers together; what does not fit waits.
     */
    readonly total_memory?: string;
    /**
     * In one container, at the most.
     */
    readonly pids?: number;
    /**
     * `task`: as each task says; `none` and `public`: whatever it says.
     */
    readonly network?: "task" | "none" | "public";
    /**
     * `compat`: Docker's usual rights, which many tasks' tests need; `hardened`: no capabilities, no new privileges.
     */
    readonly security?: "compat" | "hardened";
    /**
     * After this a container ends by itself, whatever became of rlcli.
     */
    readonly lifetime?: string;
    /**
     * Address of the Docker daemon: `unix://…`, `tcp://…` or `ssh://…`. Of several, each has `concurrency` and `total_memory` of its own; one that does not answer is left out until it does.
     *
     * @minItems 1
     */
    readonly host?: string[];
    /**
     * Leaves the containers of attempts that were lost to a fault, to be looked at; `rlcli env gc --kept` removes them.
     */
    readonly keep_failed?: boolean;
  };
  /**
   * Answers whose reward is known, graded at every plan: `completion`, `reward`, and the fields of the row that the grader reads. A difference is an error before anything is trained.
   */
  readonly tests?: {
    readonly completion: string;
    readonly reward: number;
    readonly [k: string]: unknown;
  }[];
  /**
   * For one grade, or one turn of a module.
   */
  readonly timeout?: string;
  /**
   * How often a grade that failed is tried again before its rollout is dropped.
   */
  readonly retries?: number;
  /**
   * How many answers are graded at the same time.
   */
  readonly concurrency?: number;
}
/**
 * A training. Its result is checkpoints of the base model, adapted to a dataset or to an environment's rewards.
 */
export interface RunBlock {
  /**
   * `sl`: supervised learning on the rows of a dataset. `rl`: reinforcement learning on an environment.
   */
  readonly type: "sl" | "rl";
  /**
   * The server that trains it.
   */
  readonly server?: string;
  /**
   * The rows to train on.
   */
  readonly dataset?: string;
  /**
   * What the policy is asked and graded by.
   */
  readonly environment?: string;
  /**
   * Another run whose weights this one starts from: `warmup` (its last step), `warmup@best` (its best held-out loss or reward) or `warmup@40` (a kept step).
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
   * Passes over the training rows or tasks; may be a fraction. Use either this or `steps`.
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
   * Answers sampled to each task; their rewards are compared with each other.
   */
  readonly group_size?: number;
  /**
   * Tasks of one step.
   */
  readonly groups_per_batch?: number;
  /**
   * Optimizer updates of one step, each on its share of the groups.
   */
  readonly substeps?: number;
  /**
   * forward_backward calls of one substep, each on a fixed share of its groups. With `normalize: sequence` the first are computed while the rest is still sampled. The sum of their gradients is the same.
   */
  readonly minibatches?: number;
  /**
   * What a reward is compared with: `center` subtracts the group's mean, `std` also divides by its deviation, `leave_one_out` subtracts the mean of the others, `none` takes the reward itself.
   */
  readonly advantage?: "center" | "std" | "leave_one_out" | "none";
  /**
   * Of sampling; 1 samples from the model as it is, 0 takes the most probable token.
   */
  readonly temperature?: number;
  /**
   * Samples from the most probable tokens that make up this share; 1 is off.
   */
  readonly top_p?: number;
  /**
   * Tokens of one answer at the most.
   */
  readonly max_tokens?: number;
  /**
   * Texts that end an answer, beside the tokens with which the model ends a turn. A single one may be written without the list.
   *
   * @minItems 1
   */
  readonly stop?: string[];
  /**
   * Weight of the penalty for moving away from `kl_reference`, subtracted from the advantages token by token; 0 is off.
   */
  readonly kl_penalty?: number;
  /**
   * With `kl_penalty`: the run whose checkpoint is the reference.
   */
  readonly kl_reference?: string;
  /**
   * Answers may be sampled by weights that are this many steps old, so that sampling and training overlap; older ones are dropped and counted. 0 samples every step from its own weights.
   */
  readonly max_steps_off_policy?: number;
  /**
   * A group that lost answers to faults is kept if at least this many remain.
   */
  readonly min_group_size?: number;
  /**
   * Share of a step's answers that may be lost to faults (of the grader, of sampling, of a sandbox) before the run stops.
   */
  readonly max_failure_rate?: number;
  /**
   * Ends the run before its last step. Judged by the first of its evals with `every`, else by the mean reward over `window` steps.
   */
  readonly early_stop?: {
    /**
     * The run is complete once the reward reaches this.
     */
    readonly target?: number;
    /**
     * The run stops with an error once the reward falls below this share of its best.
     */
    readonly collapse?: number;
    /**
     * Steps over which rewards are averaged where no eval looks on.
     */
    readonly window?: number;
  };
  /**
   * Rows of more tokens are cut at the right.
   */
  readonly max_length?: number;
  /**
   * Which tokens the loss counts: those of every assistant message, of the last one only, or all.
   */
  readonly train_on?: "all_assistant" | "last_assistant" | "all";
  /**
   * What the loss is a mean over: `token` weighs every token alike, `sequence` every row or answer.
   */
  readonly normalize?: "token" | "sequence";
  /**
   * Decides the order of rows and tasks, what is sampled, and the initial adapter. The same seed gives the same weights on the embedded server.
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
/**
 * A measurement of a checkpoint on an environment.
 */
export interface EvalBlock {
  /**
   * What is measured: a run (`agent`, its last step), `agent@best` or `agent@40`.
   */
  readonly checkpoint: string;
  /**
   * What it is measured on.
   */
  readonly environment: string;
  /**
   * How many tasks, the first of the dataset.
   */
  readonly tasks?: number;
  /**
   * Answers to each task. With more than one, pass@k is reported for every power of two up to it.
   */
  readonly samples?: number;
  /**
   * Of sampling; 1 samples from the model as it is, 0 takes the most probable token.
   */
  readonly temperature?: number;
  /**
   * Samples from the most probable tokens that make up this share; 1 is off.
   */
  readonly top_p?: number;
  /**
   * Tokens of one answer at the most.
   */
  readonly max_tokens?: number;
  /**
   * Texts that end an answer, beside the tokens with which the model ends a turn. A single one may be written without the list.
   *
   * @minItems 1
   */
  readonly stop?: string[];
  /**
   * Of sampling.
   */
  readonly seed?: number;
  /**
   * Extra variables for the model's chat template.
   */
  readonly template_kwargs?: {
    readonly [k: string]: unknown;
  };
  /**
   * Metrics with the least (`min`) or most (`max`) they may be for the eval to pass. Judged afterwards: another threshold samples nothing anew.
   */
  readonly metrics?: {
    readonly [k: string]: {
      readonly min?: number;
      readonly max?: number;
    };
  };
  /**
   * An answer counts as right for pass@k from this reward on.
   */
  readonly pass_reward?: number;
  /**
   * Also measures the run while it trains, before its first step and every so many steps; 0 measures only the checkpoint.
   */
  readonly every?: number;
}
/**
 * A named pointer to a checkpoint, which moves only when its evals pass.
 */
export interface DeploymentBlock {
  /**
   * What it is to point at: a run (`agent`, its last step), `agent@best` or `agent@40`.
   */
  readonly checkpoint: string;
  /**
   * Evals of this checkpoint that must pass. A single one may be written without the list.
   *
   * @minItems 1
   */
  readonly requires?: string[];
  /**
   * `hold` leaves the pointer where it is and says so; `error` also fails the apply.
   */
  readonly on_fail?: "hold" | "error";
}
