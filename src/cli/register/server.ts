/** Commands about what a server keeps: checkpoint, session. */
import type { Command } from "commander";
import type { DownloadFlags } from "../commands/checkpoint-download.ts";
import type { DeleteFlags, TtlFlags } from "../commands/checkpoint-server.ts";
import type { PushFlags } from "../commands/push-hf.ts";
import type { TraceFlags } from "../commands/session.ts";
import { bindSpecOptions } from "../options.ts";
import type { Register, Run } from "../register.ts";
import type { RemoteFlags } from "../remote.ts";

/** Which server is asked, and how little is printed. */
export function bindRemoteOptions(command: Command): Command {
  return bindSpecOptions(command)
    .option("--base-url <url>", "a running Tinker server instead of the spec's")
    .option("--server <name>", "ask this server of the spec")
    .option("--model <model>", "with --base-url: its model; alone: the server that was started for it")
    .option("-q, --quiet", "only ids, a line each, for pipes");
}

const CHECKPOINT = "tinker://… as `checkpoint list` prints it, agent, agent@40 or deployment.production";

const registerCheckpoint: Register = (program, run) => {
  const command = program
    .command("checkpoint")
    .summary("list, download, publish and delete checkpoints")
    .description("Lists, downloads, publishes and deletes checkpoints.");
  bindRemoteOptions(command.command("list"))
    .summary("list the checkpoints that are kept")
    .description("Lists what is kept of this project's runs; with --base-url or --server, all that the server keeps.")
    .argument("[run]", "only of this run")
    .action((name: string | undefined, flags: RemoteFlags) =>
      run(async (context) => (await import("../commands/checkpoint.ts")).checkpointList(context, name, flags)),
    );
  bindRemoteOptions(command.command("info"))
    .summary("size, model and expiry of a checkpoint")
    .argument("<checkpoint>", CHECKPOINT)
    .action((name: string, flags: RemoteFlags) =>
      run(async (context) => (await import("../commands/checkpoint-server.ts")).checkpointInfo(context, name, flags)),
    );
  bindRemoteOptions(command.command("download"))
    .summary("download its files into a folder")
    .argument("<checkpoint>", CHECKPOINT)
    .option("-o, --output <path>", "folder to make (default: named after the checkpoint)")
    .option("--training", "the training state instead of the weights to sample")
    .option("--archive", "the archive as the server packs it, not unpacked")
    .action((name: string, flags: DownloadFlags) =>
      run(async (context) =>
        (await import("../commands/checkpoint-download.ts")).checkpointDownload(context, name, flags),
      ),
    );
  bindRemoteOptions(command.command("delete"))
    .summary("delete checkpoints, after asking")
    .argument("<checkpoint...>", CHECKPOINT)
    .option("-y, --auto-approve", "do not ask")
    .option("--force", "also what a run or a deployment stands on")
    .action((names: readonly string[], flags: DeleteFlags) =>
      run(async (context) =>
        (await import("../commands/checkpoint-server.ts")).checkpointDelete(context, names, flags),
      ),
    );
  registerPush(command, run);
  bindRemoteOptions(command.command("publish"))
    .summary("let others read a checkpoint")
    .argument("<checkpoint>", CHECKPOINT)
    .action((name: string, flags: RemoteFlags) =>
      run(async (context) =>
        (await import("../commands/checkpoint-server.ts")).checkpointPublish(context, name, flags),
      ),
    );
  bindRemoteOptions(command.command("unpublish"))
    .summary("take that back")
    .argument("<checkpoint>", CHECKPOINT)
    .action((name: string, flags: RemoteFlags) =>
      run(async (context) =>
        (await import("../commands/checkpoint-server.ts")).checkpointUnpublish(context, name, flags),
      ),
    );
  bindRemoteOptions(command.command("set-ttl"))
    .summary("have a checkpoint deleted by itself, or kept")
    .argument("<checkpoint>", CHECKPOINT)
    .option("--ttl <duration>", "from now, such as 7d")
    .option("--never", "keep it for good")
    .action((name: string, flags: TtlFlags) =>
      run(async (context) => (await import("../commands/checkpoint-server.ts")).checkpointSetTtl(context, name, flags)),
    );
};

function registerPush(command: Command, run: Run): void {
  bindRemoteOptions(command.command("push-hf"))
    .summary("upload weights to the Hugging Face hub, with their card")
    .description(
      "Uploads the files of a checkpoint, or of a run's step, to a model repository: an adapter as PEFT has it, or the whole model. The card tells base model, method, steps, the data's digest and results of evals; no data. The token is read from HF_TOKEN, the hub from HF_ENDPOINT.",
    )
    .argument("<checkpoint>", CHECKPOINT)
    .requiredOption("-r, --repo <org/name>", "repository, made where there is none")
    .option("--public", "a repository that is made may be read by all (default: private)")
    .option("--revision <branch>", "branch to commit to", "main")
    .option("--message <text>", "of the commit")
    .option("--create-pr", "open a pull request instead")
    .option("--no-card", "leave the README.md of the repository as it is")
    .action((name: string, flags: PushFlags) =>
      run(async (context) => (await import("../commands/push-hf.ts")).pushHf(context, name, flags)),
    );
}

const registerSession: Register = (program, run) => {
  const command = program
    .command("session")
    .summary("list a server's sessions, export timelines")
    .description("Looks at the sessions of a server.");
  bindRemoteOptions(command.command("list"))
    .summary("list the sessions that a server knows")
    .action((flags: RemoteFlags) =>
      run(async (context) => (await import("../commands/session.ts")).sessionList(context, flags)),
    );
  bindRemoteOptions(command.command("export-trace"))
    .summary("write a timeline that Perfetto opens")
    .description(
      "Writes the timeline of a run (its phases, steps, saves and metrics, from its record) or of a server's session (its requests, from the server) to a file for https://ui.perfetto.dev.",
    )
    .argument("<session>", "a session's id, or the name of a run")
    .option("-o, --output <file>", "where to (default: named after it)")
    .action((name: string, flags: TraceFlags) =>
      run(async (context) => (await import("../commands/session.ts")).sessionExportTrace(context, name, flags)),
    );
};

export const SERVER_COMMANDS: readonly Register[] = [registerCheckpoint, registerSession];
