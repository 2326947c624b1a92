/** Generated from schemas/rlcli.schema.json by schemas/generate.mjs; do not edit. */
import type { BlockInfo, BlockName } from "./fields.ts";

export const BLOCKS: Readonly<Record<BlockName, BlockInfo>> = {
 "spec": {
  "name": "spec",
  "title": "SpecFile",
  "description": "An rlcli.yaml: what should exist (servers, datasets, losses, environments, runs, evals, deployments). `rlcli plan` says what it takes to get there, `rlcli apply` does it.",
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
    "path": "environments",
    "title": "Environments",
    "description": "Tasks with graders, by name.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "math": {
       "type": "math",
       "dataset": "gsm8k"
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
   },
   {
    "path": "evals",
    "title": "Evals",
    "description": "Measurements of checkpoints, by name.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "holdout": {
       "checkpoint": "agent",
       "environment": "math",
       "metrics": {
        "reward": {
         "min": 0.85
        }
       }
      }
     }
    ]
   },
   {
    "path": "deployments",
    "title": "Deployments",
    "description": "Named pointers to checkpoints that move only when their evals pass.",
    "type": "map",
    "isRequired": false,
    "examples": [
     {
      "production": {
       "checkpoint": "agent",
       "requires": [
        "holdout"
       ]
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
    "description": "GPUs that the server takes on each node. 0 is the CPU, which only `jax` runs on.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "defaultText": "1 for fsdp and megatron; for jax all that the machine has",
    "range": "at least 0 and at most 1024",
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
    "description": "Machines that the server spans; more than one needs `ray`.",
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
    "description": "Address on which the server listens; beyond loopback it always asks for a token. `user@machine` instead starts the server on that machine over ssh and forwards it here.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "default": "127.0.0.1",
    "form": "a host name, an IP address, or `user@machine`",
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
     "127.0.0.1",
     "me@gpu-box"
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
    "path": "auth",
    "title": "Authentication",
    "description": "`token`: only who sends the server's key (`rlcli serve token`) is served; `none`: everyone who reaches it, on loopback only.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "defaultText": "none on loopback, token beyond it",
    "values": [
     "token",
     "none"
    ],
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "token"
    ]
   },
   {
    "path": "tls",
    "title": "Encryption",
    "description": "Certificate and key with which the server speaks HTTPS.",
    "type": "group",
    "isRequired": false,
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    }
   },
   {
    "path": "tls.certificate",
    "title": "Certificate",
    "description": "PEM file with the certificate and those that vouch for it.",
    "type": "string",
    "isRequired": true,
    "change": "restart",
    "form": "a file",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "server.pem"
    ]
   },
   {
    "path": "tls.key",
    "title": "Private key",
    "description": "PEM file with the certificate's key.",
    "type": "string",
    "isRequired": true,
    "change": "restart",
    "form": "a file",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "server.key"
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
    "description": "Models that the server holds at once. Runs beyond that wait their turn. On megatron more than one means adapters of one rank, and GPUs of their own for sampling.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "defaultText": "8 for embedded, 31 for jax, 1 for megatron and external",
    "range": "at least 1 and at most 1024",
    "when": {
     "path": "backend",
     "values": [
      "embedded",
      "external",
      "jax",
      "megatron"
     ]
    },
    "examples": [
     4
    ]
   },
   {
    "path": "max_lora_rank",
    "title": "Largest LoRA rank",
    "description": "Room that each adapter gets. A run with a larger `lora_rank` is refused at plan.",
    "type": "integer",
    "isRequired": false,
    "change": "restart",
    "default": 32,
    "range": "at least 1 and at most 4096",
    "when": {
     "path": "backend",
     "values": [
      "jax"
     ]
    },
    "examples": [
     64
    ]
   },
   {
    "path": "gpu_memory",
    "title": "GPU memory",
    "description": "Share of a GPU's memory: of the sampler on fsdp and megatron, of the whole server on jax.",
    "type": "number",
    "isRequired": false,
    "change": "restart",
    "defaultText": "0.8 on fsdp and megatron, 0.75 on jax",
    "range": "greater than 0 and at most 1",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "also": [
     "gpu_memory_utilization",
     "mem_fraction"
    ],
    "examples": [
     0.6
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
    "path": "restart",
    "title": "Restart",
    "description": "What happens when the server crashes: `on_failure` starts it again, at most three times in ten minutes; `never` leaves it to whoever needs it next.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "default": "on_failure",
    "values": [
     "on_failure",
     "never"
    ],
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "never"
    ]
   },
   {
    "path": "ray",
    "title": "Ray cluster",
    "description": "An existing cluster whose machines the server uses. `rlcli` runs on one of its nodes.",
    "type": "group",
    "isRequired": false,
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    }
   },
   {
    "path": "ray.address",
    "title": "Address",
    "description": "The head node: `host:port` of `ray start --head`, or `auto` for the cluster that this machine belongs to.",
    "type": "string",
    "isRequired": true,
    "change": "restart",
    "form": "`host:port` or `auto`",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "10.0.0.1:6379"
    ]
   },
   {
    "path": "python",
    "title": "Python environment",
    "description": "How the server's Python environment is made, where the defaults do not reach: mirrors, sites without a network, another SkyRL.",
    "type": "group",
    "isRequired": false,
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    }
   },
   {
    "path": "python.package",
    "title": "Package",
    "description": "What to install as SkyRL: a requirement, a wheel's path or a URL; `{extras}` in it becomes the extras that the backend needs.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "defaultText": "the SkyRL commit that this rlcli was written for",
    "form": "a requirement",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "/opt/wheels/skyrl-0.3.1-py3-none-any.whl[{extras}]"
    ]
   },
   {
    "path": "python.version",
    "title": "Python version",
    "description": "Version of Python, found or fetched by uv.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "defaultText": "3.12",
    "form": "a version such as 3.12",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "3.12"
    ]
   },
   {
    "path": "python.index",
    "title": "Package index",
    "description": "URL of the package index to use instead of the default one.",
    "type": "string",
    "isRequired": false,
    "change": "restart",
    "form": "an http://, https:// or file:// address",
    "when": {
     "path": "backend",
     "values": [
      "jax",
      "fsdp",
      "megatron"
     ]
    },
    "examples": [
     "https://pypi.example.org/simple"
    ]
   },
   {
    "path": "python.arguments",
    "title": "Arguments",
    "description": "Further arguments of `uv pip install`.",
    "type": "list",
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
    "examples": [
     [
      "--find-links",
      "/opt/wheels",
      "torch==2.13.0"
     ]
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
    "description": "Settings handed to the backend as they are, over those that rlcli derives; the plan shows what comes of both.",
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
  "description": "Rows to train on or tasks: a file or a dataset of a hub as it is, or an import of other logs.",
  "fields": [
   {
    "path": "source",
    "title": "Source file",
    "description": "A file of rows, relative to the spec: JSONL, CSV or Parquet; `hf://ORG/NAME/CONFIG/SPLIT@REVISION` from the Hugging Face hub; or `https://…` or `s3://BUCKET/KEY`, where a key with `*` is several files. Conversations have one `{\"messages\": […]}` a row; tasks have the fields that an environment names.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "a path, hf://org/name/config/split, https://… or s3://…",
    "isPath": true,
    "also": [
     "file",
     "path"
    ],
    "examples": [
     "data/train.jsonl",
     "hf://openai/gsm8k/main/train"
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
     "claude-code",
     "codex",
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
    "description": "Files, globs or folders, relative to the spec, and `https://…` or `s3://BUCKET/KEY` (a key with `*`, or with `/` at its end, is several files); a single one may be written without the list. JSONL, JSON arrays or values one after another, also compressed by gzip.",
    "type": "list",
    "isRequired": true,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "a path, a glob or an address",
    "isPath": true,
    "shorthand": "list",
    "examples": [
     [
      "traces/*.jsonl"
     ],
     [
      "s3://logs/2026-11/*.jsonl.gz"
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
    "path": "import.role_prefix",
    "title": "Role prefixes",
    "description": "Who speaks, where a log says it in the text: a turn that begins with the prefix has the role, and the prefix and the white space behind it are taken off. Other turns keep their roles.",
    "type": "list",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "form": "ROLE=PREFIX with ROLE one of system, user, assistant",
    "shorthand": "list",
    "examples": [
     [
      "assistant=AI:",
      "user=CX:"
     ]
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
    "description": "`prefix` takes of log lines that repeat a growing conversation only the longest, and equal ones once; `near` also leaves out, of conversations that are nearly equal, all but the first; `exact` takes equal conversations once; `none` takes all. By default `prefix` for logs of requests (openai, anthropic, langsmith, litellm, langfuse, otel, claude-code, codex), `none` for rows that somebody made (messages, alpaca).",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "values": [
     "none",
     "exact",
     "prefix",
     "near"
    ],
    "examples": [
     "prefix"
    ]
   },
   {
    "path": "import.near_threshold",
    "title": "Nearly equal",
    "description": "For `dedupe: near`: how much two conversations must share to be nearly equal, as a share of what either has (Jaccard similarity of their word 5-grams, without system messages). 0.8 by default.",
    "type": "number",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "range": "at least 0.5 and at most 1",
    "examples": [
     0.9
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
   },
   {
    "path": "rows",
    "title": "Kind of rows",
    "description": "`conversations` to train on as they are, or `tasks` for environments: rows of any fields, kept as they are.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: each run that uses it does what its `on_data_change` says, by default train anew.",
    "defaultText": "tasks where an environment uses it, else conversations",
    "values": [
     "conversations",
     "tasks"
    ],
    "examples": [
     "tasks"
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
 "environment": {
  "name": "environment",
  "title": "EnvironmentBlock",
  "description": "Tasks and a grader: what a policy is asked, and what its answers are worth.",
  "fields": [
   {
    "path": "type",
    "title": "Type",
    "description": "The grader: `math` compares final answers, `match` compares texts, `json_schema` checks a structure, `command` asks a program, `http` a service, `module` a JavaScript file (also over several turns), `judge` another model. `harbor`: no grader but tasks in sandboxes, each with its own tests.",
    "type": "string",
    "isRequired": true,
    "change": "replace",
    "values": [
     "math",
     "match",
     "json_schema",
     "command",
     "http",
     "module",
     "judge",
     "harbor"
    ],
    "examples": [
     "math"
    ]
   },
   {
    "path": "dataset",
    "title": "Dataset",
    "description": "The tasks, one a row.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other tasks are another environment: runs on it train anew, evals on it measure anew.",
    "ref": "dataset",
    "also": [
     "data"
    ],
    "examples": [
     "gsm8k"
    ]
   },
   {
    "path": "question",
    "title": "Question field",
    "description": "Field of a row with what the user says: text, or a list of messages.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "question",
    "form": "a field's name",
    "examples": [
     "problem"
    ]
   },
   {
    "path": "answer",
    "title": "Answer field",
    "description": "Field of a row with the right answer.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "answer",
    "form": "a field's name",
    "when": {
     "path": "type",
     "values": [
      "math",
      "match",
      "json_schema"
     ]
    },
    "examples": [
     "solution"
    ]
   },
   {
    "path": "system",
    "title": "System message",
    "description": "Said before every question. `{field}` stands for a field of the row.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "examples": [
     "Think step by step."
    ]
   },
   {
    "path": "prompt",
    "title": "Prompt",
    "description": "The user's message around the question. `{field}` stands for a field of the row; braces around anything else stay as they are.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "defaultText": "the question as it is",
    "form": "a text",
    "examples": [
     "{question}\nPut your answer in \\boxed{}."
    ]
   },
   {
    "path": "few_shot",
    "title": "Examples",
    "description": "Questions and answers shown before the question, as turns of the conversation.",
    "type": "list",
    "isRequired": false,
    "change": "replace",
    "examples": [
     [
      {
       "question": "1+1=",
       "answer": "2"
      }
     ]
    ]
   },
   {
    "path": "tag",
    "title": "Tag field",
    "description": "Field of a row by whose values evals also report apart.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "form": "a field's name",
    "examples": [
     "subject"
    ]
   },
   {
    "path": "weight",
    "title": "Weight",
    "description": "What this grader's reward is multiplied by, beside `parts`.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "examples": [
     0.8
    ]
   },
   {
    "path": "parts",
    "title": "Further graders",
    "description": "Graders whose rewards, each times its `weight`, are added: an entry has a `type`, the options of that type, a `weight` and a `name` for its metrics.",
    "type": "list",
    "isRequired": false,
    "change": "replace",
    "examples": [
     [
      {
       "name": "format",
       "type": "match",
       "mode": "regex",
       "pattern": "\\\\boxed",
       "weight": 0.1
      }
     ]
    ]
   },
   {
    "path": "length_penalty",
    "title": "Length penalty",
    "description": "Takes from the reward of long answers.",
    "type": "group",
    "isRequired": false
   },
   {
    "path": "length_penalty.free",
    "title": "Free length",
    "description": "Characters that cost nothing.",
    "type": "integer",
    "isRequired": true,
    "change": "replace",
    "range": "at least 0",
    "examples": [
     2000
    ]
   },
   {
    "path": "length_penalty.full",
    "title": "Full length",
    "description": "Characters from which the whole penalty is taken; in between it rises evenly.",
    "type": "integer",
    "isRequired": true,
    "change": "replace",
    "range": "at least 1",
    "examples": [
     4000
    ]
   },
   {
    "path": "length_penalty.penalty",
    "title": "Penalty",
    "description": "Taken at the most.",
    "type": "number",
    "isRequired": true,
    "change": "replace",
    "range": "at least 0",
    "examples": [
     0.5
    ]
   },
   {
    "path": "formats",
    "title": "Answer formats",
    "description": "Where the final answer may stand, the most trusted first: `boxed`, `hash` (after `####`), `answer_is` (the answer is …), `last_number`.",
    "type": "list",
    "isRequired": false,
    "change": "replace",
    "defaultText": "all, in this order",
    "when": {
     "path": "type",
     "values": [
      "math"
     ]
    },
    "examples": [
     [
      "boxed"
     ]
    ]
   },
   {
    "path": "tolerance",
    "title": "Tolerance",
    "description": "Relative difference that rounded decimals may have.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0.000001,
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "math"
     ]
    },
    "examples": [
     0.001
    ]
   },
   {
    "path": "mode",
    "title": "Comparison",
    "description": "`exact`: the answer is the whole text; `contains`: it occurs; `regex`: what `pattern` finds; `choice`: a letter.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "exact",
    "values": [
     "exact",
     "contains",
     "regex",
     "choice"
    ],
    "when": {
     "path": "type",
     "values": [
      "match"
     ]
    },
    "examples": [
     "choice"
    ]
   },
   {
    "path": "pattern",
    "title": "Pattern",
    "description": "For `mode: regex`: searched in the completion. Where `answer` is written, what is found (its first group, if it has one) is compared with it; else a match is enough.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "form": "a regular expression",
    "when": {
     "path": "type",
     "values": [
      "match"
     ]
    },
    "examples": [
     "Answer: (\\d+)"
    ]
   },
   {
    "path": "ignore_case",
    "title": "Ignore case",
    "description": "Whether upper and lower case count as equal.",
    "type": "boolean",
    "isRequired": false,
    "change": "replace",
    "default": false,
    "when": {
     "path": "type",
     "values": [
      "match"
     ]
    },
    "examples": [
     true
    ]
   },
   {
    "path": "choices",
    "title": "Choices",
    "description": "For `mode: choice`: the letters there are.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "ABCDEFGHIJ",
    "form": "letters",
    "when": {
     "path": "type",
     "values": [
      "match"
     ]
    },
    "examples": [
     "ABCD"
    ]
   },
   {
    "path": "schema",
    "title": "JSON Schema",
    "description": "What the JSON in the answer must satisfy (draft 2020-12).",
    "type": "map",
    "isRequired": false,
    "change": "replace",
    "when": {
     "path": "type",
     "values": [
      "json_schema"
     ]
    },
    "examples": [
     {
      "type": "object",
      "required": [
       "city"
      ]
     }
    ]
   },
   {
    "path": "command",
    "title": "Command",
    "description": "A program and its arguments. It gets one JSON object a line on standard input and answers each with one line: `{\"reward\": 1}`.",
    "type": "list",
    "isRequired": false,
    "change": "replace",
    "form": "a text",
    "when": {
     "path": "type",
     "values": [
      "command"
     ]
    },
    "examples": [
     [
      "python3",
      "grade.py"
     ]
    ]
   },
   {
    "path": "files",
    "title": "Files of the grader",
    "description": "Files that belong to the command beside those it names: a change to one is a change to the environment.",
    "type": "list",
    "isRequired": false,
    "change": "none",
    "form": "a path",
    "isPath": true,
    "shorthand": "list",
    "when": {
     "path": "type",
     "values": [
      "command",
      "module"
     ]
    },
    "examples": [
     [
      "lib/rules.py"
     ]
    ]
   },
   {
    "path": "module",
    "title": "Module",
    "description": "A JavaScript file, relative to the spec. It exports `grade({ prompt, completion, row, turn })`, which returns a reward, or `{ messages }` to answer back.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "form": "a path",
    "isPath": true,
    "when": {
     "path": "type",
     "values": [
      "module"
     ]
    },
    "examples": [
     "grade.js"
    ]
   },
   {
    "path": "max_turns",
    "title": "Most turns",
    "description": "Answers of the policy at the most, where the module answers back; for `harbor` in each step of a task.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 8,
    "range": "at least 1 and at most 1000",
    "when": {
     "path": "type",
     "values": [
      "module",
      "harbor"
     ]
    },
    "examples": [
     4
    ]
   },
   {
    "path": "url",
    "title": "Address",
    "description": "For `http`: where requests are posted. For `judge`: an OpenAI-compatible endpoint, up to and with `/v1`.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "form": "an http:// or https:// address",
    "when": {
     "path": "type",
     "values": [
      "http",
      "judge"
     ]
    },
    "examples": [
     "http://127.0.0.1:9000/grade"
    ]
   },
   {
    "path": "api_key",
    "title": "API key",
    "description": "Must be `${secret.NAME}`: read from the environment variable NAME when it is used; only its name is ever stored.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "isSecret": true,
    "when": {
     "path": "type",
     "values": [
      "http",
      "judge"
     ]
    },
    "examples": [
     "${secret.JUDGE_API_KEY}"
    ]
   },
   {
    "path": "model",
    "title": "Judge's model",
    "description": "The model that judges.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "form": "a model's name",
    "when": {
     "path": "type",
     "values": [
      "judge"
     ]
    },
    "examples": [
     "gpt-4o-mini"
    ]
   },
   {
    "path": "rubric",
    "title": "Rubric",
    "description": "What a good answer is, in words. `{field}` stands for a field of the row.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "form": "a text",
    "when": {
     "path": "type",
     "values": [
      "judge"
     ]
    },
    "examples": [
     "Is the answer polite and right? The right answer is {answer}."
    ]
   },
   {
    "path": "scale_min",
    "title": "Lowest score",
    "description": "Of the judge; it counts as a reward of 0.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0,
    "when": {
     "path": "type",
     "values": [
      "judge"
     ]
    },
    "examples": [
     1
    ]
   },
   {
    "path": "scale_max",
    "title": "Highest score",
    "description": "Of the judge; it counts as a reward of 1.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 10,
    "when": {
     "path": "type",
     "values": [
      "judge"
     ]
    },
    "examples": [
     5
    ]
   },
   {
    "path": "tasks",
    "title": "Tasks",
    "description": "Harbor tasks: a folder with them, or a dataset's `name@version` from a registry.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "form": "a folder or a name",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "terminal-bench@2.0"
    ]
   },
   {
    "path": "registry",
    "title": "Registry",
    "description": "Where datasets are looked up by name: a `registry.json` by path or address.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "defaultText": "Harbor's own",
    "form": "a path or an address",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "registry.json"
    ]
   },
   {
    "path": "mirror",
    "title": "Mirror",
    "description": "A folder that holds datasets by name, as `name@version` or `name`; looked into before any registry.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "form": "a path",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "/data/harbor"
    ]
   },
   {
    "path": "include",
    "title": "Only these tasks",
    "description": "Patterns of tasks' names: only what matches one is used.",
    "type": "list",
    "isRequired": false,
    "change": "none",
    "defaultText": "all",
    "form": "a pattern",
    "shorthand": "list",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     [
      "git-*"
     ]
    ]
   },
   {
    "path": "exclude",
    "title": "Without these tasks",
    "description": "Patterns of tasks' names that are left out.",
    "type": "list",
    "isRequired": false,
    "change": "none",
    "form": "a pattern",
    "shorthand": "list",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     [
      "*-windows"
     ]
    ]
   },
   {
    "path": "first",
    "title": "First tasks",
    "description": "The first so many of what is left.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "defaultText": "all",
    "range": "at least 1 and at most 1000000",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     10
    ]
   },
   {
    "path": "tool_format",
    "title": "Tool format",
    "description": "How the model writes a call of its tool: `hermes` (`<tool_call>` with JSON), `qwen_xml`, `llama`, or `bash_block` (a ```bash block, for models that know no tools). `auto` takes any.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "auto",
    "values": [
     "auto",
     "hermes",
     "qwen_xml",
     "llama",
     "bash_block"
    ],
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "hermes"
    ]
   },
   {
    "path": "command_timeout",
    "title": "Command's time",
    "description": "For one command of the agent; then it is killed with all that it started, and the agent is told.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "120s",
    "form": "a duration: a whole number and s, m, h or d, such as `300s` or `10m`",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "300s"
    ]
   },
   {
    "path": "agent_timeout",
    "title": "Agent's time",
    "description": "For one attempt at a task (one step of it), over the task's own limit; the tests judge what there is by then.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "defaultText": "as the task says",
    "form": "a duration: a whole number and s, m, h or d, such as `300s` or `10m`",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "30m"
    ]
   },
   {
    "path": "max_trajectory_tokens",
    "title": "Longest conversation",
    "description": "Tokens of one conversation, answers included. An attempt that would need more ends as `on_limit` says.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 32768,
    "range": "at least 256 and at most 10000000",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     65536
    ]
   },
   {
    "path": "output_bytes",
    "title": "Output that is shown",
    "description": "Bytes of each stream of a command that the agent sees; of longer ones the beginning and the end.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 16384,
    "range": "at least 256 and at most 10485760",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     8192
    ]
   },
   {
    "path": "on_limit",
    "title": "At a limit",
    "description": "What an attempt is worth that ended by `max_tokens`, `max_trajectory_tokens` or malformed calls: `penalty` gives `limit_reward`, `grade` what the tests say.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "penalty",
    "values": [
     "penalty",
     "grade"
    ],
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "grade"
    ]
   },
   {
    "path": "limit_reward",
    "title": "Price of a limit",
    "description": "The reward of an attempt that a limit ended, with `on_limit: penalty`.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": -0.1,
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     0
    ]
   },
   {
    "path": "malformed_retries",
    "title": "Malformed calls",
    "description": "How many malformed calls in a row are answered; one more ends the attempt.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 2,
    "range": "at least 0 and at most 100",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     0
    ]
   },
   {
    "path": "reward_key",
    "title": "Reward's key",
    "description": "Which number counts where a task's tests write several.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "defaultText": "`reward`, or the only one",
    "form": "a name",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "score"
    ]
   },
   {
    "path": "sandbox",
    "title": "Sandboxes",
    "description": "The containers in which tasks are tried.",
    "type": "group",
    "isRequired": false,
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    }
   },
   {
    "path": "sandbox.concurrency",
    "title": "Sandboxes at once",
    "description": "Containers at the same time.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "default": 8,
    "range": "at least 1 and at most 4096",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     16
    ]
   },
   {
    "path": "sandbox.memory",
    "title": "Memory",
    "description": "Of a container whose task says nothing.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "2GiB",
    "form": "a size: a whole number and MiB or GiB, such as `512MiB`",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "4GiB"
    ]
   },
   {
    "path": "sandbox.total_memory",
    "title": "Memory of all",
    "description": "Of all containers together; what does not fit waits.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "defaultText": "without limit",
    "form": "a size: a whole number and MiB or GiB, such as `512MiB`",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "32GiB"
    ]
   },
   {
    "path": "sandbox.pids",
    "title": "Processes",
    "description": "In one container, at the most.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 1024,
    "range": "at least 16 and at most 1000000",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     1024
    ]
   },
   {
    "path": "sandbox.network",
    "title": "Network",
    "description": "`task`: as each task says; `none` and `public`: whatever it says.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "task",
    "values": [
     "task",
     "none",
     "public"
    ],
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "none"
    ]
   },
   {
    "path": "sandbox.security",
    "title": "Rights",
    "description": "`compat`: Docker's usual rights, which many tasks' tests need; `hardened`: no capabilities, no new privileges.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "compat",
    "values": [
     "compat",
     "hardened"
    ],
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "hardened"
    ]
   },
   {
    "path": "sandbox.lifetime",
    "title": "Longest life",
    "description": "After this a container ends by itself, whatever became of rlcli.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "default": "2h",
    "form": "a duration: a whole number and s, m, h or d, such as `300s` or `10m`",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "4h"
    ]
   },
   {
    "path": "sandbox.host",
    "title": "Daemon",
    "description": "Address of the Docker daemon: `unix://…`, `tcp://…` or `ssh://…`. Of several, each has `concurrency` and `total_memory` of its own; one that does not answer is left out until it does.",
    "type": "list",
    "isRequired": false,
    "change": "none",
    "defaultText": "DOCKER_HOST, else the local socket",
    "form": "an address",
    "shorthand": "list",
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     "ssh://user@box",
     [
      "unix:///var/run/docker.sock",
      "ssh://user@box"
     ]
    ]
   },
   {
    "path": "sandbox.keep_failed",
    "title": "Keep failed ones",
    "description": "Leaves the containers of attempts that were lost to a fault, to be looked at; `rlcli env gc --kept` removes them.",
    "type": "boolean",
    "isRequired": false,
    "change": "none",
    "default": false,
    "when": {
     "path": "type",
     "values": [
      "harbor"
     ]
    },
    "examples": [
     true
    ]
   },
   {
    "path": "tests",
    "title": "Known grades",
    "description": "Answers whose reward is known, graded at every plan: `completion`, `reward`, and the fields of the row that the grader reads. A difference is an error before anything is trained.",
    "type": "list",
    "isRequired": false,
    "change": "none",
    "examples": [
     [
      {
       "completion": "It is \\boxed{4}.",
       "answer": "4",
       "reward": 1
      }
     ]
    ]
   },
   {
    "path": "timeout",
    "title": "Time limit",
    "description": "For one grade, or one turn of a module.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "default": "30s",
    "form": "a duration: a whole number and s, m, h or d, such as `300s` or `10m`",
    "examples": [
     "60s"
    ]
   },
   {
    "path": "retries",
    "title": "Retries",
    "description": "How often a grade that failed is tried again before its rollout is dropped.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "default": 2,
    "range": "at least 0 and at most 20",
    "examples": [
     3
    ]
   },
   {
    "path": "concurrency",
    "title": "Grades at once",
    "description": "How many answers are graded at the same time.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "defaultText": "as many as the machine has processors for command and module, else 64",
    "range": "at least 1 and at most 1024",
    "examples": [
     16
    ]
   }
  ],
  "groups": []
 },
 "run": {
  "name": "run",
  "title": "RunBlock",
  "description": "A training. Its result is checkpoints of the base model, adapted to a dataset or to an environment's rewards.",
  "fields": [
   {
    "path": "type",
    "title": "Type",
    "description": "`sl`: supervised learning on the rows of a dataset. `rl`: reinforcement learning on an environment.",
    "type": "string",
    "isRequired": true,
    "change": "replace",
    "values": [
     "sl",
     "rl"
    ],
    "examples": [
     "sl",
     "rl"
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
    "isRequired": false,
    "change": "rule",
    "changeNote": "Other rows are another dataset: the run does what its `on_data_change` says, by default train anew.",
    "ref": "dataset",
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
    "also": [
     "data",
     "datasets"
    ],
    "examples": [
     "traces"
    ]
   },
   {
    "path": "environment",
    "title": "Environment",
    "description": "What the policy is asked and graded by.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew if the environment itself is another (tasks, grader, prompt); another name for the same one changes nothing.",
    "ref": "environment",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "also": [
     "env"
    ],
    "examples": [
     "math"
    ]
   },
   {
    "path": "from",
    "title": "Starting point",
    "description": "Another run whose weights this one starts from: `warmup` (its last step), `warmup@best` (its best held-out loss or reward) or `warmup@40` (a kept step).",
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
    "defaultText": "cross_entropy for sl, importance_sampling for rl",
    "ref": "loss",
    "examples": [
     "cross_entropy",
     "gspo"
    ]
   },
   {
    "path": "epochs",
    "title": "Epochs",
    "description": "Passes over the training rows or tasks; may be a fraction. Use either this or `steps`.",
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
    "when": {
     "path": "schedule.type",
     "values": [
      "linear",
      "cosine"
     ]
    },
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
    "when": {
     "path": "schedule.type",
     "values": [
      "linear",
      "cosine"
     ]
    },
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
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
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
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
    "examples": [
     16384
    ]
   },
   {
    "path": "group_size",
    "title": "Group size",
    "description": "Answers sampled to each task; their rewards are compared with each other.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 8,
    "range": "at least 1 and at most 4096",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "also": [
     "num_generations",
     "n_samples"
    ],
    "examples": [
     16
    ]
   },
   {
    "path": "groups_per_batch",
    "title": "Groups per step",
    "description": "Tasks of one step.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 16,
    "range": "at least 1 and at most 65536",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "also": [
     "batch_size",
     "prompts_per_batch"
    ],
    "examples": [
     32
    ]
   },
   {
    "path": "substeps",
    "title": "Substeps",
    "description": "Optimizer updates of one step, each on its share of the groups.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "range": "at least 1 and at most 256",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "also": [
     "num_substeps",
     "mini_batches"
    ],
    "examples": [
     2
    ]
   },
   {
    "path": "minibatches",
    "title": "Minibatches",
    "description": "forward_backward calls of one substep, each on a fixed share of its groups. With `normalize: sequence` the first are computed while the rest is still sampled. The sum of their gradients is the same.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "range": "at least 1 and at most 256",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     4
    ]
   },
   {
    "path": "advantage",
    "title": "Advantage",
    "description": "What a reward is compared with: `center` subtracts the group's mean, `std` also divides by its deviation, `leave_one_out` subtracts the mean of the others, `none` takes the reward itself.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "default": "center",
    "values": [
     "center",
     "std",
     "leave_one_out",
     "none"
    ],
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     "std"
    ]
   },
   {
    "path": "temperature",
    "title": "Temperature",
    "description": "Of sampling; 1 samples from the model as it is, 0 takes the most probable token.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "range": "at least 0 and at most 100",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     1
    ]
   },
   {
    "path": "top_p",
    "title": "Top p",
    "description": "Samples from the most probable tokens that make up this share; 1 is off.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "range": "greater than 0 and at most 1",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     0.95
    ]
   },
   {
    "path": "max_tokens",
    "title": "Longest answer",
    "description": "Tokens of one answer at the most.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 512,
    "range": "at least 1",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "also": [
     "max_new_tokens",
     "max_completion_tokens"
    ],
    "examples": [
     1024
    ]
   },
   {
    "path": "stop",
    "title": "Stops",
    "description": "Texts that end an answer, beside the tokens with which the model ends a turn. A single one may be written without the list.",
    "type": "list",
    "isRequired": false,
    "change": "replace",
    "form": "a text",
    "shorthand": "list",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     [
      "\n\n"
     ]
    ]
   },
   {
    "path": "kl_penalty",
    "title": "KL penalty",
    "description": "Weight of the penalty for moving away from `kl_reference`, subtracted from the advantages token by token; 0 is off.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 0,
    "range": "at least 0",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "also": [
     "kl_coef",
     "kl_beta"
    ],
    "examples": [
     0.01
    ]
   },
   {
    "path": "kl_reference",
    "title": "KL reference",
    "description": "With `kl_penalty`: the run whose checkpoint is the reference.",
    "type": "string",
    "isRequired": false,
    "change": "rule",
    "changeNote": "Trains the run anew if the reference is another checkpoint.",
    "defaultText": "the weights that the run starts from",
    "form": "a run's name, or name@best, or name@STEP",
    "ref": "run",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     "warmup"
    ]
   },
   {
    "path": "max_steps_off_policy",
    "title": "Steps off policy",
    "description": "Answers may be sampled by weights that are this many steps old, so that sampling and training overlap; older ones are dropped and counted. 0 samples every step from its own weights.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 0,
    "range": "at least 0 and at most 64",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     1
    ]
   },
   {
    "path": "min_group_size",
    "title": "Smallest group",
    "description": "A group that lost answers to faults is kept if at least this many remain.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 2,
    "range": "at least 1",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     4
    ]
   },
   {
    "path": "max_failure_rate",
    "title": "Tolerated failures",
    "description": "Share of a step's answers that may be lost to faults (of the grader, of sampling, of a sandbox) before the run stops.",
    "type": "number",
    "isRequired": false,
    "change": "none",
    "default": 0.2,
    "range": "at least 0 and at most 1",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     0.1
    ]
   },
   {
    "path": "early_stop",
    "title": "Early stop",
    "description": "Ends the run before its last step. Judged by the first of its evals with `every`, else by the mean reward over `window` steps.",
    "type": "group",
    "isRequired": false,
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    }
   },
   {
    "path": "early_stop.target",
    "title": "Target",
    "description": "The run is complete once the reward reaches this.",
    "type": "number",
    "isRequired": false,
    "change": "none",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     0.95
    ]
   },
   {
    "path": "early_stop.collapse",
    "title": "Collapse",
    "description": "The run stops with an error once the reward falls below this share of its best.",
    "type": "number",
    "isRequired": false,
    "change": "none",
    "range": "at least 0 and at most 1",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     0.5
    ]
   },
   {
    "path": "early_stop.window",
    "title": "Window",
    "description": "Steps over which rewards are averaged where no eval looks on.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "default": 10,
    "range": "at least 1",
    "when": {
     "path": "type",
     "values": [
      "rl"
     ]
    },
    "examples": [
     20
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
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
    "also": [
     "max_seq_len"
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
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
    "examples": [
     "last_assistant"
    ]
   },
   {
    "path": "normalize",
    "title": "Normalisation",
    "description": "What the loss is a mean over: `token` weighs every token alike, `sequence` every row or answer.",
    "type": "string",
    "isRequired": false,
    "change": "replace",
    "defaultText": "token for sl, sequence for rl",
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
    "description": "Decides the order of rows and tasks, what is sampled, and the initial adapter. The same seed gives the same weights on the embedded server.",
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
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
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
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
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
    "when": {
     "path": "type",
     "values": [
      "sl"
     ]
    },
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
 },
 "eval": {
  "name": "eval",
  "title": "EvalBlock",
  "description": "A measurement of a checkpoint on an environment.",
  "fields": [
   {
    "path": "checkpoint",
    "title": "Checkpoint",
    "description": "What is measured: a run (`agent`, its last step), `agent@best` or `agent@40`.",
    "type": "string",
    "isRequired": true,
    "change": "rule",
    "changeNote": "Another checkpoint is measured anew; a renamed run with the same content changes nothing.",
    "form": "a run's name, or name@best, or name@STEP",
    "ref": "run",
    "examples": [
     "agent",
     "agent@best"
    ]
   },
   {
    "path": "environment",
    "title": "Environment",
    "description": "What it is measured on.",
    "type": "string",
    "isRequired": true,
    "change": "rule",
    "changeNote": "Another environment is measured anew; another name for the same one changes nothing.",
    "ref": "environment",
    "examples": [
     "math"
    ]
   },
   {
    "path": "tasks",
    "title": "Tasks",
    "description": "How many tasks, the first of the dataset.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "defaultText": "all",
    "range": "at least 1",
    "also": [
     "n",
     "limit",
     "num_tasks"
    ],
    "examples": [
     200
    ]
   },
   {
    "path": "samples",
    "title": "Samples a task",
    "description": "Answers to each task. With more than one, pass@k is reported for every power of two up to it.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "range": "at least 1 and at most 4096",
    "also": [
     "num_samples",
     "k"
    ],
    "examples": [
     8
    ]
   },
   {
    "path": "temperature",
    "title": "Temperature",
    "description": "Of sampling; 1 samples from the model as it is, 0 takes the most probable token.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "range": "at least 0 and at most 100",
    "examples": [
     1
    ]
   },
   {
    "path": "top_p",
    "title": "Top p",
    "description": "Samples from the most probable tokens that make up this share; 1 is off.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "range": "greater than 0 and at most 1",
    "examples": [
     0.95
    ]
   },
   {
    "path": "max_tokens",
    "title": "Longest answer",
    "description": "Tokens of one answer at the most.",
    "type": "integer",
    "isRequired": false,
    "change": "replace",
    "default": 512,
    "range": "at least 1",
    "also": [
     "max_new_tokens",
     "max_completion_tokens"
    ],
    "examples": [
     1024
    ]
   },
   {
    "path": "stop",
    "title": "Stops",
    "description": "Texts that end an answer, beside the tokens with which the model ends a turn. A single one may be written without the list.",
    "type": "list",
    "isRequired": false,
    "change": "replace",
    "form": "a text",
    "shorthand": "list",
    "examples": [
     [
      "\n\n"
     ]
    ]
   },
   {
    "path": "seed",
    "title": "Seed",
    "description": "Of sampling.",
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
    "path": "template_kwargs",
    "title": "Template variables",
    "description": "Extra variables for the model's chat template.",
    "type": "map",
    "isRequired": false,
    "change": "replace",
    "default": {},
    "examples": [
     {
      "enable_thinking": false
     }
    ]
   },
   {
    "path": "metrics",
    "title": "Thresholds",
    "description": "Metrics with the least (`min`) or most (`max`) they may be for the eval to pass. Judged afterwards: another threshold samples nothing anew.",
    "type": "map",
    "isRequired": false,
    "change": "update",
    "default": {},
    "examples": [
     {
      "reward": {
       "min": 0.85
      }
     }
    ]
   },
   {
    "path": "pass_reward",
    "title": "Passing reward",
    "description": "An answer counts as right for pass@k from this reward on.",
    "type": "number",
    "isRequired": false,
    "change": "replace",
    "default": 1,
    "examples": [
     0.5
    ]
   },
   {
    "path": "every",
    "title": "During training",
    "description": "Also measures the run while it trains, before its first step and every so many steps; 0 measures only the checkpoint.",
    "type": "integer",
    "isRequired": false,
    "change": "none",
    "default": 0,
    "range": "at least 0",
    "examples": [
     10
    ]
   }
  ],
  "groups": []
 },
 "deployment": {
  "name": "deployment",
  "title": "DeploymentBlock",
  "description": "A named pointer to a checkpoint, which moves only when its evals pass.",
  "fields": [
   {
    "path": "checkpoint",
    "title": "Checkpoint",
    "description": "What it is to point at: a run (`agent`, its last step), `agent@best` or `agent@40`.",
    "type": "string",
    "isRequired": true,
    "change": "rule",
    "changeNote": "The pointer moves when the required evals pass for the new checkpoint; until then it is held.",
    "form": "a run's name, or name@best, or name@STEP",
    "ref": "run",
    "examples": [
     "agent"
    ]
   },
   {
    "path": "requires",
    "title": "Required evals",
    "description": "Evals of this checkpoint that must pass. A single one may be written without the list.",
    "type": "list",
    "isRequired": false,
    "change": "none",
    "form": "an eval's name",
    "ref": "eval",
    "shorthand": "list",
    "examples": [
     [
      "holdout"
     ]
    ]
   },
   {
    "path": "on_fail",
    "title": "When evals fail",
    "description": "`hold` leaves the pointer where it is and says so; `error` also fails the apply.",
    "type": "string",
    "isRequired": false,
    "change": "none",
    "default": "hold",
    "values": [
     "hold",
     "error"
    ],
    "examples": [
     "error"
    ]
   }
  ],
  "groups": []
 }
};
