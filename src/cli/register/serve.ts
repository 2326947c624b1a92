/** Commands that need a running server: serve, sample. */
import { Option } from "commander";
import type { SampleFlags } from "../commands/sample.ts";
import type { ServeFlags } from "../commands/serve.ts";
import { bindSpecOptions, nonNegative, share, wholeNumber } from "../options.ts";
import type { Register } from "../register.ts";

const registerServe: Register = (program, run) => {
  const serve = program
    .command("serve")
    .summary("start and stop training servers")
    .description("Starts and stops training servers.");
  bindSpecOptions(serve.command("start"))
    .summary("start the spec's server, or one for a model")
    .argument("[server]", "name of the server, where the spec has several")
    .option("--base-model <model>", "without a spec: builtin:tiny or a model folder")
    .option("--backend <backend>", "without a spec: embedded")
    .option("--host <address>", "without a spec: what to listen on; beyond loopback others need its key (serve token)")
    .option("--port <n>", "without a spec: a free one by default", wholeNumber(0))
    .action((server: string | undefined, flags: ServeFlags) =>
      run(async (context) =>
        (await import("../commands/serve.ts")).serveStart(context, { ...flags, ...(server ? { server } : {}) }),
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
    .summary("show whether servers run")
    .option("--base-model <model>", "the server that was started for this model")
    .action((flags: ServeFlags) =>
      run(async (context) => (await import("../commands/serve.ts")).serveStatus(context, flags)),
    );
};

const registerSample: Register = (program, run) => {
  bindSpecOptions(program.command("sample"))
    .summary("ask a run, a checkpoint or a base model")
    .description("Prints an answer to a prompt. The prompt comes from --prompt or standard input.")
    .argument("[run]", "run of the spec, also with a step: agent@40, agent@best")
    .option("--prompt <text>", "what to ask")
    .option("--system <text>", "system message before it")
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
    .option("-n, --num <n>", "answers to give", wholeNumber(1), 1)
    .action((name: string | undefined, flags: SampleFlags) =>
      run(async (context) => (await import("../commands/sample.ts")).sample(context, name, flags)),
    );
};

export const SERVE_COMMANDS: readonly Register[] = [registerSample, registerServe];
