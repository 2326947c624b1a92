/**
 * The one table of diagnostic codes. Families: RL1 spec, RL2 plan, RL3 state, RL4 apply, RL5 servers and protocol,
 * RL6 datasets, RL7 environments, RL8 training, RL9 command line. A code is never reused for another meaning.
 */
import type { Severity } from "./diagnostic.ts";

export interface CodeInfo {
  /** Short, the same for every instance, no user names, no full stop. */
  readonly summary: string;
  /** For `rlcli explain CODE`: when it appears, and why that stands in the way. */
  readonly explanation: string;
  /** What to do: imperative, and with the command to type or the field, option or file to change in backticks. */
  readonly next: string;
  readonly severity?: Severity;
}

const table = <K extends string>(codes: Record<K, CodeInfo>): Readonly<Record<K, CodeInfo>> => codes;

export const CODES = table({
  RL1001: {
    summary: "File cannot be read",
    explanation: "The spec, or a file it names, is missing, is a folder, or may not be read.",
    next: "Check the path after `-f`, in `rlcli.yaml` or in the field that names the file, and that you may read it.",
  },
  RL1002: {
    summary: "File is not text in UTF-8",
    explanation:
      "The file holds bytes that are no UTF-8 text, or control characters. UTF-16 with a byte-order mark is read too.",
    next: "Save the file as UTF-8, then run `rlcli validate`.",
  },
  RL1003: {
    summary: "YAML syntax error",
    explanation:
      "The file is not YAML at the marked place. What follows such a place cannot be judged, so other checks of the file wait until it reads.",
    next: "Correct the marked place (often a missing colon, quote or space), then run `rlcli validate`.",
  },
  RL1004: {
    summary: "Tab used for indentation",
    explanation: "YAML indents with spaces only.",
    next: "Replace the tab by spaces, then run `rlcli validate`.",
  },
  RL1005: {
    summary: "Duplicate key",
    explanation: "A key stands twice in one map, so one of the two values would be lost.",
    next: "Remove one of the two, then run `rlcli validate`.",
  },
  RL1006: {
    summary: "More than one document in a file",
    explanation: "A spec is one YAML document; `---` starts another.",
    next: "Put the second document into a file of its own and pass both: `-f base.yaml -f prod.yaml`.",
  },
  RL1007: {
    summary: "File is empty",
    explanation: "The file holds no YAML, or only comments.",
    next: "Begin the file with `rlcli: 1` and `project: NAME`, or let `rlcli init` write one.",
  },
  RL1008: {
    summary: "Alias cannot be used",
    explanation:
      "A YAML alias (`*name`) or merge key (`<<`) has no anchor before it, contains itself, does not name a map where one is needed, or stands for more values than a spec may hold.",
    next: "Write the values out where the alias stands, or put `&name` before the map that it means.",
  },
  RL1009: {
    summary: "Nested too deeply",
    explanation: "Maps and lists may be nested 64 deep. No field of a spec needs more than six levels.",
    next: "Look for a wrong indentation or a stray bracket before the marked place, then run `rlcli validate`.",
  },
  RL1010: {
    summary: "Key is not text",
    explanation: "A map or a list stands where a key is expected.",
    next: "Write the key as plain text, as in `name: value`.",
  },
  RL1011: {
    summary: "Number with a leading zero",
    explanation: "YAML 1.1 read such a number as octal, YAML 1.2 reads it as decimal.",
    next: "Write the number without the zero, or as `0o17` where octal is meant.",
    severity: "warning",
  },
  RL1012: {
    summary: "Unknown YAML tag",
    explanation: "A tag (`!name`) asks for a type that a spec does not have.",
    next: "Remove the tag, then run `rlcli validate`.",
  },
  RL1013: {
    summary: "Spec program failed",
    explanation:
      "A spec that is a program (`rlcli.config.ts`, `.mjs`) could not be run, or gave something that is no spec. Its default export is the spec, or a function that returns it.",
    next: "Correct the program as the message says; `rlcli validate` runs it alone. TypeScript needs Node 22.18 or later, else write it as `rlcli.config.mjs`.",
  },
  RL1101: {
    summary: "Unknown key",
    explanation:
      "The key is not one of the fields at this place. A misspelt setting would otherwise do nothing, silently.",
    next: "Correct the spelling, or remove the key; `rlcli explain run` lists the fields of a run, and so for the other blocks.",
  },
  RL1102: {
    summary: "Wrong type",
    explanation:
      "The value is of another type than the field takes. In YAML 1.2 `yes`, `no`, `on` and `off` are text: booleans are `true` and `false`. Numbers have no thousands separators.",
    next: "Write a value of the type that the message names; `rlcli explain run.steps` prints type and examples of a field.",
  },
  RL1103: {
    summary: "Unknown value",
    explanation: "The field takes one of a few values, and this is none of them.",
    next: "Write one of the values that the message lists; `rlcli explain run.type` lists those of a field.",
  },
  RL1104: {
    summary: "Value out of range",
    explanation: "The number lies outside what the field allows.",
    next: "Write a number within the range that the message names; `rlcli explain run.learning_rate` prints that of a field.",
  },
  RL1105: {
    summary: "Value has the wrong form",
    explanation: "The text does not look as the field needs it.",
    next: "Write the text as the message says; `rlcli explain run.steps` shows examples of a field.",
  },
  RL1106: {
    summary: "Required field is missing",
    explanation: "The block cannot do without this field.",
    next: "Add the field that the message names; `rlcli explain run.type` says what one takes.",
  },
  RL1107: {
    summary: "Unsupported spec version",
    explanation: "The file asks for a version of the spec language that this rlcli does not know.",
    next: "Write `rlcli: 1`, or install the rlcli that the file was written for (`npm install -g rlcli`).",
  },
  RL1108: {
    summary: "Name cannot be used",
    explanation: "Names become folder names, checkpoint names and metric labels, so not every text can be one.",
    next: "Rename it, as in `my-run_2`: a letter first, then letters, digits, _ or -, at most 63 in all.",
  },
  RL1109: {
    summary: "Keys exclude each other",
    explanation: "Two keys that say the same thing in different ways are both present.",
    next: "Keep one of the two keys, then run `rlcli validate`.",
  },
  RL1110: {
    summary: "Not in this version",
    explanation: "The field, block or value belongs to the language but this version of rlcli does not do it yet.",
    next: "Remove it, or use what the message names instead; `rlcli explain spec` shows what this version has.",
  },
  RL1201: {
    summary: "Unknown reference",
    explanation:
      "The field names a block that the spec does not have. References are plain names: `dataset: traces` means the block `traces` under `datasets:`.",
    next: "Correct the name, or declare the block (`datasets:`, `servers:`, `environments:` …) that it means.",
  },
  RL1202: {
    summary: "Server must be named",
    explanation: "A run without `server:` takes the spec's only server. With several, or none, it must be said which.",
    next: "Add `server: NAME` to the run, with one of the names under `servers:`.",
  },
  RL1203: {
    summary: "Field does not apply",
    explanation:
      "The field means nothing together with the block's backend or type and would be ignored. A setting that does nothing is an error, so that no one relies on it.",
    next: "Remove the field, or change the `type` or `backend` beside it to one that has it; `rlcli explain run` says which fields go with which.",
  },
  RL1204: {
    summary: "Loss does not fit the run",
    explanation:
      "Supervised runs (`type: sl`) have no rewards or advantages: they train with a loss of type cross_entropy.",
    next: "Remove `loss` from the run, or make it `type: rl`.",
  },
  RL1205: {
    summary: "Values contradict each other",
    explanation: "Two fields are fine by themselves but not together.",
    next: "Change one of the two fields that the message names, then run `rlcli validate`.",
  },
  RL1206: {
    summary: "Checkpoint does not fit",
    explanation: "`from` names a checkpoint that the other run will not have, or one of another base model.",
    next: "Name a step that is kept (`from: warmup@40`), or a run on the same `model`.",
  },
  RL1301: {
    summary: "Bad interpolation",
    explanation: "What stands between `${` and `}` is none of what a spec may say there.",
    next: "Write `${var.NAME}`, `${env.NAME}` or `${secret.NAME}`, with quotes around the whole value inside `{ }` and `[ ]`; a literal `${` is `$${`.",
  },
  RL1302: {
    summary: "Unknown variable",
    explanation:
      "The variable is not declared under `variables:`, or a value was given on the command line for one that is not.",
    next: "Declare it under `variables:`, or correct the name after `${var.`, `--var` or in the file of `--var-file`.",
  },
  RL1303: {
    summary: "Variable has no value",
    explanation: "The variable has no default and nothing sets it.",
    next: "Set it with `--var NAME=VALUE`, `--var-file FILE` or the environment variable `RLCLI_VAR_NAME`, or give it a `default` under `variables:`.",
  },
  RL1304: {
    summary: "Variable has the wrong type",
    explanation: "The value given for a variable, or its default, is not of the variable's declared type.",
    next: "Give a value of the declared type, or change the `type` under `variables:`.",
  },
  RL1305: {
    summary: "Variable is not used",
    explanation: "Nothing in the spec uses the variable.",
    next: "Remove it from `variables:`, or look for a misspelt `${var.NAME}`.",
    severity: "warning",
  },
  RL1306: {
    summary: "Environment variable is not set",
    explanation: "`${env.NAME}` is resolved when the spec is read, so NAME must be in the environment then.",
    next: "Set the variable before the command (`NAME=value rlcli plan`), or use `${var.NAME}` with a `default`.",
  },
  RL1307: {
    summary: "Secret not allowed here",
    explanation:
      "`${secret.NAME}` may stand only in fields that keep secrets (`api_key`), as the whole value. Elsewhere the value would be shown in plans and stored.",
    next: "Write the secret into `api_key` as the whole value, or use `${env.NAME}` for what is no secret.",
  },
  RL1308: {
    summary: "Secret written in the open",
    explanation:
      "The field keeps a secret, so it takes `${secret.NAME}`: what is written in a file, or comes from `${var}` or `${env}`, ends up in plans and state. So do a `user:password@` in an address, and parameters whose names say that they are secret (`?token=…`, `?api_key=…`, `X-Amz-Signature`).",
    next: "Write `${secret.NAME}` and set `NAME` in the environment. Take a password or a key out of an address.",
  },
  RL2001: {
    summary: "Dependency cycle",
    explanation: "Blocks refer to each other in a circle, so none can be made first.",
    next: "Remove one of the references that the message lists, such as a `from` or a `checkpoint`.",
  },
  RL2002: {
    summary: "Saved plan is stale",
    explanation: "A record or an input that the plan was computed from has changed since.",
    next: "Plan again with `rlcli plan -o plan.bin`, review it, and apply that file.",
  },
  RL2003: {
    summary: "Address cannot be planned",
    explanation:
      "An address given to --target or --replace is neither in the spec nor in the state, or one to replace is not among the targets and what they need.",
    next: "Name an address that `rlcli plan` or `rlcli state list` shows, or leave out `--target`.",
  },
  RL2004: {
    summary: "Saved plan cannot be read",
    explanation: "The file is not a plan, is damaged, or was written by a newer rlcli.",
    next: "Make it again with `rlcli plan -o plan.bin`, with the rlcli that applies it.",
  },
  RL2005: {
    summary: "Lock file cannot be read",
    explanation: "`rlcli.lock` is damaged, holds marks of a merge conflict, or was written by a newer rlcli.",
    next: "Take the committed version of `rlcli.lock`, or delete it and run `rlcli lock`, which resolves all names anew.",
  },
  RL2006: {
    summary: "Name is not locked",
    explanation:
      "A moving name (a dataset on a hub) is not in `rlcli.lock`, and --locked (the default where CI is set) forbids to add it.",
    next: "Run `rlcli lock` where you work and commit `rlcli.lock`.",
  },
  RL2007: {
    summary: "Lock file cannot be written",
    explanation:
      "The folder of the spec is read-only or the disk is full, so what a moving name resolved to cannot be kept.",
    next: "Make the folder of `rlcli.lock` writable or make room on its disk; `rlcli lock` writes it again.",
  },
  RL2101: {
    summary: "Starting checkpoint will not be there",
    explanation:
      "A run starts from a step of another run that the other will not reach, or that it has passed without keeping a checkpoint.",
    next: "Start from a step that is kept (`from: warmup@40`, see `rlcli checkpoint list`), or train the other run again with `--replace`.",
  },
  RL2103: {
    summary: "Deployment is held",
    severity: "warning",
    explanation:
      "An eval that the deployment requires has not passed for exactly the checkpoint it is to point at, or somebody rolled it back. It stays where it is; with `on_fail: error` the apply fails for it.",
    next: "See why with `rlcli deployment list`; train further, change the thresholds under `metrics`, or point `checkpoint` elsewhere.",
  },
  RL2104: {
    summary: "Eval measures another checkpoint",
    explanation:
      "A deployment requires an eval of another checkpoint than the one it points at, which would say nothing about it.",
    next: "Name the same `checkpoint` in the eval and in the deployment.",
  },
  RL3001: {
    summary: "State record is damaged",
    explanation:
      "A file under .rlcli/state does not hold the record it should. The message names the file and the newest earlier version that still reads.",
    next: "Remove the damaged file: the newest version before it that still reads is used then. `rlcli plan` shows what that changes.",
  },
  RL3002: {
    summary: "State record was changed by someone else",
    explanation: "Another rlcli wrote this record since it was read. Nothing was overwritten.",
    next: "Look at what it is now with `rlcli plan`, and apply again.",
  },
  RL3003: {
    summary: "Address is in use",
    explanation:
      "Another process holds the lease of this address and is working on it. A dead owner's lease is taken over by itself.",
    next: "Wait for it (`rlcli status`), or stop a run with `rlcli stop NAME`.",
  },
  RL3004: {
    summary: "State cannot be written",
    explanation:
      "The state folder is read-only or the disk is full. What should have been stored was written to a recovery file.",
    next: "Make room, or the folder writable, then put the record back with `rlcli state push FILE`, as the message names it.",
  },
  RL3005: {
    summary: "Lease was lost",
    explanation:
      "This process stopped renewing its lease (asleep, stopped, or cut off) and another took over. Its writes are refused so that nothing is overwritten.",
    next: "See who works on it with `rlcli status`, and apply again when that is over.",
  },
  RL3006: {
    summary: "State was written by a newer rlcli",
    explanation: "The record's formatVersion is above what this rlcli reads.",
    next: "Install the rlcli that wrote it, or a newer one (`npm install -g rlcli`).",
  },
  RL3008: {
    summary: "State cannot be read",
    explanation: "The state folder exists but cannot be listed or read.",
    next: "Check the permissions of `.rlcli/state`, and that nothing else stands in its place.",
  },
  RL3007: {
    summary: "Run record is damaged",
    explanation:
      "A line of a run's journal or checkpoint list does not parse and is not the torn last line that a crash may leave.",
    next: "Restore the file that the message names from a backup, or begin the run anew with `rlcli apply --replace run.NAME`.",
  },
  RL4001: {
    summary: "Worker process could not be started",
    explanation: "The system refused to start the process that works on a run.",
    next: "Check the limits on processes and memory (`ulimit -u`), then apply again.",
  },
  RL4002: {
    summary: "Starting checkpoint is not kept",
    explanation: "A run starts from a place on another run where no checkpoint is kept.",
    next: "Start from the other run's final step (`from: NAME`), or keep one there with `save_every` and `keep_last`.",
  },
  RL4003: {
    summary: "Worker ended without a word",
    explanation: "The run's worker process was killed or ran out of memory. Nothing that was saved is lost.",
    next: "Apply again with `rlcli apply`, which resumes; if memory ran out, lower `batch_size` or `max_length` first.",
  },
  RL4004: {
    summary: "Internal error in a worker",
    explanation: "An error of rlcli itself; the run's log.txt holds the details. What was saved is kept.",
    next: "Apply again with `rlcli apply`, which resumes, and send what `rlcli support` writes with a report.",
  },
  RL5010: {
    summary: "Model is not on this machine",
    explanation: "The tokenizer (and for the embedded server the weights) of a model are needed locally.",
    next: "Download the model and write its folder into `model`.",
  },
  RL5011: {
    summary: "Server is not rlcli's to start",
    explanation: "An external server is run by somebody else: rlcli uses it and does not start or stop it.",
    next: "Start and stop it where it runs, or give the server another `backend` for rlcli to run one.",
  },
  RL5013: {
    summary: "Server did not answer a request",
    explanation:
      "The server refused a request of the command, its work failed, or it cannot be reached. The message names the endpoint and repeats the server's words: a prompt that is too long, a checkpoint that it does not have, a value it does not take.",
    next: "Change what the server's words name; `rlcli serve status` and `rlcli doctor` tell whether it is well.",
  },
  RL5012: {
    summary: "Secret is not set",
    explanation: "A ${secret.NAME} is read from the environment variable NAME, which is missing or empty.",
    next: "Set the variable before the command: `export NAME=…`.",
  },
  RL5014: {
    summary: "Checkpoint cannot be reached",
    explanation:
      "A checkpoint is to be deleted or brought to another server, and it is not where the record says, or the server that holds it is not in the spec.",
    next: "Put the server back under `servers:`; where a checkpoint is gone, see with `rlcli plan` what that means.",
  },
  RL5015: {
    summary: "Prompt leaves no room for an answer",
    explanation: "The conversation as the model's template writes it takes all of the model's context.",
    next: "Shorten the conversation or `--max-tokens`; in a chat, `/clear` forgets what was said.",
  },
  RL6010: {
    summary: "Imported rows are gone",
    explanation:
      "The rows of an earlier state of a dataset are needed (on_data_change: ignore) but were removed from .rlcli/datasets.",
    next: "Restore `.rlcli/datasets`, or set `on_data_change` to `continue` or `replace`.",
  },
  RL6001: {
    summary: "Dataset file cannot be read",
    explanation: "A file that a dataset names is missing, or may not be read.",
    next: "Correct the path in `source` or `from`, which is relative to the spec, and check that you may read the file.",
  },
  RL6002: {
    summary: "No file matches a dataset's pattern",
    explanation: "A glob under `from` matched no file.",
    next: "Correct the pattern in `from`: it is relative to the spec, `*` does not cross folders, `**` does, and files that begin with a dot must be named.",
  },
  RL6003: {
    summary: "Unknown import format",
    explanation: "The format is not one that rlcli reads.",
    next: "Write one that `rlcli explain dataset.import.format` lists, or `format: auto` to let it look.",
  },
  RL6004: {
    summary: "Dataset has no usable row",
    explanation:
      "Every line was damaged or left out by a rule (fewest messages, must end with an assistant turn), so there is nothing to train on. The message counts the reasons with file and line, and shows what a line should look like.",
    next: "Correct the lines as the message shows, or ask for less (`min_messages`, `format`).",
  },
  RL6005: {
    summary: "Dataset lines were left out",
    severity: "warning",
    explanation:
      "Some lines are not what the format says and gave no row. The others were imported. The message shows where they are and what a line should look like.",
    next: "Correct the lines that the message names, or leave them out; `rlcli import LOGS --dropped FILE` keeps every line left out.",
  },
  RL6006: {
    summary: "Imported dataset cannot be written",
    explanation:
      "The folder for imported datasets is read-only or the disk is full. Nothing half-written is left behind.",
    next: "Make room, or `.rlcli/datasets` writable, then apply again with `rlcli apply`.",
  },
  RL6007: {
    summary: "Dataset changed since the plan",
    explanation:
      "A file of the dataset is not what it was when the plan was made, so importing it would give other rows than were planned.",
    next: "Plan again with `rlcli plan`.",
  },
  RL6011: {
    summary: "Redaction pattern cannot be used",
    explanation:
      "A pattern given for redaction is not a regular expression, or it also matches nothing and so would match everywhere.",
    next: "Correct the pattern under `redact` (`--redact` of an import); a regular expression of JavaScript is meant.",
  },
  RL6012: {
    summary: "Redaction left something behind",
    explanation:
      "After redaction a second pass still found what looks like personal data or a secret, for instance in the name of a field. The import ends without a result, because rows that leak are worse than none.",
    next: "Leave such lines out with a condition (`where`), or add a pattern to `redact` that finds it.",
  },
  RL6013: {
    summary: "Import condition cannot be read",
    explanation: "A condition on log lines cannot be taken apart into a name, an operator and a value.",
    next: "Write NAME OPERATOR VALUE, as in `metadata.env=prod`, with one of = != > >= < <= ~.",
  },
  RL6014: {
    summary: "Too many damaged lines",
    explanation:
      "More lines are damaged than the import was told to bear (`--strict` bears none, `--max-errors N` at most N). Nothing is written to a file.",
    next: "Mend or remove the lines that the message shows, or bear more with `--max-errors N`.",
  },
  RL6015: {
    summary: "Import options contradict each other",
    explanation: "Two options of an import ask for what cannot both be done, or one does nothing without another.",
    next: "Leave out one of the options that the message names; `rlcli import --help` says what goes together.",
  },
  RL6016: {
    summary: "Table cannot be read",
    explanation:
      "A CSV or Parquet file is damaged or holds what rows cannot: a quote that does not close, text that is not UTF-8, two columns of one name, a column of bytes. What follows the fault cannot be trusted, so nothing of the file is taken.",
    next: "Mend the file at the place that the message names, or convert it to JSONL and name that in `source`.",
  },
  RL6020: {
    summary: "Hub cannot be reached",
    explanation:
      "The hub that a `hf://` name is looked up at did not answer in time, answered with an error, or must not be asked (HF_HUB_OFFLINE), and what is needed is neither in rlcli.lock nor in the cache.",
    next: "Check the connection and `HF_ENDPOINT`, unset `HF_HUB_OFFLINE`, or try again later.",
  },
  RL6021: {
    summary: "Hub refuses access",
    explanation: "The dataset is private or given only to those who accepted its terms.",
    next: "Accept the terms on the hub, and give a token of that account in the environment variable `HF_TOKEN`.",
  },
  RL6022: {
    summary: "Hub has no such dataset",
    explanation: "The name, revision, configuration or split of a `hf://` source does not exist, or several would fit.",
    next: "Write one of the names that the message lists into `source`, as `hf://owner/name/config/split`.",
  },
  RL6023: {
    summary: "Download is not what was announced",
    explanation:
      "A downloaded file has another size or digest than the hub, the server or rlcli.lock says. It was thrown away.",
    next: "Try again with `rlcli apply`; if it happens again, the mirror in `HF_ENDPOINT` or a proxy in between changes files.",
  },
  RL6024: {
    summary: "Hub did not answer",
    severity: "warning",
    explanation:
      "A `hf://` name is not in rlcli.lock and the hub did not answer, so what it stood for when it was last asked is taken from the cache.",
    next: "Run `rlcli lock --upgrade` later to move the name.",
  },
  RL6030: {
    summary: "Address cannot be read",
    explanation:
      "The server at an address that a dataset or an import names did not answer in time, broke off again and again, or answered with an error or with something that cannot be read. What an earlier download got is kept and taken up.",
    next: "Check the address, the connection and, for `s3://`, `AWS_ENDPOINT_URL`; then run the command again.",
  },
  RL6031: {
    summary: "Address is not open",
    explanation:
      "The server refuses to give the file. Web addresses are asked without credentials; `s3://` with those in the environment, or without any.",
    next: "Set `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, for a temporary key, `AWS_SESSION_TOKEN` for `s3://`; for the web, use an address that is open.",
  },
  RL6032: {
    summary: "Nothing is at an address",
    explanation: "The file, the bucket or a key that matches does not exist, or the address is none.",
    next: "Correct the address: `https://HOST/PATH`, or `s3://BUCKET/KEY`, where the key may hold `*` or end with `/`.",
  },
  RL6033: {
    summary: "Content at an address changed",
    explanation:
      "A file is another one than rlcli.lock says, or became another one while it was read: by its length, its ETag or the time of its last change, or by what had been read of it. Nothing is put together from two contents.",
    next: "Run the command again; where the file is locked, move the lock with `rlcli lock --upgrade` and look at the plan.",
  },
  RL6034: {
    summary: "Settings of S3 cannot be used",
    explanation:
      "An environment variable that says how S3 is asked is none that can be used, or one of a pair is missing.",
    next: "Set `AWS_ACCESS_KEY_ID` with `AWS_SECRET_ACCESS_KEY`, or neither; `AWS_ENDPOINT_URL` is an address such as http://127.0.0.1:9000.",
  },
  RL6101: {
    summary: "Tokenizer cannot be used",
    explanation:
      "The model folder has no readable tokenizer.json and tokenizer_config.json, or they describe a kind of tokenizer that is not supported.",
    next: "Name a complete Hugging Face model folder in `model`.",
  },
  RL6102: {
    summary: "Chat template cannot be used",
    explanation:
      "The model has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json), or it does not parse. Base models often have none.",
    next: "Use the chat version of the model, or add a `chat_template.jinja` to its folder.",
  },
  RL6103: {
    summary: "Chat template refuses a conversation",
    explanation:
      "The template raised an error for these messages, for instance because roles do not alternate or a role is unknown to it. The message carries the template's words.",
    next: "Change the messages as the template's words say (roles that alternate, a first user message); `rlcli render` shows how a conversation is written.",
  },
  RL5001: {
    summary: "Model cannot run on the embedded server",
    explanation:
      "The embedded server runs unquantised Qwen3 and Llama decoder models with full attention. The message names the setting it does not know.",
    next: "Choose another `model`, or train it on a server whose `backend` is jax, fsdp or megatron.",
  },
  RL5002: {
    summary: "Model folder is damaged or incomplete",
    explanation:
      "A file of the Hugging Face folder is missing, does not parse, or holds tensors of another shape than config.json says.",
    next: "Download or export the model again, into the folder that `model` names.",
  },
  RL5003: {
    summary: "Server did not start",
    explanation: "The server's process ended, or was not ready in time. The message quotes the last lines of its log.",
    next: "Read its log with `rlcli serve logs`, and what the machine lacks with `rlcli doctor`.",
  },
  RL5004: {
    summary: "Port is in use",
    explanation: "Another program listens on the port that the server was told to use.",
    next: "Choose another `port`, or leave it out to take a free one.",
  },
  RL5005: {
    summary: "Server is in use",
    explanation: "Other live processes use this server, so it was not stopped.",
    next: "Wait for them, stop them with `rlcli stop NAME`, or force it with `--force`; forced, their runs pause and can be resumed.",
  },
  RL5006: {
    summary: "Server did not stop",
    explanation: "The server still finishes a request. A forced stop kills the process.",
    next: "Wait longer, or force it with `rlcli serve stop --force`: what was not saved is repeated by resume.",
  },
  RL5007: {
    summary: "Server folder cannot be used",
    explanation:
      "The folder of the server's files cannot be written (permissions, a full disk), or a file in it is damaged.",
    next: "Make `.rlcli/servers` writable, make room on its disk, or remove the damaged file that the message names.",
  },
  RL5008: {
    summary: "Server runs with other settings",
    explanation: "A server already runs for this address with another model or port.",
    next: "Stop it first with `rlcli serve stop`; then it starts with the new settings.",
  },
  RL5020: {
    summary: "Server's settings do not fit together",
    explanation:
      "A combination that cannot work (tensor parallelism that does not divide the GPUs, several nodes without a Ray cluster) or a setting that the backend would take and not use. The message says what to change.",
    next: "Change the field of the server that the message names, such as `tensor_parallel`, `gpus` or `nodes`.",
  },
  RL5021: {
    summary: "uv was not found",
    explanation: "SkyRL servers run in a Python environment that rlcli makes with uv.",
    next: "Install uv, put it on `PATH`, or name it with `RLCLI_UV`.",
  },
  RL5022: {
    summary: "Python environment could not be made",
    explanation: "uv failed to install SkyRL; the message ends with its last words.",
    next: "Apply again, which takes the installation up where it was, or run `rlcli serve install`. Sites without a network set `python` of the server.",
  },
  RL5023: {
    summary: "SkyRL server did not come up",
    explanation:
      "SkyRL's processes ended, or gave no sample, before the server was ready. The message quotes the errors of its log.",
    next: "Read all of its log with `rlcli serve logs`, and what the machine lacks with `rlcli doctor`.",
  },
  RL5024: {
    summary: "SkyRL server crashed",
    explanation:
      "SkyRL's processes ended while the server was in use, too often to be started again. The message quotes the errors of its log.",
    next: "Read all of its log with `rlcli serve logs`, mend what it says, and resume with `rlcli apply`.",
  },
  RL5025: {
    summary: "Remote machine cannot be used",
    explanation:
      "The machine that a server's `host: user@machine` names cannot be reached over ssh without a password, lacks uv, or the Python environment could not be made there. The message quotes what ssh or uv said.",
    next: "Try `ssh -o BatchMode=yes user@machine uv --version` until it answers, then apply again.",
  },
  RL7101: {
    summary: "Task row lacks a field",
    explanation:
      "A grader's option names a field of the task's rows that a row does not have, or that is not text or a number. A plan tells it of rows that are on this machine (as a warning where only some of them lack it); of others the apply does, before anything is sampled.",
    next: "Correct the field's name in the environment (`answer`, `question` …), or add the field to the rows.",
  },
  RL7102: {
    summary: "Grader cannot be started",
    explanation:
      "The program, module, schema or address of a grader is missing or does not do what a grader must. The message says which.",
    next: "Correct `module`, `command`, `url` or `schema` of the environment as the message says.",
  },
  RL7103: {
    summary: "Grader did not answer",
    explanation:
      "A grader's program, server or judge ended, timed out, or answered something that is no grade. The rollout is tried again and then dropped, never counted as 0.",
    next: "Look at the lost answers with `rlcli rollouts NAME --lost`; a larger `timeout` or lower `concurrency` of the grader may be what it needs.",
  },
  RL7104: {
    summary: "Attempt ended without a grade",
    explanation:
      "An environment answered back at the last turn, or an attempt could not begin. The rollout is dropped and counted, never counted as 0.",
    next: "Raise `max_turns`, or have the environment grade sooner.",
  },
  RL7105: {
    summary: "Grader contradicts its tests",
    explanation:
      "An answer under the environment's `tests` did not get the reward that is written there, or a task's own right answer is not graded as right. Training with such a grader would teach something else.",
    next: "Correct the grader's options, or the reward that stands under `tests`.",
  },
  RL7201: {
    summary: "Task is not whole",
    explanation:
      "A task's folder lacks its task.toml, its instruction, its Dockerfile or its tests, or a link in it leads out of it.",
    next: "Add the file that the message names to the task's folder; `rlcli env list TASKS` looks again.",
  },
  RL7202: {
    summary: "task.toml is not valid",
    explanation:
      "The file is no TOML, or a field of it has a value that the format does not allow. The place is where the field is written.",
    next: "Correct the marked field of `task.toml`; `rlcli env list TASKS` looks again.",
  },
  RL7203: {
    summary: "Task needs what is not supported",
    explanation:
      "A task asks for something that this version does not do: several containers, tests in a container of their own before the last step, a network that reaches listed hosts only, Windows, TPUs, skills, MCP servers, a conversation to begin with. Such a task is left out, never run without it.",
    next: "Leave the task out with `exclude`, or change what its `task.toml` asks for.",
  },
  RL7204: {
    summary: "Field of a task has no effect",
    severity: "warning",
    explanation: "A task.toml has a field that the format does not know, or a wish that Docker cannot enforce.",
    next: "Remove the field from `task.toml`, or correct its spelling.",
  },
  RL7205: {
    summary: "Variable of a task is not set",
    explanation:
      "An env table of a task takes a value from the host (`${NAME}` without a default), and the host has no such variable.",
    next: "Set the variable before the command, or give it a default in `task.toml`: `${NAME:-value}`.",
  },
  RL7206: {
    summary: "Tasks cannot be found",
    explanation:
      "A folder, a dataset's name or its version is not there, two tasks have one name, or `include` and `exclude` leave none.",
    next: "Correct `tasks`, `include` or `exclude`; `rlcli env list TASKS` shows what a name stands for.",
  },
  RL7207: {
    summary: "Tasks cannot be fetched",
    explanation:
      "The registry or the git repository of a dataset could not be read. The message has the words of the program or server that failed.",
    next: "Check the connection and `registry`, or name a folder with the tasks in `tasks`.",
  },
  RL7208: {
    summary: "Tasks changed meanwhile",
    explanation: "A task's files are not those that were planned or that rlcli.lock names.",
    next: "Plan again with `rlcli plan`, or move the lock with `rlcli lock --upgrade`.",
  },
  RL7301: {
    summary: "Docker daemon does not answer",
    explanation:
      "Sandboxes are containers of a Docker daemon, which is not running, refuses this user, or is too old. Nothing was sampled.",
    next: "Start the daemon, add your user to its group, or name another with `DOCKER_HOST` or `sandbox.host`; `rlcli doctor` tells whether it answers.",
  },
  RL7302: {
    summary: "Image cannot be built",
    explanation:
      "A task's Dockerfile failed, took longer than its limit, or a prebuilt image is neither here nor to be pulled. The message has the last lines of the build.",
    next: "Correct the task's Dockerfile as the build's last lines say; `rlcli env run TASKS --task NAME` tries one task alone.",
  },
  RL7303: {
    summary: "Sandbox failed",
    explanation:
      "A container could not be started, died, was removed by somebody else, or the daemon failed a request. The rollout is dropped and counted, never counted as 0.",
    next: "Look at what was lost with `rlcli rollouts NAME --lost`; more `sandbox.memory` or fewer at once (`sandbox.concurrency`) may be what it needs.",
  },
  RL7304: {
    summary: "Sandbox is not healthy",
    explanation: "A task's health check failed as often as it may, so the agent was not started.",
    next: "Correct the task's health check, or give it more time in `task.toml`; `rlcli env run TASKS --task NAME` shows it.",
  },
  RL7305: {
    summary: "Tests gave no verdict",
    explanation:
      "A task's tests ran longer than their limit, wrote no reward, or wrote one that is no number. The rollout is dropped and counted, never counted as 0.",
    next: "Correct the task's tests; `rlcli env check` finds such tasks before training.",
  },
  RL7306: {
    summary: "Sandboxes are left behind",
    explanation: "The daemon did not remove a container, image or network of ours.",
    next: "Try again with `rlcli env gc`; `rlcli env gc --dry-run` shows what is there.",
  },
  RL7307: {
    summary: "Task fails its check",
    explanation:
      "A task's own solution does not reach the reward that it must, or doing nothing does. Training on it would teach something else.",
    next: "Correct the task's solution or tests, or leave it out with `exclude`; `rlcli env run TASKS --task NAME --out logs` keeps what the tests said.",
  },
  RL8001: {
    summary: "Nothing to train on",
    explanation:
      "After import, rendering, train_on, max_length and test_size no row is left that trains a token. The message says which of them took the rows.",
    next: "Change the field that the message blames: a larger `max_length`, a smaller `test_size`, another `train_on`.",
  },
  RL8002: {
    summary: "Rows to train on cannot be read",
    explanation: "The imported rows are missing, damaged, or changed while a run was reading them.",
    next: "Apply again with `rlcli apply`, which imports the dataset anew.",
  },
  RL8003: {
    summary: "Some rows are not trained on as they are",
    severity: "warning",
    explanation:
      "Rows that the chat template refuses, that train no token, or that max_length cuts. Training goes on with the others.",
    next: "Raise `max_length`, or correct the rows that the message names; `rlcli render` shows how one is written.",
  },
  RL8004: {
    summary: "Training diverged",
    explanation:
      "A loss or gradient was not a finite number, so the weights after that step are lost. The run stops; checkpoints before it are kept.",
    next: "Lower `learning_rate`, add `schedule.warmup_steps`, or set `optimizer.grad_clip_norm`.",
  },
  RL8005: {
    summary: "Checkpoint to start from is gone",
    explanation:
      "The checkpoint that a run resumes or starts from is not on its server any more: it was deleted, expired, or the server's folder was replaced.",
    next: "Begin a new incarnation with `rlcli apply --replace run.NAME`, or restore the checkpoint.",
  },
  RL8006: {
    summary: "Old checkpoint could not be deleted",
    severity: "warning",
    explanation:
      "Deleting a rolling checkpoint beyond keep_last failed. It is tried again at the next checkpoint; until then it takes space.",
    next: "Make room, or check the server with `rlcli serve status`; `rlcli prune` deletes what nothing needs.",
  },
  RL8007: {
    summary: "Run cannot be resumed exactly",
    explanation:
      "A step that was begun before a crash would be sent with other tokens now, so resuming would not give the weights of an uninterrupted run. Something it depends on changed outside of rlcli's sight.",
    next: "Begin the run anew with `rlcli apply --replace run.NAME`, or put back what was changed (a model folder, a template, imported rows).",
  },
  RL8008: {
    summary: "Server failed a training request",
    explanation:
      "The server refused a request, its work failed, or it did not answer for too long. The message names the endpoint and repeats the server's words. What was trained up to the last checkpoint is kept.",
    next: "Apply again with `rlcli apply`, which resumes; if it happens again, see `rlcli serve logs` and the run's `wire.jsonl`.",
  },
  RL8009: {
    summary: "Run record cannot be written",
    explanation: "The run's folder is read-only or the disk is full.",
    next: "Make room, or the folder writable, and apply again with `rlcli apply`: the run resumes.",
  },
  RL8010: {
    summary: "Loss does not fit the run",
    explanation: "A supervised run needs a loss over given answers; the others need sampled tokens and their rewards.",
    next: "Change `loss` to one that the message lists; `rlcli explain losses` tells what each is for.",
  },
  RL8011: {
    summary: "Server cannot train this run",
    explanation:
      "The server does not have the loss, or takes a setting of the run and does not use it, so the run would be another than the spec says. The message names loss or setting; docs/compatibility.md lists what each kind of server has.",
    next: "Leave the setting out, set `strategy: two_pass` for a loss that the server lacks, or train on another `server`.",
  },
  RL8101: {
    summary: "Too many answers were lost",
    explanation:
      "More of a step's answers than `max_failure_rate` allows were lost to faults of the grader, of sampling or of a sandbox. The message quotes the most frequent one.",
    next: "Mend the fault that the message quotes and apply again with `rlcli apply`: the run resumes. `rlcli rollouts NAME --lost` lists what was lost.",
  },
  RL8102: {
    summary: "Server gave an unusable answer",
    explanation:
      "A sample came back without tokens, or without their log-probabilities. It is asked for again and then dropped.",
    next: "Check the server with `rlcli bench`; a prompt that leaves no room for `max_tokens` may be the cause.",
  },
  RL8103: {
    summary: "Nothing to learn from",
    explanation:
      "For several steps in a row all answers to each task got the same reward, so that there was nothing to compare. The tasks are too hard or too easy for the weights, or the grader does not tell answers apart.",
    next: "Look at the answers with `rlcli rollouts NAME`, then warm up with a supervised run, choose other tasks, or raise `temperature` or `group_size`.",
  },
  RL8104: {
    summary: "Reward collapsed",
    explanation: "The reward fell below `early_stop.collapse` of its best. Checkpoints before that are kept.",
    next: "Lower `learning_rate` or `substeps`, and start from the best checkpoint (`from: NAME@best`).",
  },
  RL9001: {
    summary: "Unknown command",
    explanation: "rlcli has no such command.",
    next: "Choose one of those that `rlcli --help` lists.",
  },
  RL9002: {
    summary: "Unknown option",
    explanation: "The command has no such option.",
    next: "Choose one of those that `rlcli COMMAND --help` lists.",
  },
  RL9003: {
    summary: "Wrong use of the command line",
    explanation: "An argument is missing, is one too many, or has a value that cannot be read.",
    next: "Look at the examples that `rlcli COMMAND --help` shows.",
  },
  RL9004: {
    summary: "File exists already",
    explanation: "The command would overwrite a file of yours, so it wrote nothing.",
    next: "Name another file or folder, or remove the one that is there (`-o` where the command has it).",
  },
  RL9005: {
    summary: "Nothing to explain",
    explanation: "`rlcli explain` knows nothing of that name.",
    next: "Name a block (`run`), a field (`run.learning_rate`), a loss (`gspo`), a metric (`metric reward/mean`) or a diagnostic code (`RL1101`) after `rlcli explain`.",
  },
  RL9006: {
    summary: "Folder cannot be entered",
    explanation: "The folder given with --chdir does not exist or may not be entered.",
    next: "Correct the folder after `--chdir`.",
  },
  RL9007: {
    summary: "Output file cannot be written",
    explanation:
      "The file named on the command line, or the one that standard output goes to, cannot be written: its folder is missing, read-only or full.",
    next: "Name another file after `-o`, or make its folder writable and make room on its disk.",
  },
  RL9008: {
    summary: "Nobody can be asked",
    explanation: "The command wants a yes and there is no terminal to ask on.",
    next: "Add `--auto-approve`, or apply a saved plan: `rlcli plan -o plan.bin`, then `rlcli apply plan.bin`.",
  },
  RL9009: {
    summary: "Not found",
    explanation:
      "The command line names something that is not there: a file, a run, an output, a record. The message says what there is.",
    next: "Correct the name as the message says; `rlcli state list`, `rlcli run list` and `rlcli output` list what there is.",
  },
  RL9022: {
    summary: "Checkpoint is needed",
    explanation: "A run's current weights, or a deployment, stand on the checkpoint that is to be deleted.",
    next: "Let `rlcli prune` delete what nothing needs, or delete it all the same with `--force`; the next plan says what is missing then.",
  },
  RL9023: {
    summary: "Server cannot do this",
    explanation:
      "Servers of the protocol differ in what they offer beyond training and sampling: this one has no such call. docs/compatibility.md tells what each has.",
    next: "Use another server, or do without: `rlcli checkpoint list` and `rlcli run list` without `--server` show what this project itself knows.",
  },
  RL9024: {
    summary: "Upload to the hub failed",
    explanation:
      "The hub did not take what `rlcli checkpoint push-hf` sent: no token, one that may not write, another's repository, or no connection.",
    next: "Set `HF_TOKEN` to a token that may write, check `HF_ENDPOINT`, and name a repository of yours with `--repo`. Started anew, it sends only what the hub has not got.",
  },
  RL9021: {
    summary: "Line of a batch cannot be used",
    explanation: "A line of the file given to `rlcli sample --input` holds no question. Nothing was asked.",
    next: "Correct the line: a JSON object with `prompt` (a text) or `messages` (a conversation that ends with what is to be answered), and perhaps `id` and `tools`.",
  },
  RL9010: {
    summary: "File system said no",
    explanation:
      "A file could not be read or written: the disk is full, the folder is read-only or belongs to another user, or a file stands where a folder is needed. The message names the call and the path. What was saved before is kept.",
    next: "Mend what the message names (room on the disk, permissions, a file in the place of a folder) and run the command again; `df -h` and `ls -ld` tell.",
  },
  RL9011: {
    summary: "Optional package is not installed",
    explanation:
      "What the spec asks for needs a package that rlcli does not bring to everyone, or that was left out by `npm install --omit=optional`. Nothing was started.",
    next: "Install it with the `npm install` command that the message ends with, and run the command again.",
  },
});

export type DiagnosticCode = keyof typeof CODES;
