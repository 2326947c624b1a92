// Conversations of which some are other ones with changes: words replaced, left out or put in, sentences moved, a turn added. All of it is
// made up by a seeded generator. How much of a conversation is changed is drawn evenly, so that pairs of every similarity are among them.

import { uniform } from "./uniform.mjs";

const SYLLABLES = "ka to mi ren sol vu pel da gri no stra ble fi ou lam ter quo ni zé ör".split(" ");
const OPENINGS = ["Of course.", "Here is what I found:", "Let me explain.", "Sure, here you go:"];

/** Share of conversations that are changed copies of an earlier one. */
const COPIES = 0.4;

/** `chats(n)`: so many lists of messages. */
export function generator(seed) {
  const random = uniform(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  // Few words are common and many are rare, as in a language.
  const vocabulary = Array.from({ length: 4000 }, () =>
    Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(SYLLABLES)).join(""),
  );
  const word = () => vocabulary[Math.floor(random() ** 3 * vocabulary.length)];
  const text = (words) => {
    const out = [];
    for (let i = 0; i < words; i++) out.push(random() < 0.08 ? `${word()}.` : word());
    return `${out.join(" ")}.`;
  };

  const fresh = () => {
    const turns = 1 + Math.floor(random() * 3);
    const messages = [];
    for (let i = 0; i < turns; i++) {
      messages.push({ role: "user", content: text(5 + Math.floor(random() * 40)) });
      messages.push({ role: "assistant", content: `${pick(OPENINGS)} ${text(10 + Math.floor(random() ** 2 * 400))}` });
    }
    return messages;
  };

  const edited = (content, rate) => {
    const words = content.split(" ").flatMap((each) => {
      if (random() >= rate) return [each];
      return pick([[word()], [], [each, word()]]);
    });
    return words.join(" ") || word();
  };
  const copy = (messages) => {
    // Each change touches five shingles: these rates give similarities from 1 down to about a third, high ones more often.
    const rate = random() ** 2 * 0.12;
    return messages.map(({ role, content }) => ({ role, content: edited(content, rate) }));
  };

  return {
    chats(count) {
      const all = [];
      while (all.length < count) all.push(all.length > 0 && random() < COPIES ? copy(pick(all)) : fresh());
      return all;
    },
  };
}
