/** Commands that need a running server: serve, sample. */
import { type Command, Option } from "commander";
import type { BenchFlags } from "../commands/bench.ts";
import type { ServeFlags } from "../commands/serve.ts";
import type { ListFlags, LogsFlags } from "../commands/serve-look.ts";
import type { ServeOpenAiFlags } from "../commands/serve-openai.ts";
import { bindSpecOptions, nonNegative, portNumber, repeat, share, wholeNumber } from "../options.ts";
import { bindServeFlags, duration } from "../predecessor.ts";
import type { Register } from "../register.ts";
import type { SampleFlags } from "../sampling.ts";

/** The fields of a server's block, for a server without a spec. */
function bindServerOptions(command: Command): Command {
  return command
    .option("--base-model <model>", "without a spec: builtin:tiny, a model folder or a hub name")
    .addOption(
      new Option(
        "--backend <backend>",
        "what runs it (default: embedded for builtin models and folders, jax for names of a hub)",
      ).choices(["embedded", "jax", "fsdp", "megatron"]),
    )
    .option("--host <address>", "what to listen on; beyond loopback others need its key (serve token)")
    .option("--port <n>", "8000 by default, a free one for embedded", portNumber)
    .option("--gpus <n>", "GPUs on each node; 0 is the CPU (jax)", wholeNumber(0))
    .option("--nodes <n>", "machines of a Ray cluster (--ray-address)", wholeNumber(1))
    .option("--tp, --tensor-parallel <n>", "GPUs over which a layer is split", wholeNumber(1))
    .option("--max-model-len <n>", "longest prompt and answer together, in tokens", wholeNumber(0))
    .option("--slots <n>", "models in training at once", wholeNumber(1))
    .option("--max-lora-rank <n>", "room of an adapter (jax)", wholeNumber(1))
    .option("--gpu-memory <share>", "share of a GPU's memory", share)
    .addOption(new Option("--auth <how>", "whether its key is asked for").choices(["token", "none"]))
    .option("--tls-certificate <file>", "speak HTTPS with this certificate")
    .option("--tls-key <file>", "and this private key")
    .option("--idle-timeout <duration>", "stop after this long without use; 0s never", duration)
    .addOption(new Option("--restart <when>", "after a crash").choices(["on_failure", "never"]))
    .option("--ray-address <address>", "Ray cluster to use: HOST:PORT or auto")
    .option("--backend-config <json>", "settings for the backend as they are, over all others");
}

const registerServe: Register = (program, run) => {
  const serve = program
    .command("serve")
    .summary("start and stop training servers")
    .description("Starts and stops training servers.");
  bindServeFlags(bindServerOptions(bindSpecOptions(serve.command("start"))))
    .summary("start the spec's server, or one for a model")
    .argument("[server]", "name of the server, where the spec has several")
    .option("--wait <seconds>", "give up if it does not serve by then (default: no limit but its own)", wholeNumber(1))
    .option("--emit-spec", "print the spec that this command stands for")
    .action((server: string | undefined, flags: ServeFlags) =>
      run(async (context) =>
        (await import("../commands/serve.ts")).serveStart(context, { ...flags, ...(server ? { server } : {}) }),
      ),
    );
  bindServerOptions(bindSpecOptions(serve.command("install")))
    .summary("make the Python environment of a SkyRL server ahead of time")
    .description(
      "Makes the Python environment of a jax, fsdp or megatron server, if there is none, and prints its folder.",
    )
    .argument("[server]", "name of the server, where the spec has several")
    .action((server: string | undefined, flags: ServeFlags) =>
      run(async (context) =>
        (await import("../commands/serve.ts")).serveInstall(context, { ...flags, ...(server ? { server } : {}) }),
      ),
    );
  bindSpecOptions(serve.command("stop"))
    .summary("stop it; checkpoints stay")
    .argument("[server]", "name of the server, where the spec has several")
    .option("--base-model <model>", "the server that was started for this model")
    .option("--force", "also while runs use it; they can be resumed")
    .action((server: string | undefined, flags: ServeFlags) =>
      run(async (context) =>
        (await import("../commands/serve.ts")).serveStop(context, { ...flags, ...(server ? { server } : {}) }),
      ),
    );
  bindSpecOptions(serve.command("token"))
    .summary("print the key of a running server")
    .description("Prints the key that programs send to a running server: TINKER_API_KEY of the official SDKs.")
    .argument("[server]", "name of the server, where the spec has several")
    .option("--base-model <model>", "the server that was started for this model")
    .action((server: string | undefined, flags: ServeFlags) =>
      run(async (context) =>
        (await import("../commands/serve.ts")).serveToken(context, { ...flags, ...(server ? { server } : {}) }),
      ),
    );
  bindSpecOptions(serve.command("status"))
    .summary("show whether servers run, since when and for whom")
    .option("--base-model <model>", "the server that was started for this model")
    .action((flags: ServeFlags) =>
      run(async (context) => (await import("../commands/serve-look.ts")).serveStatus(context, flags)),
    );
  bindSpecOptions(serve.command("list"))
    .summary("show all servers of this folder, and those that run in others")
    .description(
      "Shows the servers of this folder, also those without a spec and those that do not run; then those that you started in other folders, as long as they run. `rlcli -C FOLDER serve stop` stops one of them.",
    )
    .option("--here", "only those of this folder")
    .action((flags: ListFlags) =>
      run(async (context) => (await import("../commands/serve-look.ts")).serveList(context, flags)),
    );
  bindSpecOptions(serve.command("logs"), { hasShort: false })
    .summary("print a server's log")
    .argument("[server]", "name of the server, where the spec has several")
    .option("--base-model <model>", "the server that was started for this model")
    .option("-n, --lines <n>", "lines from the end", wholeNumber(1), 40)
    .option("-f, --follow", "go on with what is added, until interrupted")
    .action((server: string | undefined, flags: LogsFlags) =>
      run(async (context) =>
        (await import("../commands/serve-look.ts")).serveLogs(context, { ...flags, ...(server ? { server } : {}) }),
      ),
    );
  registerOpenAi(serve, run);
};

