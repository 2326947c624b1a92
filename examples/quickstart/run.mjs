// The quickstart as a person would type it: ask the untrained model, apply the spec, ask again, see that nothing is left to do.
// Everything it makes lies in .rlcli/ beside this file; delete that folder to start over.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const program = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
const question = "What is the state folder?";
const started = performance.now();

/** Runs one command where the spec lies, showing it first. */
function rlcli(...args) {
  const shown = args.map((arg) => (/[\s?]/.test(arg) ? JSON.stringify(arg) : arg)).join(" ");
  process.stdout.write(`\n$ rlcli ${shown}\n`);
  const { status } = spawnSync(process.execPath, [program, ...args], { cwd: folder, stdio: "inherit" });
  if (status !== 0) {
    process.stderr.write(`\nrlcli ${args[0]} ended with exit code ${status}.\n`);
    process.exit(status ?? 1);
  }
}

const greedy = ["--max-tokens", "48", "--temperature", "0"];
process.stdout.write(`The untrained model, asked "${question}":\n`);
rlcli("sample", "--base", "--prompt", question, ...greedy);
rlcli("apply", "--auto-approve");
process.stdout.write("\nThe trained one:\n");
rlcli("sample", "assistant", "--prompt", question, ...greedy);
rlcli("plan", "--detailed-exitcode");
process.stdout.write(
  `\nDone in ${Math.round((performance.now() - started) / 1000)} s. Now change learning_rate in examples/quickstart/rlcli.yaml, and see what that would do:\n  cd examples/quickstart && npx rlcli plan\n`,
);
