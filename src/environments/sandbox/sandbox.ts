/** Sandboxes: closed-off machines in which an agent's commands and a task's tests run. The interface; `docker.ts` implements it. */
import { RlcliError } from "../../diagnostic.ts";
import type { TreeEntry } from "./tree.ts";

export type NetworkPolicy = "public" | "none";

/** What a sandbox is made from and how much of the host it may take. */
export interface SandboxOrder {
  /** Of the sandbox's name and labels. */
  readonly label: string;
  readonly image: string;
  readonly env: Readonly<Record<string, string>>;
  /** Made if it is not there; the image's where absent. */
  readonly workdir?: string;
  /** CPUs, fractions allowed; as many as the host has where absent. */
  readonly cpus?: number;
  readonly memoryBytes: number;
  readonly pids: number;
  readonly gpus?: number;
  /** At the start. Only one that starts as `public` may change later. */
  readonly network: NetworkPolicy;
  readonly security: "compat" | "hardened";
  /** Milliseconds after which it ends by itself, whatever happened to whoever made it. */
  readonly lifetimeMs: number;
  /** Milliseconds that starting may take. */
  readonly startTimeoutMs: number;
}

export interface Command {
  /** For bash: neither a login shell nor an interactive one. */
  readonly command: string;
  /** Of the image where absent. */
  readonly user?: string | undefined;
  /** Over the sandbox's. */
  readonly env?: Readonly<Record<string, string>>;
  /** The sandbox's where absent. */
  readonly cwd?: string | undefined;
  readonly timeoutMs: number;
  /** Bytes kept of each stream: half of them from its beginning, half from its end. */
  readonly keepBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A stream of a command. */
export interface Output {
  /** Its beginning and its end, with a mark in between where bytes were left out. */
  readonly text: string;
  readonly totalBytes: number;
  readonly droppedBytes: number;
}

export interface CommandResult {
  /** 124 where it was killed for its time. */
  readonly exitCode: number;
  readonly hasTimedOut: boolean;
  /** Processes of the sandbox that were killed since the command before, because its memory was used up. */
  readonly memoryKills: number;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly durationMs: number;
}

export interface DownloadLimits {
  readonly bytes: number;
  readonly entries: number;
}

/** A file that came out of a sandbox; links, devices and the like never do. */
export interface DownloadedFile {
  /** Relative to what was asked for; empty where that was a file itself. */
  readonly path: string;
  readonly mode: number;
  readonly bytes: Buffer;
}

/** There is more at a path than was allowed to be read out of a sandbox. */
export class TooMuchError extends RlcliError {}

/** All methods fail with RL7303 where the sandbox or its host is at fault. */
export interface Sandbox {
  /** As its host calls it. */
  readonly name: string;
  /** Processes that were killed because its memory was used up, until its last command ended. */
  readonly memoryKills: number;
  /** Runs a command to its end, or kills it with all that it started. Processes that it leaves running stay alive. */
  run(command: Command): Promise<CommandResult>;
  /** Files owned by root, below a folder that is made if it is not there. */
  upload(entries: readonly TreeEntry[], target: string): Promise<void>;
  /** Undefined where there is nothing at the path. Fails with a `TooMuchError` where it is more than the limits. */
  download(path: string, limits: DownloadLimits): Promise<readonly DownloadedFile[] | undefined>;
  setNetwork(policy: NetworkPolicy): Promise<void>;
  /** Removes it with all that is in it. Again and again is once. With `keep` it is left for a person to look at. */
  close(options?: { readonly keep?: boolean }): Promise<void>;
}

export interface ImageOrder {
  /** Of the image's name. */
  readonly label: string;
  /** Folder with a Dockerfile, absolute. Used where `prebuilt` is absent. */
  readonly context: string;
  readonly prebuilt?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A sandbox that is going to be asked for: one of the two must follow, once. */
export interface ExpectedSandbox {
  /** As `SandboxHost.start` does, at once where it was started ahead. */
  start(signal?: AbortSignal): Promise<Sandbox>;
  /** It will not be asked for after all. */
  cancel(): void;
}

export interface SandboxHost {
  /** Makes an image that is not there yet and gives its name. Fails with RL7302; a failed build is not tried again. */
  image(order: ImageOrder): Promise<string>;
  /** Waits for a free place. */
  start(order: SandboxOrder, signal?: AbortSignal): Promise<Sandbox>;
  /** Starts one ahead when there is room that nobody waits for. Never fails: that is left to its `start`. */
  expect(order: SandboxOrder): ExpectedSandbox;
  /** Removes all that is still there. Fails with RL7306 where something stays. */
  close(): Promise<void>;
}
