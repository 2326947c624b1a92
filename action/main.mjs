// The three commands of the action. Each is a handful of calls of rlcli and git, so that what a pipeline does can be done by hand.
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setOutput, summarise, upsertComment } from "./github.mjs";
import { keepPlan, keptPlan, removeOldPlans, removePlan, treeOf } from "./plans.mjs";
import { Failure, rlcli, settingsOf } from "./run.mjs";

/** `rlcli plan --detailed-exitcode` ends with it where there are changes. */
const HAS_CHANGES = 2;
const PLAN_FILE = ".rlcli-plan.bin";

async function plan(settings) {
  const file = join(settings.folder, PLAN_FILE);
  const words = ["plan", "--locked", "--detailed-exitcode", "--markdown", "-o", PLAN_FILE, ...settings.arguments];
  const { code, out } = await rlcli(settings, words);
  const isPlan = code === 0 || code === HAS_CHANGES;
  try {
    const note = isPlan && code === HAS_CHANGES ? keepPlan(settings, readFileSync(file)) : "";
    const text = `${out}\n${note}${isPlan ? footer(settings, code === HAS_CHANGES && note === "") : ""}`;
    summarise(settings, text);
    await upsertComment(settings, text);
  } finally {
    rmSync(file, { force: true });
  }
  setOutput(settings, "changes", String(code === HAS_CHANGES));
  if (!isPlan) throw new Failure(`rlcli plan ended with ${code}`);
}

/** Which commit was planned, so that a reviewer sees whether the comment is of today, and what a merge will do. */
function footer({ head }, isKept) {
  const made = head ? `Made of ${head.slice(0, 12)}. ` : "";
  const then = isKept ? "A merge applies exactly this, or nothing where the branch has moved since." : "";
  return made + then === "" ? "" : `\n_${`${made}${then}`.trim()}_\n`;
}

/** Carries out what was reviewed, or nothing: a plan is found by the very files that it was made from. */
async function apply(settings) {
  const now = await rlcli(settings, ["plan", "--locked", "--detailed-exitcode", ...settings.arguments]);
  if (now.code === 0) return summarise(settings, "Nothing to apply: everything is as the spec says.");
  if (now.code !== HAS_CHANGES) {
    summarise(settings, fenced(now.faults));
    throw new Failure(`rlcli plan ended with ${now.code}`);
  }
  const bytes = keptPlan(settings);
  if (!bytes) {
    const words = `No reviewed plan was made of exactly these files (tree ${treeOf(settings)}): the branch has moved since, or the plan was pushed to another repository. Open a pull request that is up to date with the branch, or apply by hand.`;
    summarise(settings, words);
    throw new Failure(words);
  }
  const { code, out, faults } = await rlcli(settings, ["apply", PLAN_FILE], { [PLAN_FILE]: bytes });
  // Of what failed, or was refused, the reason too: nothing else says it outside of the job's log.
  summarise(settings, fenced(code === 0 ? out : `${out.trim()}\n\n${faults}`));
  setOutput(settings, "changes", "true");
  if (code !== 0) throw new Failure(`rlcli apply ended with ${code}`);
  removePlan(settings);
}

const fenced = (text) => `\`\`\`\`\n${text.trim()}\n\`\`\`\`\n`;

async function drift(settings) {
  const { code, out } = await rlcli(settings, [
    "plan",
    "--locked",
    "--detailed-exitcode",
    "--markdown",
    ...settings.arguments,
  ]);
  summarise(settings, out);
  removeOldPlans(settings);
  setOutput(settings, "changes", String(code === HAS_CHANGES));
  if (code === HAS_CHANGES) throw new Failure("What is there is not what the spec says: see the summary of this job.");
  if (code !== 0) throw new Failure(`rlcli plan ended with ${code}`);
}

const COMMANDS = { plan, apply, drift };

try {
  const settings = settingsOf(process.env);
  const command = COMMANDS[settings.command];
  if (!command) throw new Failure(`There is no command \`${settings.command}\`: plan, apply or drift.`);
  await command(settings);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  console.log(`::error title=rlcli::${error.message.replaceAll("%", "%25").replaceAll("\n", "%0A")}`);
  process.exitCode = 1;
}
