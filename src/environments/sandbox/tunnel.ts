/**
 * A daemon behind ssh: its socket is forwarded to one here, over one connection of the user's own ssh, whose keys, names and jump
 * hosts hold (RLCLI_SSH is another command to use). The connection lives no longer than this process, however that ends: what runs
 * at its other end is a `cat` of our standard input.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { onceEnded } from "../../process.ts";

const START_TIMEOUT_MS = 30_000;
const READY = "rlcli-ready";
const OPTIONS = ["BatchMode=yes", "ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "ServerAliveInterval=15"];

export interface TunnelTarget {
  /** As ssh takes it: `user@name` or `name`. */
  readonly destination: string;
  readonly port?: string;
  /** Of the daemon, there. */
  readonly remoteSocket: string;
}

export class Tunnel {
  readonly socketPath: string;
  readonly #folder: string;
  readonly #target: TunnelTarget;
  readonly #ssh: readonly string[];
  #child: ChildProcess | undefined;
  #opening: Promise<void> | undefined;

  /** `ssh`: a command with its first words. */
  constructor(target: TunnelTarget, ssh: readonly string[]) {
    this.#target = target;
    this.#ssh = ssh;
    this.#folder = mkdtempSync(join(tmpdir(), "rlcli-ssh-"));
    this.socketPath = join(this.#folder, "docker.sock");
  }

  /** Connects, or does so again where the connection was lost. Fails with RL7301. */
  open(): Promise<void> {
    if (this.#child) return Promise.resolve();
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  #connect(): Promise<void> {
    const { destination, port, remoteSocket } = this.#target;
    const [program = "ssh", ...words] = this.#ssh;
    const options = OPTIONS.flatMap((option) => ["-o", option]);
    const forward = ["-L", `${this.socketPath}:${remoteSocket}`];
    const where = [...(port === undefined ? [] : ["-p", port]), "--", destination, `echo ${READY} && cat >/dev/null`];
    const child = spawn(program, [...words, "-T", ...options, ...forward, ...where]);
    return new Promise((resolve, reject) => {
      let said = "";
      const refuse = (why: string): void => {
        clearTimeout(timer);
        child.kill("SIGKILL");
        try {
          fail("RL7301", `${destination} cannot be reached by ssh: ${why}.`);
        } catch (error) {
          reject(error);
        }
      };
      const timer = setTimeout(() => refuse(`no answer within ${START_TIMEOUT_MS / 1000} s`), START_TIMEOUT_MS);
      child.stdin.on("error", () => {});
      child.stderr.on("data", (chunk) => {
        said = (said + chunk).slice(-500);
      });
      child.on("error", (error) => refuse(messageOf(error)));
      child.once("exit", () => {
        if (this.#child === child) this.#child = undefined;
      });
      onceEnded(child, (code) => refuse(said.trim().replace(/\.$/, "") || `exit code ${code}`));
      child.stdout.on("data", (chunk) => {
        if (!String(chunk).includes(READY)) return;
        clearTimeout(timer);
        this.#child = child;
        // It keeps nobody waiting: whoever uses it has requests of their own under way.
        child.unref();
        for (const stream of [child.stdin, child.stdout, child.stderr])
          (stream as unknown as { unref(): void }).unref();
        resolve();
      });
    });
  }

  close(): void {
    this.#child?.kill("SIGKILL");
    this.#child = undefined;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
