// Writes an OpenAI chat-completions dump as large as asked: `node benchmarks/import/generate.mjs FILE [CONVERSATIONS]`.
// The same arguments give the same bytes. Conversations have 2 to 9 turns of prose, code, numbers, accents and emoji, some
// tool calls, escapes and addresses; 60,000 of them make about 290 MB, each a request with its response.

import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { uniform } from "./uniform.mjs";

const WORDS =
  "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so up said what its about than into them can only other time new some could these two may first then do any like my now over such our man me even most made after also did many off before must well back through years much where your way down should because long each just state those people too".split(
    " ",
  );
const EXTRAS = [
  "naïve café",
  "größer",
  "数据 模型",
  "🙂 fine",
  '"quoted"',
  "C:\\temp\\file",
  "x = a[i] + b[j];",
  "https://example.org/a?b=1",
  "ada@example.org",
  "+1 415-555-0134",
  "10.1.2.3",
];

function prose(random, words) {
  const out = [];
  for (let i = 0; i < words; i++) {
    if (random() < 0.004) out.push(EXTRAS[Math.floor(random() * EXTRAS.length)]);
    else out.push(WORDS[Math.floor(random() * WORDS.length)]);
    if (random() < 0.06) out.push(random() < 0.3 ? "\n" : ".");
  }
  return out.join(" ");
}

function conversation(random, i) {
  const turns = 1 + Math.floor(random() * 4);
  const messages = [{ role: "system", content: prose(random, 40) }];
  for (let t = 0; t < turns; t++) {
    messages.push({ role: "user", content: prose(random, 40 + random() * 200) });
    if (random() < 0.15) {
      const call = { id: `call_${i}_${t}`, type: "function", function: { name: "lookup", arguments: '{"q":"x"}' } };
      messages.push({ role: "assistant", content: null, tool_calls: [call] });
      messages.push({ role: "tool", tool_call_id: call.id, content: prose(random, 120) });
    }
    messages.push({ role: "assistant", content: prose(random, 60 + random() * 260) });
  }
  const answer = messages.pop();
  const usage = { prompt_tokens: 812, completion_tokens: 164, total_tokens: 976 };
  return {
    id: `log-${i}`,
    model: "gpt-4o",
    messages,
    temperature: 0.7,
    choices: [{ index: 0, message: answer, finish_reason: "stop" }],
    usage,
    metadata: { env: random() < 0.5 ? "prod" : "test" },
  };
}

export async function generate(path, conversations) {
  const random = uniform(8);
  const out = createWriteStream(path);
  for (let i = 0; i < conversations; i++) {
    const body = conversation(random, i);
    if (!out.write(`${JSON.stringify(body)}\n`)) await once(out, "drain");
  }
  out.end();
  await once(out, "finish");
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [path, conversations = "60000"] = process.argv.slice(2);
  if (!path) {
    process.stderr.write("usage: node benchmarks/import/generate.mjs FILE [CONVERSATIONS]\n");
    process.exit(2);
  }
  await generate(path, Number(conversations));
}
