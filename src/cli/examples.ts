/** What `--help` and docs/reference/cli.md show of each command: the ways it is mostly used. A test parses every one by the program's own grammar. */

export interface Example {
  /** As it would be typed. */
  readonly line: string;
  /** What it is for: a clause, without a full stop. */
  readonly about: string;
}

const ways = (...pairs: (readonly [line: string, about: string])[]): readonly Example[] =>
  pairs.map(([line, about]) => ({ line, about }));

/** By the words that reach a command. */
const EXAMPLES: Readonly<Record<string, readonly Example[]>> = {
  init: ways(
    ["rlcli init my-project", "ask what to start from, and write it to a folder"],
    ["rlcli init --template sft-from-traces --logs 'traces/*.jsonl'", "learn from logs that are here"],
    ["rlcli init agent --template gsm8k-gspo --base-url http://gpu-box:8000", "on a Tinker server that runs"],
  ),
  validate: ways(
    ["rlcli validate", "all that is wrong with rlcli.yaml, at once"],
    ["rlcli validate -f rlcli.yaml -f prod.yaml --json", "with an overlay, for other programs"],
  ),
  plan: ways(
    ["rlcli plan", "what an apply would do, and why"],
    ["rlcli plan -o plan.bin", "to apply exactly this later: rlcli apply plan.bin"],
    ["rlcli plan --markdown --detailed-exitcode", "in a pipeline: for a comment, 2 where there are changes"],
  ),
  apply: ways(
    ["rlcli apply", "show the plan, ask, and carry it out"],
    ["rlcli apply --smoke", "try everything small first, and keep nothing"],
    ["rlcli apply plan.bin --detach", "what was reviewed, in the background"],
  ),
  destroy: ways(
    ["rlcli destroy", "stop servers and forget runs; weights stay"],
    ["rlcli destroy --target run.agent --weights", "one run with all its checkpoints"],
  ),
  lock: ways(
    ["rlcli lock", "pin new names; commit rlcli.lock with the spec"],
    ["rlcli lock --upgrade dataset.gsm8k", "move one to what it stands for now"],
  ),
  "train sl": ways(
    ["rlcli train sl --dataset chats.jsonl --model builtin:tiny", "a first try, on the embedded server"],
    ["rlcli import logs.jsonl | rlcli train sl --dataset - --model ./qwen3-0.6b", "from logs, on a local model"],
    ["rlcli train sl --dataset chats.jsonl --base-url http://gpu-box:8000 --emit-spec", "the spec it stands for"],
  ),
  "train rl": ways(
    [
      "rlcli train rl --dataset sums.jsonl --env match --model builtin:tiny --max-tokens 8",
      "answers compared with the row's own",
    ],
    [
      "rlcli train rl --dataset gsm8k --loss gspo --base-url http://gpu-box:8000 --steps 25",
      "word problems with GSPO on a server",
    ],
    [
      "rlcli train rl --dataset tasks.jsonl --env module --module grade.mjs --dry-run",
      "a grader of your own: the plan",
    ],
  ),
  "train harbor": ways(
    ["rlcli train harbor --dataset ./tasks --base-url http://gpu-box:8000", "tasks of your own in containers"],
    [
      "rlcli train harbor --dataset terminal-bench@2.0 --base-url http://gpu-box:8000 --include 'git-*' --steps 20",
      "some of a published set",
    ],
  ),
  status: ways(
    ["rlcli status", "servers, runs, evals and deployments as they are now"],
    ["rlcli status --json", "the same for other programs"],
  ),
  logs: ways(
    ["rlcli logs agent -f", "what a run says, until it ends"],
    ["rlcli logs --since 10m", "the last ten minutes of the run at work"],
    ["rlcli logs run.warmup --json", "its events, one JSON object a line"],
  ),
  stop: ways(
    ["rlcli stop agent", "at the end of its step, with a checkpoint"],
    ["rlcli stop --now", "everything at once; the next apply resumes"],
  ),
  show: ways(["rlcli show", "everything that was applied"], ["rlcli show run.agent", "one of them, with results"]),
  output: ways(
    ["rlcli output", "checkpoint paths and final metrics"],
    ["rlcli output run.agent.checkpoint", "one value bare, for a script"],
  ),
  "checkpoint list": ways(
    ["rlcli checkpoint list", "of all runs"],
    ["rlcli checkpoint list agent --json", "of one, for other programs"],
    ["rlcli checkpoint list --base-url http://gpu-box:8000 -q", "paths of all that a server keeps"],
  ),
  prune: ways(
    ["rlcli prune --dry-run", "what would go, and how many bytes"],
    ["rlcli prune --keep-generations 1 --forgotten", "all but the present and the one before"],
  ),
  "state list": ways(["rlcli state list", "every address there is a record of"]),
  "state show": ways(["rlcli state show run.agent", "its record as JSON"]),
  "state taint": ways(["rlcli state taint run.agent", "the next apply trains it anew"]),
  "state untaint": ways(["rlcli state untaint run.agent", "no, it does not"]),
  "state push": ways(["rlcli state push .rlcli/recovery/run.agent.json", "a record that an apply could not store"]),
  eval: ways(
    ["rlcli eval", "the spec's evals, where they are not measured yet"],
    ["rlcli eval --run agent@best --dataset gsm8k --tasks 100", "a run on other tasks"],
    [
      "rlcli eval --model builtin:tiny --dataset sums.jsonl --env match --min-reward 0.3",
      "a base model, with a threshold",
    ],
  ),
  rollouts: ways(
    ["rlcli rollouts agent --worst 5", "the last step's worst answers"],
    ["rlcli rollouts agent --step 12 --task 7", "all answers to one task"],
    ["rlcli rollouts agent --export trajectories", "as ATIF trajectories, a folder each"],
  ),
  regrade: ways(
    ["rlcli regrade agent", "what the grader of now makes of what was sampled"],
    ["rlcli regrade agent --steps 10..20 -o regraded.jsonl", "of these steps, kept as JSONL"],
  ),
  "run list": ways(["rlcli run list", "the runs that were started"]),
  "checkpoint info": ways(["rlcli checkpoint info agent", "where it is, its size, model and expiry"]),
  "checkpoint download": ways(
    ["rlcli checkpoint download agent -o agent-adapter", "the final weights, as PEFT and transformers load them"],
    ["rlcli checkpoint download agent@40 --training", "the training state with its optimizer"],
  ),
  "checkpoint delete": ways(["rlcli checkpoint delete agent@20 agent@40", "say what goes, ask, and delete"]),
  "checkpoint push-hf": ways(
    ["rlcli checkpoint push-hf agent --repo my-org/agent-lora", "the final weights, to a private repository"],
    ["rlcli checkpoint push-hf deployment.production -r my-org/agent --create-pr", "what is deployed, for review"],
  ),
  "checkpoint publish": ways(["rlcli checkpoint publish agent", "on a service with several users"]),
  "checkpoint unpublish": ways(["rlcli checkpoint unpublish agent", "take that back"]),
  "checkpoint set-ttl": ways(
    ["rlcli checkpoint set-ttl agent@40 --ttl 7d", "deleted by itself in a week"],
    ["rlcli checkpoint set-ttl agent --never", "kept for good"],
  ),
  "session list": ways(["rlcli session list --base-url http://gpu-box:8000", "who works there, with their runs"]),
  "session export-trace": ways(
    ["rlcli session export-trace agent", "a run's timeline, for ui.perfetto.dev"],
    ["rlcli session export-trace session_124818a09a4f -o session.json", "a session's requests, as the server saw them"],
  ),
  "run info": ways(["rlcli run info agent", "its settings, progress and checkpoints"]),
  "run finish": ways(["rlcli run finish agent --at 60", "the checkpoint at step 60 is its last; then rlcli apply"]),
  "deployment list": ways(["rlcli deployment list", "where each points, and why one is held"]),
  rollback: ways(
    ["rlcli rollback production", "to where it pointed before"],
    ["rlcli rollback production --to 2", "to a place that rlcli deployment list numbers"],
  ),
  import: ways(
    ["rlcli import logs/ -o rows.jsonl --stats", "a folder of logs, whatever their form"],
    ["rlcli import prod.jsonl -f openai --redact --min-messages 4", "without personal data"],
    [
      "rlcli import 'traces/*.jsonl' --where metadata.env=prod --dropped left-out.jsonl",
      "some lines, and why not the others",
    ],
  ),
  render: ways(
    ["rlcli render warmup --row 1", "what a run is trained on, token by token"],
    ["rlcli render --model ./qwen3-0.6b --messages chat.json --json", "any conversation as ids and weights"],
  ),
  sample: ways(
    ["rlcli sample agent", "a conversation with a run's final weights"],
    [
      "rlcli sample agent@40 agent --prompt 'What is 3+4?' --temperature 0",
      "a kept step and the last one, side by side",
    ],
    ["rlcli sample agent --input questions.jsonl -o answers.jsonl", "many questions, one JSON object a line"],
  ),
  "serve start": ways(
    ["rlcli serve start", "the spec's server"],
    ["rlcli serve start --base-model builtin:tiny", "one without a spec"],
    ["rlcli serve start --base-model Qwen/Qwen3-4B --backend fsdp --gpus 8 --tensor-parallel 2", "on eight GPUs"],
  ),
  "serve install": ways([
    "rlcli serve install --backend jax --base-model Qwen/Qwen3-0.6B",
    "its Python environment, ahead of time",
  ]),
  "serve stop": ways(
    ["rlcli serve stop", "the spec's server, if nothing uses it"],
    ["rlcli serve stop --force", "also in the middle of training, which can be resumed"],
  ),
  "serve token": ways(["rlcli serve token", "TINKER_API_KEY for the official SDKs"]),
  "serve status": ways(["rlcli serve status", "exits with 1 where one does not run"]),
  "serve list": ways(["rlcli serve list", "also those without a spec"]),
  "serve logs": ways(["rlcli serve logs -f", "what the server says, as it says it"]),
  "serve openai": ways(
    ["rlcli serve openai", "the spec's runs and deployments at http://127.0.0.1:8080/v1"],
    ["rlcli serve openai --model builtin:tiny --port 0 --json", "without a spec; the first line tells where"],
    ["rlcli serve openai --host 0.0.0.0 --log", "for other machines, with a key that it prints"],
  ),
  bench: ways(
    ["rlcli bench", "the spec's server, in a minute or so"],
    ["rlcli bench --base-url http://gpu-box:8000 --model Qwen/Qwen3-4B --length 1024", "any server, longer texts"],
  ),
  doctor: ways(["rlcli doctor", "which servers and sandboxes can run here, and what is missing"]),
  "env list": ways(["rlcli env list ./tasks", "tasks by name, with their limits"]),
  "env check": ways(
    ["rlcli env check", "each task's own solution must pass, doing nothing must not"],
    ["rlcli env check terminal-bench@2.0 --include 'git-*'", "some of a published set"],
  ),
  "env run": ways(
    ["rlcli env run ./tasks --task copy-file", "its own solution, and the rewards"],
    ["rlcli env run ./tasks --task copy-file --command 'cp in.txt out.txt'", "commands of yours instead"],
  ),
  "env play": ways(["rlcli env play ./tasks --task copy-file", "do it by hand with the agent's tool"]),
  "env gc": ways(
    ["rlcli env gc --dry-run", "what is left behind on the daemon"],
    ["rlcli env gc --images --older-than 7d", "old images of tasks too"],
  ),
  support: ways(
    ["rlcli support", "a file to attach to an issue: no secrets, no rows"],
    ["rlcli support --run agent -o agent.tar.gz", "of one run"],
  ),
  completion: ways(
    ['eval "$(rlcli completion bash)"', "in ~/.bashrc"],
    ['eval "$(rlcli completion zsh)"', "in ~/.zshrc, after compinit"],
    ["rlcli completion fish > ~/.config/fish/completions/rlcli.fish", "once, for fish"],
  ),
  explain: ways(
    ["rlcli explain run.learning_rate", "a field: what it takes, its default, what a change does"],
    ["rlcli explain gspo", "a loss: formula, options and defaults; a metric too, as kl/k3"],
    ["rlcli explain RL1203", "a diagnostic"],
  ),
};

/** Of a command by its words without `rlcli`: `train sl`. Empty where there are none, which the generator of the reference refuses. */
export const examplesOf = (path: string): readonly Example[] =>
  Object.hasOwn(EXAMPLES, path) ? (EXAMPLES[path] as readonly Example[]) : [];

export const EXAMPLE_PATHS: readonly string[] = Object.keys(EXAMPLES);

/** For the end of a help page. */
export function examplesText(examples: readonly Example[]): string {
  return ["", "Examples:", ...examples.flatMap(({ line, about }) => [`  ${line}`, `      ${about}`])].join("\n");
}
