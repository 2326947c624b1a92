// Writes warmup.jsonl: to each problem ten answers in the right form, four of them right and six that answer other problems.
import { readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const problems = readFileSync(new URL("../../examples/gsm8k/sample.jsonl", here), "utf8").trim().split("\n");
const rows = problems.map((line) => JSON.parse(line));
const answers = rows.map(({ answer }) => answer.split("#### ")[1]);

const RIGHT = 4;
const lines = [];
for (let turn = 0; turn < 10; turn++)
  for (const [at, { question }] of rows.entries()) {
    const other = (at + 1 + ((turn * 7 + at * 3) % (rows.length - 1))) % rows.length;
    const content = `\\boxed{${answers[turn < RIGHT ? at : other]}}`;
    lines.push(
      JSON.stringify({
        messages: [
          { role: "user", content: question },
          { role: "assistant", content },
        ],
      }),
    );
  }
writeFileSync(new URL("warmup.jsonl", here), `${lines.join("\n")}\n`);
