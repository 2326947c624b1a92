/**
 * The one table of diagnostic codes. Families: RL1 spec, RL2 plan, RL3 state, RL4 apply, RL5 servers and protocol,
 * RL6 datasets, RL7 environments, RL8 training, RL9 command line. A code is never reused for another meaning.
 */
import type { Severity } from "./diagnostic.ts";

interface CodeInfo {
  /** Short, the same for every instance, no user names, no full stop. */
  readonly summary: string;
  /** For `rlcli explain CODE`: when it appears and what mends it. */
  readonly explanation: string;
  readonly severity?: Severity;
}

const table = <K extends string>(codes: Record<K, CodeInfo>): Readonly<Record<K, CodeInfo>> => codes;

export const CODES = table({
  RL1001: {
    summary: "File cannot be read",
    explanation:
      "The spec, or a file it names, is missing, is a folder, or may not be read. Check the path and its permissions.",
  },
  RL2001: {
    summary: "Dependency cycle",
    explanation:
      "Blocks refer to each other in a circle, so none can be made first. Remove one of the references that the message lists.",
  },
  RL2002: {
    summary: "Saved plan is stale",
    explanation:
      "A record or an input that the plan was computed from has changed since. Plan again and review the new plan.",
  },
  RL2003: {
    summary: "Unknown address",
    explanation: "An address given to --target or --replace is neither in the spec nor in the state.",
  },
  RL2004: {
    summary: "Saved plan cannot be read",
    explanation:
      "The file is not a plan, is damaged, or was written by a newer rlcli. Make it again with `rlcli plan -o`.",
  },
  RL2101: {
    summary: "Checkpoint does not fit the model",
    explanation:
      "A run starts from another run's weights, but the two have different base models. Give both the same model.",
  },
  RL3001: {
    summary: "State record is damaged",
    explanation:
      "A file under .rlcli/state does not hold the record it should. The message names the file and the newest earlier version that still reads.",
  },
  RL3002: {
    summary: "State record was changed by someone else",
    explanation: "Another rlcli wrote this record since it was read. Nothing was overwritten; plan again.",
  },
  RL3003: {
    summary: "Address is in use",
    explanation:
      "Another process holds the lease of this address and is working on it. Wait for it, or stop it; a dead owner's lease is taken over by itself.",
  },
  RL3004: {
    summary: "State cannot be written",
    explanation:
      "The state folder is read-only or the disk is full. What should have been stored was written to a recovery file; the message says how to put it back.",
  },
  RL3005: {
    summary: "Lease was lost",
    explanation:
      "This process stopped renewing its lease (asleep, stopped, or cut off) and another took over. Its writes are refused so that nothing is overwritten.",
  },
  RL3006: {
    summary: "State was written by a newer rlcli",
    explanation: "The record's formatVersion is above what this rlcli reads. Use the newer rlcli.",
  },
  RL3008: {
    summary: "State cannot be read",
    explanation:
      "The state folder exists but cannot be listed or read. Check its permissions, and that nothing else stands in its place.",
  },
  RL3007: {
    summary: "Run record is damaged",
    explanation:
      "A line of a run's journal or checkpoint list does not parse and is not the torn last line that a crash may leave.",
  },
  RL4001: {
    summary: "Worker process could not be started",
    explanation: "The system refused a new process. Check limits on processes and memory.",
  },
  RL4002: {
    summary: "Starting checkpoint is not kept",
    explanation:
      "A run starts from a place on another run where no checkpoint is kept. Start from its final step, or keep one there with save_every and keep_last.",
  },
  RL4003: {
    summary: "Worker ended without a word",
    explanation:
      "The run's worker process was killed or ran out of memory. Nothing that was saved is lost: apply again to resume.",
  },
  RL4004: {
    summary: "Internal error in a worker",
    explanation:
      "An error of rlcli itself; the run's log.txt holds the details. What was saved is kept, and apply resumes from it.",
  },
  RL5010: {
    summary: "Model is not on this machine",
    explanation:
      "The tokenizer (and for the embedded server the weights) of a model are needed locally. Download the model and name its folder.",
  },
  RL5011: {
    summary: "Backend cannot be started by this version",
    explanation:
      "The schema knows jax, fsdp and megatron, but this version only starts embedded servers and connects to external ones.",
  },
  RL5012: {
    summary: "Secret is not set",
    explanation: "A ${secret.NAME} is read from the environment variable NAME, which is missing or empty.",
  },
  RL6010: {
    summary: "Imported rows are gone",
    explanation:
      "The rows of an earlier state of a dataset are needed (on_data_change: ignore) but were removed from .rlcli/datasets.",
  },
  RL8101: {
    summary: "Loss does not fit the run",
    explanation: "A supervised run has no sampling policy to compare with, so only cross_entropy makes sense for it.",
  },
  RL6001: {
    summary: "Dataset file cannot be read",
    explanation:
      "A file that a dataset names is missing, is a folder, or may not be read. Check the path, which is relative to the spec, and its permissions.",
  },
  RL6002: {
    summary: "No file matches a dataset's pattern",
    explanation:
      "A glob under `from` matched no file. Patterns are relative to the spec; `*` does not cross folders, `**` does, and files that begin with a dot must be named.",
  },
  RL6003: {
    summary: "Unknown import format",
    explanation: "The format is not one that rlcli reads. Use `auto` to let it look.",
  },
  RL6004: {
    summary: "Dataset has no usable row",
    explanation:
      "Every line was damaged or left out by a rule (fewest messages, must end with an assistant turn), so there is nothing to train on. The message counts the reasons with file and line, and shows what a line should look like.",
  },
  RL6005: {
    summary: "Dataset lines were left out",
    severity: "warning",
    explanation:
      "Some lines are not what the format says and gave no row. The others were imported. The message shows where they are and what a line should look like.",
  },
  RL6006: {
    summary: "Imported dataset cannot be written",
    explanation:
      "The folder for imported datasets is read-only or the disk is full. Nothing half-written is left behind.",
  },
  RL6007: {
    summary: "Dataset changed since the plan",
    explanation:
      "A file of the dataset is not what it was when the plan was made, so importing it would give other rows than were planned. Plan again.",
  },
  RL6101: {
    summary: "Tokenizer cannot be used",
    explanation:
      "The model folder has no readable tokenizer.json and tokenizer_config.json, or they describe a kind of tokenizer that is not supported. Point to a complete Hugging Face model folder.",
  },
  RL6102: {
    summary: "Chat template cannot be used",
    explanation:
      "The model has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json), or it does not parse. Base models often have none; use the chat version of the model or add a chat_template.jinja to its folder.",
  },
  RL6103: {
    summary: "Chat template refuses a conversation",
    explanation:
      "The template raised an error for these messages, for instance because roles do not alternate or a role is unknown to it. The message carries the template's words.",
  },
  RL5001: {
    summary: "Model cannot run on the embedded server",
    explanation:
      "The embedded server runs unquantised Qwen3 and Llama decoder models with full attention. The message names the setting it does not know. Choose another model, or train it on a jax, fsdp or megatron server.",
  },
  RL5002: {
    summary: "Model folder is damaged or incomplete",
    explanation:
      "A file of the Hugging Face folder is missing, does not parse, or holds tensors of another shape than config.json says. Download or export the model again.",
  },
  RL5003: {
    summary: "Embedded server did not start",
    explanation: "The server's process ended, or was not ready in time. The message quotes the last lines of its log.",
  },
  RL5004: {
    summary: "Port is in use",
    explanation:
      "Another program listens on the port that the server was told to use. Choose another port, or leave it out to take a free one.",
  },
  RL5005: {
    summary: "Server is in use",
    explanation:
      "Other live processes use this server, so it was not stopped. Wait for them, stop them, or force it; forced, their runs pause and can be resumed.",
  },
  RL5006: {
    summary: "Server did not stop",
    explanation:
      "The server still finishes a request. Wait longer, or force it: a forced stop kills the process, and what was not saved is repeated by resume.",
  },
  RL5007: {
    summary: "Server folder cannot be used",
    explanation:
      "The folder of the server's files cannot be written (permissions, a full disk), or a file in it is damaged.",
  },
  RL5008: {
    summary: "Server runs with other settings",
    explanation:
      "A server already runs for this address with another model or port. Stop it first, then it starts with the new settings.",
  },
  RL9001: {
    summary: "Unknown command",
    explanation: "rlcli has no such command; `rlcli --help` lists them.",
  },
  RL9002: {
    summary: "Unknown option",
    explanation: "The command has no such option; `rlcli COMMAND --help` lists them.",
  },
  RL9003: {
    summary: "Wrong use of the command line",
    explanation: "An argument is missing, is one too many, or has a value that cannot be read.",
  },
  RL9004: {
    summary: "File exists already",
    explanation:
      "The command would overwrite a file of yours, so it wrote nothing. Name another folder or remove the file.",
  },
  RL9005: {
    summary: "Nothing to explain",
    explanation:
      "`rlcli explain` takes a block (`run`), a field (`run.learning_rate`) or a diagnostic code (`RL1101`).",
  },
  RL9006: {
    summary: "Folder cannot be entered",
    explanation: "The folder given with --chdir does not exist or may not be entered.",
  },
});

export type DiagnosticCode = keyof typeof CODES;
