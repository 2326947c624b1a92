/**
 * Near duplicates: what is left out is what comparing all with all would leave out, but for a small known share; and it is the same every
 * time. The truth is computed here from words as texts, without the importer's hashes.
 */
import { describe, expect, test } from "vitest";
import { type GeneratedMessage, generator } from "../../benchmarks/import/near.mjs";
import { convertRows } from "../../src/datasets/convert.ts";
import { bandingFor } from "../../src/datasets/near/bands.ts";
import { shinglesOf, similarity } from "../../src/datasets/near/shingles.ts";
import { type ImportFields, importOptions, optionFault } from "../../src/datasets/options.ts";
import { formatNamed } from "../../src/datasets/registry.ts";
import { Tally } from "../../src/datasets/tally.ts";

type Turn = GeneratedMessage;

const chat = (question: string, answer: string, system?: string): Turn[] => [
  ...(system === undefined ? [] : [{ role: "system", content: system }]),
  { role: "user", content: question },
  { role: "assistant", content: answer },
];

async function importChats(chats: readonly Turn[][], fields: ImportFields = {}, threads = 0) {
  const tally = new Tally();
  const text = chats.map((messages) => `${JSON.stringify({ messages })}\n`).join("");
  const source = {
    name: "chats.jsonl",
    bytes: (async function* () {
      yield Buffer.from(text);
    })(),
  };
  const options = importOptions({ dedupe: "near", ...fields });
  const kept: string[] = [];
  for await (const row of convertRows([source], { format: formatNamed("messages"), options, threads }, tally))
    kept.push(row);
  return {
    kept: kept.map((row) => (JSON.parse(row) as { messages: Turn[] }).messages),
    dropped: tally.statistics().dropped,
  };
}

/** The same set, of texts. */
function truth(messages: readonly Turn[]): Set<string> {
  const words = messages
    .filter(({ role }) => role !== "system")
    .flatMap(({ role, content }) => [`<${role}>`, ...(content.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [])]);
  const size = Math.min(5, words.length);
  return new Set(Array.from({ length: words.length - size + 1 }, (_, i) => words.slice(i, i + size).join(" ")));
}
function jaccard(a: Set<string>, b: Set<string>): number {
  const shared = [...a].filter((x) => b.has(x)).length;
  return shared / (a.size + b.size - shared);
}

/** Which of them stay, by comparing all with all. */
function expected(chats: readonly Turn[][], threshold: number): boolean[] {
  const kept: Set<string>[] = [];
  return chats.map((messages) => {
    const set = truth(messages);
    const isLike = (other: Set<string>): boolean =>
      Math.min(other.size, set.size) >= threshold * Math.max(other.size, set.size) && jaccard(other, set) >= threshold;
    if (kept.some(isLike)) return false;
    kept.push(set);
    return true;
  });
}

/** Which of them are in the list, which has them in their order. */
function keptOf(chats: readonly Turn[][], kept: readonly Turn[][]): boolean[] {
  let next = 0;
  return chats.map((messages) => {
    const isNext = JSON.stringify(messages) === JSON.stringify(kept[next]);
    if (isNext) next += 1;
    return isNext;
  });
}

describe("a generated corpus", () => {
  test.each([0.6, 0.8, 0.95])(
    "at %d: nothing is left out wrongly, and at most 2 in 100 are missed",
    async (threshold) => {
      const chats = generator(11).chats(800);
      const { kept } = await importChats(chats, { near_threshold: threshold });
      const isKept = keptOf(chats, kept);
      const stays = expected(chats, threshold);
      const duplicates = stays.filter((stay) => !stay).length;
      expect(duplicates).toBeGreaterThan(50);
      let [wrong, missed] = [0, 0];
      for (const i of chats.keys()) {
        if (stays[i] && !isKept[i]) wrong += 1;
        if (!stays[i] && isKept[i]) missed += 1;
      }
      // One that was missed is kept, and others may then rightly be left out for being like it.
      expect(wrong).toBeLessThanOrEqual(missed);
      expect(missed / duplicates).toBeLessThanOrEqual(0.02);
    },
  );

  test("gives the same rows however it is read, in their order", async () => {
    const chats = generator(5).chats(600);
    const once = await importChats(chats);
    expect(await importChats(chats, {}, 1)).toEqual(once);
    expect(keptOf(chats, once.kept).filter(Boolean)).toHaveLength(once.kept.length);
  });
});

