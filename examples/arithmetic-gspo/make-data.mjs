// Writes the example's data: every sum of two digits below ten as a task, and a warm-up whose answers are near, and right three
// times in ten. From it a model learns what an answer looks like and roughly how large it is; the rest is left to rewards.
import { writeFileSync } from "node:fs";

/** Mulberry32, a small generator of random numbers (Tommy Ettinger, public domain): the same data on every machine. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const random = generator(1);
const digits = Array.from({ length: 10 }, (_, i) => i);
const sums = digits.flatMap((a) => digits.slice(0, 10 - a).map((b) => ({ question: `${a}+${b}=`, answer: a + b })));

/** Another digit, at most three away. */
function near(answer) {
  for (;;) {
    const other = answer + Math.floor(random() * 7) - 3;
    if (other !== answer && other >= 0 && other <= 9) return other;
  }
}

const COPIES = 20;
const warmup = [];
for (let copy = 0; copy < COPIES; copy += 1) {
  for (const { question, answer } of sums) {
    const said = copy % 10 < 3 ? answer : near(answer);
    warmup.push({
      messages: [
        { role: "user", content: question },
        { role: "assistant", content: String(said) },
      ],
    });
  }
}

const tasks = sums.map(({ question, answer }) => ({ question, answer: String(answer) }));
const write = (name, rows) =>
  writeFileSync(new URL(name, import.meta.url), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
write("sums.jsonl", tasks);
write("warmup.jsonl", warmup);
