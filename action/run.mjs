// What the runner tells an action, and how rlcli is called.
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Of what a command says of its faults: enough for a summary, in which an apply of hours may end. */
const FAULTS_LENGTH = 8000;

/** Told to the user as it is; anything else is a fault of these scripts. */
export class Failure extends Error {}

export function settingsOf(env) {
  const folder = env.RLCLI_ACTION_FOLDER || ".";
  return {
    command: env.RLCLI_ACTION_COMMAND ?? "",
    /** As it is written: several projects of one repository have a comment each. */
    name: folder,
    folder: resolve(env.GITHUB_WORKSPACE || ".", folder),
    arguments: lines(env.RLCLI_ACTION_ARGUMENTS),
    rlcli: words(env.RLCLI_ACTION_RLCLI || "npx --no-install rlcli"),
    token: env.RLCLI_ACTION_TOKEN ?? "",
    api: env.GITHUB_API_URL || "https://api.github.com",
    repository: env.GITHUB_REPOSITORY ?? "",
    ...pullRequestOf(env),
    outputFile: env.GITHUB_OUTPUT,
    summaryFile: env.GITHUB_STEP_SUMMARY,
  };
}

/** An argument a line, so that values may have spaces. `--var a=b` is two. */
function lines(text = "") {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .flatMap((line) => (/^-\S+\s/.test(line) ? [line.split(/\s/, 1)[0], line.replace(/^\S+\s+/, "")] : [line]));
}

const words = (text) => text.split(/\s+/).filter((word) => word !== "");

/** Its number and its last commit, from the event that started the workflow. What is checked out is the merge that it would be. */
function pullRequestOf(env) {
  if (!env.GITHUB_EVENT_PATH) return {};
  const { pull_request: request } = JSON.parse(readFileSync(env.GITHUB_EVENT_PATH, "utf8"));
  return { pullRequest: request?.number, head: request?.head?.sha };
}

/** Runs it in the project's folder, with further files there while it runs. What it says goes to the job's log as it comes; `faults` is the end of its diagnostics. */
export async function rlcli(settings, args, files = {}) {
  const [command, ...before] = settings.rlcli;
  const paths = Object.keys(files).map((name) => join(settings.folder, name));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(settings.folder, name), bytes);
  try {
    // Its own token is nothing that a spec's commands should see.
    const { RLCLI_ACTION_TOKEN: _, ...env } = process.env;
    const child = spawn(command, [...before, ...args], {
      cwd: settings.folder,
      env: { ...env, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      out += text;
      process.stdout.write(text);
    });
    let faults = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      faults = (faults + text).slice(-FAULTS_LENGTH);
      process.stderr.write(text);
    });
    const code = await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (status) => resolve(status ?? 1));
    });
    return { code, out, faults };
  } catch (error) {
    throw new Failure(
      `${settings.rlcli.join(" ")} cannot be run: ${error.message}. Install it in a step before, or set \`rlcli:\`.`,
    );
  } finally {
    for (const path of paths) rmSync(path, { force: true });
  }
}