describe("what is nearly equal", () => {
  const long = Array.from({ length: 60 }, (_, i) => `word${i}`).join(" ");
  const changed = long.replace("word30", "other");

  test("the first stays; equal ones and beginnings are told apart from it", async () => {
    const grown = [...chat("a b c", long), { role: "user", content: "more" }, { role: "assistant", content: "yes" }];
    const chats = [
      chat("a b c", long),
      chat("a b c", changed),
      chat("x y z", "quite another"),
      chat("x y z", "quite another"),
      grown,
    ];
    const { kept, dropped } = await importChats(chats);
    expect(kept).toEqual([chats[1], chats[2]]);
    expect(dropped).toEqual({
      "the beginning of a longer conversation": 1,
      "equal to an earlier row": 1,
      "nearly equal to an earlier row": 1,
    });
  });

  test("case and punctuation do not count, words do", async () => {
    const { kept } = await importChats([
      chat("Q?", long),
      chat("q", `${long.toUpperCase()}!!`),
      chat("q", [...long.split(" ")].reverse().join(" ")),
    ]);
    expect(kept).toHaveLength(2);
  });

  test("a long system message that all share makes nothing alike", async () => {
    const system = `${long} ${long}`.repeat(20);
    const { kept } = await importChats([
      chat("one question", "one answer here", system),
      chat("two things", "other words there", system),
    ]);
    expect(kept).toHaveLength(2);
  });

  test("scripts without blanks are compared by characters", async () => {
    const text =
      "今日は天気がいいので散歩に行きましょう。公園にはたくさんの花が咲いています。鳥も鳴いています。".repeat(2);
    const { kept } = await importChats([
      chat("質問", text),
      chat("質問", text.replace("散歩", "買物")),
      chat("質問", "まったく違う話をします。本を読みました。"),
    ]);
    expect(kept).toHaveLength(2);
  });

  test("short ones are compared too", async () => {
    const { kept } = await importChats(
      [chat("hi", "hello"), chat("hi!", "Hello."), chat("hi", "goodbye"), chat("!", "🙂"), chat("?", "🙂")],
      { min_messages: 1 },
    );
    expect(kept).toEqual([chat("hi", "hello"), chat("hi", "goodbye"), chat("!", "🙂")]);
  });

  test("a sample and a limit are taken of what is left", async () => {
    const chats = generator(3).chats(300);
    const all = (await importChats(chats)).kept.map((messages) => JSON.stringify(messages));
    const some = (await importChats(chats, { sample: 20, seed: 4 })).kept.map((messages) => JSON.stringify(messages));
    expect(some).toHaveLength(20);
    expect(some.every((row) => all.includes(row))).toBe(true);
    expect((await importChats(chats, { limit: 7 })).kept.map((messages) => JSON.stringify(messages))).toEqual(
      all.slice(0, 7),
    );
  });

  test("thousands of one template do not take forever", async () => {
    const chats = Array.from({ length: 3000 }, (_, i) => {
      const own = Array.from({ length: 25 }, (_, j) => `own${i}x${j}`).join(" ");
      return chat("fill this in", `${long} ${own}`);
    });
    expect((await importChats(chats)).kept).toHaveLength(3000);
  });
});

describe("bands", () => {
  test.each([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1])("at %d, one pair in a hundred is missed at most", (threshold) => {
    const { bands, rows } = bandingFor(threshold);
    expect((1 - threshold ** rows) ** bands).toBeLessThanOrEqual(0.0101);
    expect(bands).toBeLessThanOrEqual(20);
  });

  test("similarity is of sets", () => {
    const sets = [chat("a b c d e f", "g h i"), chat("a b c d e x", "g h i"), chat("", "")].map(
      shinglesOf,
    ) as Uint32Array[];
    const [a, b, c] = sets as [Uint32Array, Uint32Array, Uint32Array];
    expect(similarity(a, a)).toBe(1);
    expect(similarity(a, b)).toBeCloseTo(
      jaccard(truth(chat("a b c d e f", "g h i")), truth(chat("a b c d e x", "g h i"))),
      10,
    );
    expect(similarity(a, c)).toBe(0);
  });
});

test("a threshold without near is a contradiction; the default is no part of the identity", () => {
  expect(optionFault({ near_threshold: 0.9, dedupe: "exact" }, (field) => field)).toContain("near_threshold");
  expect(optionFault({ near_threshold: 0.9, dedupe: "near" }, (field) => field)).toBeUndefined();
  expect(importOptions({ dedupe: "near", near_threshold: 0.8 })).toEqual(importOptions({ dedupe: "near" }));
});
