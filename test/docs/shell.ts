/** A shell as a reader has one: a folder, variables that stay between commands, and rlcli on the path. */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const root = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

export class Shell {
  readonly #base = mkdtempSync(join(tmpdir(), "rlcli-docs-"));
  readonly folder = join(this.#base, "work");
  readonly #cwd = join(this.#base, "cwd");
  readonly #env = join(this.#base, "env");

  constructor() {
    const bin = join(this.#base, "bin");
    for (const folder of [this.folder, bin]) mkdirSync(folder);
    symlinkSync(join(root, "bin/rlcli.js"), join(bin, "rlcli"));
    writeFileSync(this.#cwd, this.folder);
    const set = {
      PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`,
      /** The checkout, for comments: a page has no use for it. */
      RLCLI_ROOT: root,
      RLCLI_CACHE: join(tmpdir(), "rlcli-test-cache"),
      NO_COLOR: "1",
      npm_config_update_notifier: "false",
      npm_config_ignore_scripts: "true",
      npm_config_offline: "true",
      npm_config_omit: "optional",
      GIT_CONFIG_GLOBAL: join(this.#base, "gitconfig"),
    };
    writeFileSync(
      join(this.#base, "gitconfig"),
      "[user]\nname = you\nemail = you@localhost\n[init]\ndefaultBranch = main\n",
    );
    const lines = Object.entries(set).map(([name, value]) => `export ${name}=${JSON.stringify(value)}\n`);
    writeFileSync(this.#env, `${lines.join("")}unset CI FORCE_COLOR\n`);
  }

  /** Runs a script; what it prints to both streams, in order. */
  run(script: string): { readonly code: number | null; readonly out: string } {
    const keep = `trap 'code=$?; pwd > ${this.#cwd}; declare -px > ${this.#env}; exit $code' EXIT`;
    const body = `set -eo pipefail\nshopt -s expand_aliases\n. ${this.#env}\ncd "$(cat ${this.#cwd})"\n${keep}\n${script}`;
    const { status, stdout } = spawnSync("bash", ["-c", `exec 2>&1\n${body}`], { encoding: "utf8", input: "" });
    return { code: status, out: stdout };
  }

  write(name: string, text: string): void {
    const path = join(readFileSync(this.#cwd, "utf8").trim(), name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  /** Ends servers and workers that commands have left, and removes everything. */
  close(): void {
    for (const name of existsSync(this.folder) ? readdirSync(this.folder, { recursive: true }).map(String) : []) {
      if (!/\.rlcli\/.*\/(runtime|worker)\.json$/.test(name)) continue;
      try {
        process.kill(JSON.parse(readFileSync(join(this.folder, name), "utf8")).process.pid, "SIGKILL");
      } catch {
        // Not running.
      }
    }
    rmSync(this.#base, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
