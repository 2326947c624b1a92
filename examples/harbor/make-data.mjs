// Writes warmup.jsonl: the tasks' instructions, each answered with every solution in turn, the right one three times in ten. From it
// a model learns what an answer looks like and which commands there are; which of them solves what is left to the tests.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const read = (path) => readFileSync(new URL(`tasks/${path}`, import.meta.url), "utf8");
const names = readdirSync(new URL("tasks", import.meta.url)).sort();
const commands = names.map((name) => read(`${name}/solution/solve.sh`).split("\n").slice(1).join("\n").trim());

/** Of twenty conversations about a task six are right, the others spread over the wrong commands. */
const COPIES = 20;
const RIGHT = 6;

function commandFor(task, copy) {
  if (copy < RIGHT) return commands[task];
  return commands[(task + 1 + (copy % (names.length - 1))) % names.length];
}

const rows = [];
for (let copy = 0; copy < COPIES; copy += 1) {
  for (const [task, name] of names.entries()) {
    rows.push({
      messages: [
        { role: "user", content: read(`${name}/instruction.md`) },
        { role: "assistant", content: `\`\`\`bash\n${commandFor(task, copy)}\n\`\`\`` },
        { role: "user", content: JSON.stringify({ exit_code: 0, stdout: "", stderr: "" }) },
        { role: "assistant", content: "Done." },
      ],
    });
  }
}
writeFileSync(new URL("warmup.jsonl", import.meta.url), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
