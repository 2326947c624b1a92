/** Generated from schemas/rlcli.schema.json by schemas/generate.mjs; do not edit. */
import type { BlockInfo, BlockName } from "./fields.ts";

export const BLOCKS: Readonly<Record<BlockName, BlockInfo>> = {
 "spec": {
  "name": "spec",
  "title": "SpecFile",
  "description": "An rlcli.yaml: what should exist (servers, datasets, losses, runs). `rlcli plan` says what it takes to get there, `rlcli apply` does it.",
  "fields": [
   {
    "path": "rlcli",
    "title": "Spec version",
    "description": "Version of the spec language. Defaults and meanings of a version never change, so an old file never retrains by itself.",
    "type": "integer",
    "isRequired": true,
    "change": "none",
    "values": [
     1
    ],
    "examples": [
     1
    ]
   },
   {
    "path": "project",
    "title": "Project name",
    "description": "Names this project to servers and in checkpoint names. Another name is another project: nothing is shared.",
    "type": "string",
    "isRequired": true,
    "change": "none",
    "form": "a letter, then letters, digits, `_` or `-`, at most 63 in all",
    "examples": [
     "support-agent"
    ]
   },
   {
    "path": "variables",
    "title": "Variables",
    "description": "Inputs of the spec, used as `${var.NAME}`. Set by --var NAME=VALUE, --var-file FILE or the environment variable RLCLI_VAR_NAME, in that order of precedence; else the default.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "steps": {
       "type": "integer",
       "default": 40
      }
     }
    ]
   },
   {
    "path": "server",
    "title": "The only server",
    "description": "Short for `servers: { default: … }`.",
    "type": "group",
    "isRequired": false,
    "examples": [
     {
      "backend": "embedded",
      "model": "builtin:tiny"
     }
    ]
   },
   {
    "path": "servers",
    "title": "Servers",
    "description": "Where models are trained and sampled, by name.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "gpu": {
       "backend": "fsdp",
       "model": "Qwen/Qwen3-4B-Instruct-2507",
       "gpus": 8
      }
     }
    ]
   },
   {
    "path": "datasets",
    "title": "Datasets",
    "description": "Rows to train on, by name.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "traces": {
       "import": {
        "format": "openai",
        "from": [
         "traces/*.jsonl"
        ]
       }
      }
     }
    ]
   },
   {
    "path": "losses",
    "title": "Losses",
    "description": "Loss functions with their options, by name. A run may also name a loss type directly and takes its defaults.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "careful": {
       "type": "ppo",
       "clip_high_threshold": 1.1
      }
     }
    ]
   },
   {
    "path": "runs",
    "title": "Runs",
    "description": "Trainings, by name. Each ends in checkpoints that other runs may start from.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "assistant": {
       "type": "sl",
       "dataset": "traces",
       "epochs": 2
      }
     }
    ]
   }
  ],
  "groups": [
   {
    "path": "",
    "keys": [
     "server",
     "servers"
    ],
    "isRequired": false
   }
  ]
 },
 "variable": {
  "name": "variable",
  "title": "VariableBlock",
  "description": "One input of the spec.",
  "fields": [
   {
    "path": "type",
    "title": "Type",
    "description": "What the variable holds; values from the command line and the environment are read as this.",
    "type": "string",
    "isRequired": true,
    "change": "none",
    "values": [
     "string",
     "number",
     "integer",
     "boolean"
    ],
    "examples": [
     "integer"
    ]
   },
   {
    "path": "default",
    "title": "Default",
    "description": "Taken when nothing sets the variable. Without one the variable must be set.",
    "type": "scalar",
    "isRequired": false,
    "change": "none",
    "examples": [
     40
    ]
   },
   {
    "path": "description",
    "title": "Description",
    "description": "What it is for, for whoever has to set it.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "examples": [
     "RL steps"
    ]
   }
  ],
  "groups": []
 },
 "server": {
  "name": "server",
  "title": "ServerBlock",
  "description": "A training and sampling server. rlcli starts and stops it, except where the backend is `external`.",
  "fields": [
   {
    "path": "backend",
    "title": "Backend",
    "description": "What runs the model: `embedded` (inside rlcli, small models, no GPU), `jax`, `fsdp` or `megatron` (SkyRL, started by rlcli), `external` (a Tinker-protocol server that someone else runs, at `url`).",
    "type": "string",
    "isRequired": true,
    "change": "replace",
    "values": [
     "embedded",
     "jax",
     "fsdp",
     "megatron",
     "external"
    ],
    "examples": [
     "embedded",
     "fsdp"
    ]
   },
   {
    "path": "model",
    "title": "Base model",
    "description": "The model that is trained: `builtin:tiny`, a folder in Hugging Face layout (`./models/qwen3`), or a hub name.",
    "type": "string",
    "isRequired": true,
    "change": "replace",
    "form": "a model name or a folder",
    "also": [
     "base_model",
     "model_name"
    ],
    "examples": [
     "builtin:tiny",
     "Qwen/Qwen3-4B-Instruct-2507"
    ]
   },
   {
    "path": "gpus",
    "title": "GPUs per node",
    "description": "GPUs that the server takes on each node.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "default": 1,
    "range": "at least 1 and at most 1024",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "also": [
     "num_gpus",
     "gpus_per_node"
    ],
    "examples": [
     8
    ]
   },
   {
    "path": "nodes",
    "title": "Nodes",
    "description": "Machines that the server spans.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "default": 1,
    "range": "at least 1 and at most 4096",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "also": [
     "num_nodes"
    ],
    "examples": [
     2
    ]
   },
   {
    "path": "tensor_parallel",
    "title": "Tensor parallelism",
    "description": "GPUs over which each layer is split. Divides `gpus`.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "default": 1,
    "range": "at least 1 and at most 1024",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "also": [
     "tp",
     "tensor_parallel_size"
    ],
    "examples": [
     2
    ]
   },
   {
    "path": "max_model_len",
    "title": "Context length",
    "description": "Longest prompt and answer together, in tokens; 0 is the model's own limit.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "default": 16384,
    "range": "at least 0",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "also": [
     "context_length",
     "max_context_length"
    ],
    "examples": [
     32768
    ]
   },
   {
    "path": "host",
    "title": "Listening address",
    "description": "Address on which the server listens. Beyond loopback it always asks for a token.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "default": "127.0.0.1",
    "form": "a host name or an IP address",
    "when": {
     "path": "backend",
     "values": [
      "embedded",
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "127.0.0.1"
    ]
   },
   {
    "path": "port",
    "title": "Port",
    "description": "TCP port on which the server listens; 0 takes a free one.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "defaultText": "0 for embedded, 8000 for jax, fsdp and megatron",
    "range": "at least 0 and at most 65535",
    "when": {
     "path": "backend",
     "values": [
      "embedded",
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     8000
    ]
   },
   {
    "path": "url",
    "title": "Address of an external server",
    "description": "Base URL of a server that rlcli uses but does not run.",
    "type": "string",
    "isRequired": false,
    "change": "update",
    "form": "an http:// or https:// address without a query",
    "when": {
     "path": "backend",
     "values": [
      "external"
     ]
    },
    "also": [
     "base_url",
     "endpoint"
    ],
    "examples": [
     "http://gpu-box:8000"
    ]
   },
   {
    "path": "api_key",
    "title": "API key of an external server",
    "description": "Must be `${secret.NAME}`: the key is read from the environment variable NAME when it is used, and only its name is ever stored.",
    "type": "string",
    "isRequired": false,
    "change": "update",
    "isSecret": true,
    "when": {
     "path": "backend",
     "values": [
      "external"
     ]
    },
    "also": [
     "token",
     "key"
    ],
    "examples": [
     "${secret.TINKER_API_KEY}"
    ]
   },
   {
    "path": "slots",
    "title": "Slots",
    "description": "Models that the server holds at once. Runs beyond that wait their turn.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "defaultText": "8 for embedded, 1 for external",
    "range": "at least 1 and at most 1024",
    "when": {
     "path": "backend",
     "values": [
      "embedded",
      "external"
     ]
    },
    "examples": [
     4
    ]
   },
   {
    "path": "idle_timeout",
    "title": "Idle timeout",
    "description": "The server stops after this long without a client or open work, and starts again when something needs it; `0s` never stops it.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "default": "10m",
    "form": "a duration: a whole number and s, m, h or d, such as `300s` or `10m`",
    "when": {
     "path": "backend",
     "values": [
      "embedded",
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "also": [
     "timeout"
    ],
    "examples": [
     "10m",
     "300s"
    ]
   },
   {
    "path": "price_per_gpu_hour",
    "title": "Price of a GPU hour",
    "description": "Used by plans to estimate cost, in a currency of your choice.",
    "type": "number",
    "isRequired": false,
    "change": "update",
    "range": "at least 0",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron",
      "external"
     ]
    },
    "examples": [
     2.5
    ]
   },
   {
    "path": "backend_config",
    "title": "Backend settings",
    "description": "Settings handed to the backend as they are, over those that rlcli derives.",
    "type": "map",
    "isRequired": false,
    "change": "restart",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "also": [
     "config"
    ],
    "examples": [
     {
      "max_lora_adapters": 4
     }
    ]
   }
  ],
  "groups": []
 },
 "dataset": {
  "name": "dataset",
  "title": "DatasetBlock",
  "description": "Rows to train on: a file in rlcli's own form, or an import of other logs.",
  "fields": [
   {
    "path": "source",
    "title": "Source file",
    "description": "A JSONL file with one `{\"messages\": […]}` a line, relative to the spec.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "a path",
    "isPath": true,
    "also": [
     "file",
     "path"
    ],
    "examples": [
     "data/train.jsonl"
    ]
   },
   {
    "path": "import",
    "title": "Import",
    "description": "Reads logs of another form and turns them into rows.",
    "type": "group",
    "isRequired": false
   },
   {
    "path": "import.format",
    "title": "Format",
    "description": "Form of the files; `auto` looks and says what it saw.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "default": "auto",
    "values": [
     "auto",
     "messages",
     "openai",
     "anthropic",
     "langsmith",
     "litellm",
     "langfuse",
     "otel",
     "alpaca"
    ],
    "examples": [
     "openai"
    ]
   },
   {
    "path": "import.from",
    "title": "Files",
    "description": "Files, globs or folders, relative to the spec; a single one may be written without the list. JSONL, JSON arrays or values one after another, also compressed by gzip.",
    "type": "list",
    "isRequired": true,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "a path or a glob",
    "isPath": true,
    "shorthand": "list",
    "examples": [
     [
      "traces/*.jsonl"
     ]
    ]
   },
   {
    "path": "import.min_messages",
    "title": "Fewest messages",
    "description": "Shorter conversations are left out and counted.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "default": 2,
    "range": "at least 1",
    "examples": [
     2
    ]
   },
   {
    "path": "import.limit",
    "title": "Limit",
    "description": "Takes at most this many conversations, in the order of the files.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "range": "at least 1",
    "examples": [
     1000
    ]
   },
   {
    "path": "import.keep_tools",
    "title": "Keep tools",
    "description": "Tool calls, their results and tool definitions stay in the rows. By default they are left out.",
    "type": "boolean",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "examples": [
     true
    ]
   },
   {
    "path": "import.keep_thinking",
    "title": "Keep thinking",
    "description": "The model's thinking stays, as `reasoning_content`. By default it is left out.",
    "type": "boolean",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "examples": [
     true
    ]
   },
   {
    "path": "import.choices",
    "title": "Choices",
    "description": "Which answers of a response with several become rows: the `first` (default) or `all`.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "values": [
     "first",
     "all"
    ],
    "examples": [
     "all"
    ]
   },
   {
    "path": "import.where",
    "title": "Conditions",
    "description": "Takes only log lines that meet every condition, `NAME OPERATOR VALUE` with one of = != > >= < <= ~ (a regular expression). Names are looked for on the line, then in its metadata.",
    "type": "list",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "NAME=VALUE, NAME>VALUE, NAME~PATTERN",
    "shorthand": "list",
    "examples": [
     [
      "metadata.env=prod",
      "latency<3"
     ]
    ]
   },
   {
    "path": "import.min_score",
    "title": "Lowest score",
    "description": "Takes only conversations whose feedback scores at least this; those without a score are left out.",
    "type": "number",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "examples": [
     0.5
    ]
   },
   {
    "path": "import.weight_by",
    "title": "Weight",
    "description": "`score`: each row's loss is scaled by its score; scores below 0 count as 0, and conversations without one are left out.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "values": [
     "score"
    ],
    "examples": [
     "score"
    ]
   },
   {
    "path": "import.max_tokens",
    "title": "Most tokens",
    "description": "Longer conversations are left out, counted with the tokenizer and chat template of `model`.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "range": "at least 1",
    "examples": [
     4096
    ]
   },
   {
    "path": "import.model",
    "title": "Model to count with",
    "description": "Whose tokenizer and chat template `max_tokens` counts with: `builtin:tiny` or a model folder.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "a model name or a folder",
    "examples": [
     "builtin:tiny"
    ]
   },
   {
    "path": "import.dedupe",
    "title": "Duplicates",
    "description": "`exact` takes equal conversations once; `prefix` also leaves out those that a longer one repeats from its start, as logs of growing conversations do; `none` (default) takes all.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "values": [
     "none",
     "exact",
     "prefix"
    ],
    "examples": [
     "prefix"
    ]
   },
   {
    "path": "import.sample",
    "title": "Sample",
    "description": "Takes so many conversations, chosen by a hash of their content and `seed`; their order stays.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "range": "at least 1",
    "examples": [
     1000
    ]
   },
   {
    "path": "import.seed",
    "title": "Seed of the sample",
    "description": "Another seed chooses other conversations. 0 by default.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "range": "at least 0 and at most 4294967295",
    "examples": [
     7
    ]
   },
   {
    "path": "import.split",
    "title": "Side of a split",
    "description": "Takes one side of a split by a hash of how each conversation begins: the same conversation is always on the same side.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "values": [
     "train",
     "test"
    ],
    "examples": [
     "train"
    ]
   },
   {
    "path": "import.test_share",
    "title": "Share of the test side",
    "description": "Share of conversations on the `test` side of the split; 0.1 by default.",
    "type": "number",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "range": "greater than 0 and less than 1",
    "examples": [
     0.1
    ]
   },
   {
    "path": "import.redact",
    "title": "Redaction",
    "description": "Replaces personal data and secrets by placeholders such as `[EMAIL_1]`: e-mail addresses, telephone and card numbers, IBANs, IP addresses, keys and tokens of well-known services, private keys, passwords.",
    "type": "boolean",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "examples": [
     true
    ]
   },
   {
    "path": "import.redact_names",
    "title": "Names to redact",
    "description": "With `redact`: names and words that are replaced wherever they stand as whole words, in any case.",
    "type": "list",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "a name",
    "shorthand": "list",
    "examples": [
     [
      "Ada Lovelace"
     ]
    ]
   },
   {
    "path": "import.redact_patterns",
    "title": "Patterns to redact",
    "description": "With `redact`: own regular expressions.",
    "type": "list",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "a regular expression",
    "shorthand": "list",
    "examples": [
     [
      "ACME-\\d{6}"
     ]
    ]
   },
   {
    "path": "import.strict",
    "title": "Strict",
    "description": "A damaged line fails the import instead of being left out with a warning.",
    "type": "boolean",
    "isRequired": false,
    "change": "none",
    "examples": [
     true
    ]
   },
   {
    "path": "import.max_errors",
    "title": "Most damaged lines",
    "description": "More damaged lines than this fail the import. Any number by default.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "range": "at least 0",
    "examples": [
     100
    ]
   },
   {
    "path": "import.max_line_bytes",
    "title": "Longest line",
    "description": "Longer lines are left out as damaged, in bytes; 16 MiB by default.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "range": "at least 1024 and at most 536870888",
    "examples": [
     16777216
    ]
   }
  ],
  "groups": [
   {
    "path": "",
    "keys": [
     "source",
     "import"
    ],
    "isRequired": true
   }
  ]
 },
 "loss": {
  "name": "loss",
  "title": "LossBlock",
  "description": "A loss function and its options. What a loss means is fixed here and the same on every server.",
  "fields": [
   {
    "path": "type",
    "title": "Type",
    "description": "The formula. `cross_entropy` is for supervised runs, the others for reinforcement learning.",
    "type": "string",
    "isRequired": true,
    "change": "replace",
    "values": [
     "cross_entropy",
     "importance_sampling",
     "ppo",
     "cispo",
     "dro",
     "gspo",
     "dppo",
     "ppo_critic"
    ],
    "examples": [
     "gspo"
    ]
   },
   {
    "path": "clip_low_threshold",
    "title": "Lower clip",
    "description": "Ratios of new to old probability below this are clipped.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0.8,
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "ppo",
      "cispo",
      "gspo"
     ]
    },
    "examples": [
     0.9997
    ]
   },
   {
    "path": "clip_high_threshold",
    "title": "Upper clip",
    "description": "Ratios of new to old probability above this are clipped.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 1.2,
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "ppo",
      "cispo",
      "gspo"
     ]
    },
    "examples": [
     1.0004
    ]
   },
   {
    "path": "beta",
    "title": "Beta",
    "description": "Weight of the squared log-ratio that holds the policy near the one that sampled.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "defaultText": "as the server has it",
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "dro"
     ]
    },
    "examples": [
     0.05
    ]
   },
   {
    "path": "delta_low",
    "title": "Lower delta",
    "description": "Tokens whose probability fell by more than this are masked where the advantage is negative.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0.2,
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "dppo"
     ]
    },
    "examples": [
     0.2
    ]
   },
   {
    "path": "delta_high",
    "title": "Upper delta",
    "description": "Tokens whose probability rose by more than this are masked where the advantage is positive.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0.2,
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "dppo"
     ]
    },
    "examples": [
     0.2
    ]
   },
   {
    "path": "value_clip",
    "title": "Value clip",
    "description": "How far a value may move from the old one before its loss is clipped.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0.2,
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "ppo_critic"
     ]
    },
    "examples": [
     0.2
    ]
   },
   {
    "path": "strategy",
    "title": "Strategy",
    "description": "`fused` has the server compute the loss and is an error where it cannot; `two_pass` computes the exact gradient weights in rlcli from a forward pass; `auto` takes fused where the server has it. The result is the same.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "default": "fused",
    "values": [
     "fused",
     "two_pass",
     "auto"
    ],
    "examples": [
     "auto"
    ]
   }
  ],
  "groups": []
 },
 "run": {
  "name": "run",
  "title": "RunBlock",
  "description": "A training. Its result is checkpoints of the base model, adapted to the dataset.",
  "fields": [
   {
    "path": "type",
    "title": "Type",
    "description": "`sl`: supervised learning on the rows of a dataset.",
    "type": "string",
    "isRequired": true,
    "change": "replace",
    "values": [
     "sl"
    ],
    "examples": [
     "sl"
    ]
   },
   {
    "path": "server",
    "title": "Server",
    "description": "The server that trains it.",
    "type": "string",
    "isRequired": false,
    "change": "update",
    "defaultText": "the only server, where there is exactly one",
    "ref": "server",
    "examples": [
     "gpu"
    ]
   },
   {
    "path": "dataset",
    "title": "Dataset",
    "description": "The rows to train on.",
    "type": "string",
    "isRequired": true,
    "change": "rule",
    "changeNote": "Other rows are another dataset: the run does what its `on_data_change` says, by default train anew.",
    "ref": "dataset",
    "also": [
     "data",
     "datasets"
    ],
    "examples": [
     "traces"
    ]
   },
   {
    "path": "from",
    "title": "Starting point",
    "description": "Another run whose weights this one starts from: `warmup` (its last step), `warmup@best` (its best held-out loss) or `warmup@40` (a kept step).",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew if it starts from another checkpoint; a renamed run with the same content changes nothing.",
    "form": "a run's name, or name@best, or name@STEP",
    "ref": "run",
    "also": [
     "init_from",
     "checkpoint",
     "parent",
     "base"
    ],
    "examples": [
     "warmup",
     "warmup@best",
     "warmup@40"
    ]
   },
   {
    "path": "from_optimizer",
    "title": "Take over the optimizer too",
    "description": "With `from`: also load that run's optimizer moments and step count, not the weights alone.",
    "type": "boolean",
    "isRequired": false,
    "change": "replace",
    "default": false,
    "examples": [
     true
    ]
   },
   {
    "path": "loss",
    "title": "Loss",
    "description": "A loss of this spec by name, or a loss type, which then has its default options.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew if the loss itself is another; another name for the same loss changes nothing.",
    "default": "cross_entropy",
    "ref": "loss",
    "examples": [
     "cross_entropy"
    ]
   },
   {
    "path": "epochs",
    "title": "Epochs",
    "description": "Passes over the training rows; may be a fraction. Use either this or `steps`.",
    "type": "number",
    "isRequired": false,
    "change": "rule",
    "changeNote": "More than before extends the run from its last checkpoint, if the schedule is constant or has a `horizon` of its own; else it is trained anew. Fewer selects the kept checkpoint at that step, else trains anew.",
    "defaultText": "1, unless steps is given",
    "range": "greater than 0",
    "also": [
     "num_epochs"
    ],
    "examples": [
     2
    ]
   },
   {
    "path": "steps",
    "title": "Steps",
    "description": "Optimizer steps. More than before extends a run whose schedule allows it; fewer selects a kept checkpoint.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "More than before extends the run from its last checkpoint, if the schedule is constant or has a `horizon` of its own; else it is trained anew. Fewer selects the kept checkpoint at that step, else trains anew.",
    "range": "at least 1",
    "also": [
     "max_steps"
    ],
    "examples": [
     200
    ]
   },
   {
    "path": "learning_rate",
    "title": "Learning rate",
    "description": "The full learning rate, before the schedule.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0.0001,
    "range": "greater than 0 and at most 10",
    "also": [
     "lr"
    ],
    "examples": [
     0.0002
    ]
   },
   {
    "path": "schedule",
    "title": "Schedule",
    "description": "How the learning rate moves; a type alone (`schedule: cosine`) is short for `{ type: cosine }`.",
    "type": "group",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew, unless the learning rate of every step stays what it was.",
    "shorthand": "type",
    "also": [
     "lr_schedule",
     "scheduler"
    ],
    "examples": [
     "cosine",
     {
      "type": "cosine",
      "warmup_steps": 20
     }
    ]
   },
   {
    "path": "schedule.type",
    "title": "Type",
    "description": "`constant`, `linear` or `cosine`: the last two fall from the full rate to `final_ratio` of it over the horizon.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew, unless the learning rate of every step stays what it was.",
    "default": "constant",
    "values": [
     "constant",
     "linear",
     "cosine"
    ],
    "examples": [
     "cosine"
    ]
   },
   {
    "path": "schedule.warmup_steps",
    "title": "Warm-up",
    "description": "Steps over which the rate first rises from 0.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew, unless the learning rate of every step stays what it was.",
    "default": 0,
    "range": "at least 0",
    "examples": [
     20
    ]
   },
   {
    "path": "schedule.final_ratio",
    "title": "Final ratio",
    "description": "The rate at the end as a share of the full one; of linear and cosine schedules.",
    "type": "number",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew, unless the learning rate of every step stays what it was.",
    "default": 0,
    "range": "at least 0 and at most 1",
    "examples": [
     0.1
    ]
   },
   {
    "path": "schedule.horizon",
    "title": "Horizon",
    "description": "Length over which the schedule runs, frozen at the first apply; a number alone is steps. Written down, it lets a run be extended later.",
    "type": "group",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew, unless the learning rate of every step stays what it was.",
    "defaultText": "the run's own length",
    "shorthand": "steps",
    "when": {
     "path": "schedule.type",
     "values": [
      "linear",
      "cosine"
     ]
    },
    "examples": [
     {
      "steps": 200
     }
    ]
   },
   {
    "path": "schedule.horizon.steps",
    "title": "Steps",
    "description": "Optimizer steps.",
    "type": "integer",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew, unless the learning rate of every step stays what it was.",
    "range": "at least 1",
    "examples": [
     200
    ]
   },
   {
    "path": "schedule.horizon.epochs",
    "title": "Epochs",
    "description": "Passes over the training rows; may be a fraction.",
    "type": "number",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew, unless the learning rate of every step stays what it was.",
    "range": "greater than 0",
    "examples": [
     2
    ]
   },
   {
    "path": "optimizer",
    "title": "Optimizer",
    "description": "AdamW settings. What is left out stays as the server has it; what is written is enforced, or refused where the server cannot.",
    "type": "group",
    "isRequired": false
   },
   {
    "path": "optimizer.beta1",
    "title": "Beta 1",
    "description": "Decay of the mean of gradients.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "defaultText": "as the server has it",
    "range": "at least 0 and less than 1",
    "examples": [
     0.9
    ]
   },
   {
    "path": "optimizer.beta2",
    "title": "Beta 2",
    "description": "Decay of the mean of squared gradients.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "defaultText": "as the server has it",
    "range": "at least 0 and less than 1",
    "examples": [
     0.95
    ]
   },
   {
    "path": "optimizer.eps",
    "title": "Epsilon",
    "description": "Added to the root of the second moment.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "defaultText": "as the server has it",
    "range": "greater than 0",
    "examples": [
     1e-8
    ]
   },
   {
    "path": "optimizer.weight_decay",
    "title": "Weight decay",
    "description": "Decoupled weight decay.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "defaultText": "as the server has it",
    "range": "at least 0",
    "examples": [
     0.01
    ]
   },
   {
    "path": "optimizer.grad_clip_norm",
    "title": "Gradient clipping",
    "description": "L2 norm to which the whole gradient is clipped; 0 is off.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "defaultText": "as the server has it",
    "range": "at least 0",
    "examples": [
     1
    ]
   },
   {
    "path": "batch_size",
    "title": "Batch size",
    "description": "Most rows in a batch.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 8,
    "range": "at least 1",
    "examples": [
     32
    ]
   },
   {
    "path": "batch_tokens",
    "title": "Tokens per batch",
    "description": "Most tokens in a batch, counted before padding; a single longer row still makes a batch of its own.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "defaultText": "no limit",
    "range": "at least 1",
    "examples": [
     16384
    ]
   },
   {
    "path": "max_length",
    "title": "Longest row",
    "description": "Rows of more tokens are cut at the right.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 2048,
    "range": "at least 2",
    "also": [
     "max_seq_len",
     "max_tokens"
    ],
    "examples": [
     4096
    ]
   },
   {
    "path": "train_on",
    "title": "Trained tokens",
    "description": "Which tokens the loss counts: those of every assistant message, of the last one only, or all.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "all_assistant",
    "values": [
     "all_assistant",
     "last_assistant",
     "all"
    ],
    "examples": [
     "last_assistant"
    ]
   },
   {
    "path": "normalize",
    "title": "Normalisation",
    "description": "What the loss is a mean over: `token` weighs every token alike, `sequence` every row.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "token",
    "values": [
     "token",
     "sequence"
    ],
    "examples": [
     "sequence"
    ]
   },
   {
    "path": "seed",
    "title": "Seed",
    "description": "Decides the order of rows and the initial adapter. The same seed gives the same weights on the embedded server.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 0,
    "range": "at least 0 and at most 4294967295",
    "examples": [
     1
    ]
   },
   {
    "path": "lora_rank",
    "title": "LoRA rank",
    "description": "Rank of the trained adapter; 0 trains all weights.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "defaultText": "0 for a builtin: model, else 32",
    "range": "at least 0 and at most 4096",
    "also": [
     "rank",
     "lora"
    ],
    "examples": [
     32
    ]
   },
   {
    "path": "test_size",
    "title": "Held-out rows",
    "description": "Rows kept out of training to measure the loss on, chosen by a stable hash.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 0,
    "range": "at least 0",
    "also": [
     "holdout",
     "test_rows"
    ],
    "examples": [
     64
    ]
   },
   {
    "path": "eval_every",
    "title": "Evaluation interval",
    "description": "Held-out loss every so many steps; 0 measures it at the end only. Needs `test_size`.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "default": 0,
    "range": "at least 0",
    "examples": [
     10
    ]
   },
   {
    "path": "save_every",
    "title": "Checkpoint interval",
    "description": "A durable checkpoint every so many steps; the last step always has one. 0 saves at the end only.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "default": 20,
    "range": "at least 0",
    "examples": [
     50
    ]
   },
   {
    "path": "keep_last",
    "title": "Rolling checkpoints kept",
    "description": "Newest checkpoints kept beside the final and the best one.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "default": 3,
    "range": "at least 1",
    "also": [
     "keep"
    ],
    "examples": [
     5
    ]
   },
   {
    "path": "on_data_change",
    "title": "When the data changes",
    "description": "`replace` trains anew, `continue` goes on from the run's own last checkpoint over the new rows, `ignore` leaves the run as it is.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "default": "replace",
    "values": [
     "replace",
     "continue",
     "ignore"
    ],
    "examples": [
     "continue"
    ]
   },
   {
    "path": "template_kwargs",
    "title": "Template variables",
    "description": "Extra variables for the model's chat template.",
    "type": "map",
    "isRequired": false,
    "change": "replace",
    "default": {},
    "also": [
     "chat_template_kwargs"
    ],
    "examples": [
     {
      "enable_thinking": false
     }
    ]
   }
  ],
  "groups": [
   {
    "path": "",
    "keys": [
     "epochs",
     "steps"
    ],
    "isRequired": false
   },
   {
    "path": "schedule.horizon",
    "keys": [
     "steps",
     "epochs"
    ],
    "isRequired": true
   }
  ]
 }
};
