// Texts with personal data and secrets of known kinds at known places, among things that only look like them. All of it is
// made up by a seeded generator. What redaction finds in them gives its recall and precision.

import { uniform } from "./uniform.mjs";

const pick = (random, list) => list[Math.floor(random() * list.length)];
const digits = (random, n) => Array.from({ length: n }, () => Math.floor(random() * 10)).join("");
const from = (random, alphabet, n) => Array.from({ length: n }, () => pick(random, [...alphabet])).join("");
const ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX = "0123456789abcdef";

function luhn(prefix, length, random) {
  const body = prefix + digits(random, length - prefix.length - 1);
  let sum = 0;
  for (let i = 0; i < body.length; i++) {
    const d = Number(body[body.length - 1 - i]);
    sum += i % 2 === 0 ? (d * 2 > 9 ? d * 2 - 9 : d * 2) : d;
  }
  return body + ((10 - (sum % 10)) % 10);
}

function iban(random, country, bban) {
  const rearranged = [...`${bban}${country}00`].map((c) => (/[A-Z]/.test(c) ? c.charCodeAt(0) - 55 : c)).join("");
  let remainder = 0;
  for (const c of rearranged) remainder = (remainder * 10 + Number(c)) % 97;
  const text = `${country}${String(98 - remainder).padStart(2, "0")}${bban}`;
  return random() < 0.5 ? text : text.replace(/(.{4})(?=.)/g, "$1 ");
}

const NAMES = ["ada", "bo.chen", "maría", "j_smith", "li+news", "o'neil", "x.y.z", "k-lee99"];
const HOSTS = ["example.org", "mail.corp.example", "uni-köln.example", "a.b.c.co", "shop.museum"];

const guid = (r) => [8, 4, 4, 4, 12].map((n) => from(r, HEX, n)).join("-");

/** An address that posts for whoever has it. */
function webhook(r) {
  return pick(r, [
    () =>
      `https://hooks.slack.com/services/T${from(r, ALNUM.slice(0, 26), 10)}/B${digits(r, 10)}/${from(r, ALNUM, 24)}`,
    () => `https://discord.com/api/webhooks/${digits(r, 19)}/${from(r, ALNUM, 68)}`,
    () => `https://canary.discord.com/api/v10/webhooks/${digits(r, 18)}/${from(r, ALNUM, 67)}_`,
    () =>
      `https://corp.webhook.office.com/webhookb2/${guid(r)}@${guid(r)}/IncomingWebhook/${from(r, HEX, 32)}/${guid(r)}`,
    () =>
      `https://prod-${digits(r, 2)}.westeurope.logic.azure.com:443/workflows/${from(r, HEX, 32)}/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=${from(r, ALNUM, 43)}`,
    () => `https://chat.googleapis.com/v1/spaces/AAAA${from(r, ALNUM, 7)}/messages?key=${from(r, ALNUM, 39)}&token=x9`,
    () => `https://hooks.zapier.com/hooks/catch/${digits(r, 7)}/${from(r, ALNUM, 7)}/`,
  ])();
}

/** Makers of values that must go, by type. */
const VALUES = {
  EMAIL: (r) => `${pick(r, NAMES)}${r() < 0.5 ? digits(r, 2) : ""}@${pick(r, HOSTS)}`,
  PHONE: (r) =>
    pick(r, [
      () => `+44 20 ${digits(r, 4)} ${digits(r, 4)}`,
      () => `+49 (0) 30 ${digits(r, 6)}`,
      () => `+1-415-555-${digits(r, 4)}`,
      () => `(212) 555-${digits(r, 4)}`,
      () => `646.555.${digits(r, 4)}`,
      () => `+86 138 ${digits(r, 4)} ${digits(r, 4)}`,
      () => `030 ${digits(r, 7)}`,
      () => `06 12 34 ${digits(r, 2)} ${digits(r, 2)}`,
      () => `0033 1 42 ${digits(r, 2)} ${digits(r, 2)} ${digits(r, 2)}`,
    ])(),
  CARD: (r) => {
    const number = luhn(
      ...pick(r, [
        ["4", 16],
        ["51", 16],
        ["37", 15],
        ["6011", 16],
      ]),
      r,
    );
    return r() < 0.5 ? number : number.replace(/(.{4})(?=.)/g, pick(r, ["$1 ", "$1-"]));
  },
  IBAN: (r) =>
    pick(r, [
      () => iban(r, "DE", digits(r, 18)),
      () => iban(r, "GB", `WEST${digits(r, 14)}`),
      () => iban(r, "FR", digits(r, 23)),
    ])(),
  IP: (r) =>
    r() < 0.6
      ? Array.from({ length: 4 }, (_, i) => (i === 0 ? 11 + Math.floor(r() * 100) : Math.floor(r() * 256))).join(".")
      : `2001:db8::${from(r, HEX.slice(1), 4)}:${from(r, HEX.slice(1), 4)}:${from(r, HEX.slice(1), 4)}`,
  KEY: (r) =>
    pick(r, [
      () => `sk-${"proj"}-${from(r, ALNUM, 40)}`,
      () => `ghp_${from(r, ALNUM, 36)}`,
      () => `AKIA${from(r, ALNUM.slice(0, 26), 16)}`,
      () => `xoxb-${digits(r, 12)}-${from(r, ALNUM, 24)}`,
      () => `hf_${from(r, ALNUM, 34)}`,
      () => `AIza${from(r, ALNUM, 35)}`,
      () => `sk_live_${from(r, ALNUM, 24)}`,
      () => `glpat-${from(r, ALNUM, 20)}`,
    ])(),
  JWT: (r) => `eyJ${from(r, ALNUM, 30)}.eyJ${from(r, ALNUM, 60)}.${from(r, ALNUM, 43)}`,
  SECRET: (r) =>
    pick(r, [
      () => `password: "${from(r, ALNUM, 12)}7"`,
      () => `api_key=${from(r, ALNUM, 24)}9`,
      () => `postgres://app:${from(r, ALNUM, 10)}@db:5432/x`,
      () => webhook(r),
    ])(),
  PRIVATE_KEY: (r) =>
    `-----BEGIN PRIVATE KEY-----\n${from(r, ALNUM, 64)}\n${from(r, ALNUM, 40)}\n-----END PRIVATE KEY-----`,
};