const registerOpenAi = (serve: Command, run: Parameters<Register>[1]): void => {
  bindSpecOptions(serve.command("openai"))
    .summary("an OpenAI-compatible endpoint over runs, deployments and checkpoints")
    .description(
      "Answers OpenAI's chat completions with the models of the spec, or of --model or --base-url, until it is interrupted. Models go by the names of `rlcli sample`: agent, agent@best, deployment.production, tinker://…; a deployment that moves is followed.",
    )
    .option("--host <address>", "what to listen on; beyond loopback others need a key", "127.0.0.1")
    .option("--port <n>", "0 takes a free one", portNumber, 8080)
    .option(
      "--api-key <key>",
      "what clients must send; better as the variable RLCLI_OPENAI_KEY (default: none on loopback)",
    )
    .option("--tls-certificate <file>", "speak HTTPS with this certificate")
    .option("--tls-key <file>", "and this private key")
    .option("--model <model>", "without a spec: builtin:tiny or a model folder")
    .option("--base-url <url>", "a running Tinker server")
    .option("--checkpoint <path>", "tinker://… to list among the models")
    .option("--server <name>", "only this server of the spec")
    .option("--max-loaded <n>", "weights that stay loaded while nobody asks them", wholeNumber(1), 4)
    .option("--log", "a line on standard error for each request")
    .action((flags: ServeOpenAiFlags) =>
      run(async (context) => (await import("../commands/serve-openai.ts")).serveOpenAi(context, flags)),
    );
};

const registerBench: Register = (program, run) => {
  bindSpecOptions(program.command("bench"))
    .summary("measure how fast a server trains and samples")
    .description(
      "Trains and samples a model of its own on the server for a minute or so, prints medians of tokens a second and latencies, and throws the model away. What else the server does meanwhile slows it, and is slowed.",
    )
    .argument("[server]", "name of the server, where the spec has several")
    .option("--model <model>", "without a spec: builtin:tiny or a model folder; with --base-url a name")
    .option("--base-url <url>", "a running Tinker server")
    .option("--batch-size <n>", "sequences of a training step", wholeNumber(1), 8)
    .option("--length <n>", "tokens of a sequence, and of a prompt", wholeNumber(2), 128)
    .option("--max-tokens <n>", "tokens of an answer", wholeNumber(1), 64)
    .option("--concurrency <n>", "prompts at once", wholeNumber(1), 16)
    .option("--repeat <n>", "measurements of each, of which the median is taken", wholeNumber(1), 3)
    .option("--lora-rank <n>", "adapter rank, 0 for all weights (default: 32; 0 for built-in models)", wholeNumber(0))
    .action((server: string | undefined, flags: BenchFlags) =>
      run(async (context) => (await import("../commands/bench.ts")).bench(context, server, flags)),
    );
};

const registerDoctor: Register = (program, run) => {
  program
    .command("doctor")
    .summary("look at what this machine can run")
    .description(
      "Looks at Python, uv, the CUDA driver, GPUs, memory, disk, ports and Docker, and says what each backend lacks. Starts and downloads nothing.",
    )
    .action(() => run(async (context) => (await import("../commands/doctor.ts")).doctor(context)));
};

const registerSample: Register = (program, run) => {
  bindSpecOptions(program.command("sample"))
    .summary("ask a run, a checkpoint or a base model; without a prompt, chat")
    .description(
      "Prints an answer to a prompt, which comes from --prompt or standard input. On a terminal without one it is a conversation. With --input, answers a file of questions, a JSON line each.",
    )
    .argument(
      "[model...]",
      "run (agent, agent@40, agent@best, agent@last), deployment (deployment.production), tinker://…, base; several are shown side by side",
    )
    .option("--prompt <text>", "what to ask")
    .option("--system <text>", "system message before it")
    .option("--input <file>", "questions as JSONL, `prompt` or `messages` a line, or - for standard input")
    .option("-o, --output <file>", "with --input: where answers go; the same command goes on after an interruption")
    .option("--concurrency <n>", "with --input: questions asked at once", wholeNumber(1), 16)
    .addOption(new Option("--checkpoint <path>", "tinker://… instead of a run").conflicts("base"))
    .option("--base", "the server's base model instead of a run")
    .option("--model <model>", "without a spec: builtin:tiny or a model folder")
    .option("--base-url <url>", "a running Tinker server")
    .option("--server <name>", "server of the spec, where it has several")
    .option("--max-tokens <n>", "longest answer in tokens", wholeNumber(1), 256)
    .option("--temperature <t>", "0 takes the likeliest token each time", nonNegative, 1)
    .option("--top-p <p>", "sample from the likeliest tokens up to this mass", share)
    .option("--top-k <k>", "sample from this many likeliest tokens", wholeNumber(1))
    .option("--seed <n>", "for the same answer again", wholeNumber(0))
    .option("--stop <text>", "text that ends an answer; may be repeated", repeat)
    .option("-n, --num <n>", "answers to give", wholeNumber(1), 1)
    .action((names: readonly string[], flags: SampleFlags) =>
      run(async (context) => (await import("../commands/sample.ts")).sample(context, names, flags)),
    );
};

export const SERVE_COMMANDS: readonly Register[] = [registerSample, registerServe, registerDoctor, registerBench];