/** Makers of what must stay. */
const DECOYS = [
  (r) => `2026-${String(1 + Math.floor(r() * 12)).padStart(2, "0")}-${10 + Math.floor(r() * 18)}`,
  (r) => `${10 + Math.floor(r() * 12)}:${10 + Math.floor(r() * 49)}:${10 + Math.floor(r() * 49)}`,
  (r) => `order ${digits(r, 8)}`,
  (r) => `version 1.${digits(r, 1)}.${digits(r, 1)}.${digits(r, 1)}`,
  (r) => `${from(r, HEX, 8)}-${from(r, HEX, 4)}-4${from(r, HEX, 3)}-a${from(r, HEX, 3)}-${from(r, HEX, 12)}`,
  (r) => from(r, HEX, 40),
  () => "@media (min-width: 100px)",
  () => "@app.route('/users/@me')",
  () => "npm i @scope/package@1.2.3",
  (r) => `${digits(r, 3)},${digits(r, 3)},${digits(r, 3)}`,
  (r) => `3.14159265${digits(r, 4)}`,
  () => "127.0.0.1:8080",
  () => "std::vector::iterator",
  () => "password = os.environ['DB_PASSWORD']",
  () => "the secret: never give up",
  (r) => `0x${from(r, HEX, 16)}`,
  (r) => `isbn 978-3-16-${digits(r, 6)}-0`,
  () => "sk-learn and sk_buff",
  (r) => `00:1b:44:11:3a:${from(r, HEX, 2)}`,
  () => "https://api.slack.com/messaging/webhooks",
  (r) => `https://discord.com/channels/${from(r, HEX, 8)}/settings`,
  () => "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
  (r) => `https://learn.example.com/webhook?page=${digits(r, 2)}`,
  (r) => `x=${digits(r, 2)}, y=${digits(r, 2)}; 1920x1080`,
];

const PROSE = [
  "Please look at",
  "I think that",
  "the log says",
  "we saw",
  "and then",
  "He wrote:",
  "as of",
  "see",
  "from",
  "ok:",
];

/** `[{text, values: [{type, value}], decoys: [text]}]`. In a SECRET the words around the value stay. */
export function corpus(count, seed = 1) {
  const random = uniform(seed);
  return Array.from({ length: count }, () => {
    const values = [];
    const decoys = [];
    const words = [];
    for (let i = 0, n = 2 + Math.floor(random() * 5); i < n; i++) {
      words.push(pick(random, PROSE));
      if (random() < 0.5) {
        const type = pick(random, Object.keys(VALUES));
        const value = VALUES[type](random);
        values.push({ type, value });
        words.push(value);
      } else {
        const decoy = pick(random, DECOYS)(random);
        decoys.push(decoy);
        words.push(decoy);
      }
      words.push(pick(random, ["today.", "again,", "there", "\n", "(yes)"]));
    }
    return { text: words.join(" "), values, decoys };
  });
}

/** Counts by type from texts and what redaction made of them. */
export function score(samples, redacted) {
  const byType = {};
  for (const [i, { values, decoys }] of samples.entries()) {
    const out = redacted[i];
    const found = [...out.matchAll(/\[([A-Z_]+)_\d+\]/g)].map((m) => m[1]);
    for (const { type, value } of values) {
      byType[type] ??= { planted: 0, gone: 0, named: 0, wrong: 0 };
      byType[type].planted += 1;
      if (!out.includes(value)) byType[type].gone += 1;
    }
    for (const type of found) {
      byType[type] ??= { planted: 0, gone: 0, named: 0, wrong: 0 };
      byType[type].named += 1;
    }
    for (const decoy of decoys) {
      byType.DECOYS ??= { planted: 0, gone: 0, named: 0, wrong: 0 };
      if (!out.includes(decoy)) byType.DECOYS.wrong += 1;
    }
  }
  return byType;
}
