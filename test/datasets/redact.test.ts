// Redaction on a generated corpus (benchmarks/import/corpus.mjs), its second pass, and its time on texts made to be slow.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { corpus, score } from "../../benchmarks/import/corpus.mjs";
import { MarkedBytes } from "../../src/datasets/marks.ts";
import { DETECTORS } from "../../src/datasets/redact/detectors.ts";
import { POINTS, Suspicion } from "../../src/datasets/redact/suspicion.ts";
import { maskSecrets, Redactor } from "../../src/datasets/redact.ts";
import { RlcliError } from "../../src/diagnostic.ts";
import { cpuMs } from "../support/cpu.ts";

const redactor = new Redactor({});
/** Beginnings of all tokens that the detectors know; a long run is to follow. */
const TOKEN_STARTS =
  "sk-ant- sk-proj- sk-or-v1- sk- sk_live_ pk_test_ rk_live_ whsec_ AKIA ASIA AGPA AIDA AROA ANPA ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xoxa- xoxb- xoxe- xoxp- xoxr- xoxs- xapp-1- AIza GOCSPX- ya29. hf_ npm_ pypi-AgE SG. dop_v1_ gsk_ xai- pplx- fw_ lsv2_pt_ lsv2_sk_ tvly- r8_ tml- dckr_pat_ shpat_ hvs. rubygems_ sntrys_ nvapi- csk- key- AC SK 123456789:AA".split(
    " ",
  );
const clean = (text: string): string =>
  redactor.redact({ messages: [{ role: "user", content: text }] }, {}).messages[0]?.content as string;

test("recall and precision on a corpus of 4,000 texts", () => {
  const samples = corpus(4000);
  const scores = score(
    samples,
    samples.map(({ text }) => clean(text)),
  );
  for (const [type, { planted, gone }] of Object.entries(scores)) {
    if (planted > 0) expect(gone / planted, `recall of ${type}`).toBeGreaterThanOrEqual(0.99);
  }
  const named = Object.values(scores).reduce((sum, s) => sum + s.named, 0);
  const planted = Object.values(scores).reduce((sum, s) => sum + s.planted, 0);
  const wrong = Object.values(scores).reduce((sum, s) => sum + s.wrong, 0);
  expect(wrong / named, "things that had to stay").toBeLessThanOrEqual(0.01);
  expect(named, "placeholders for each planted value").toBeLessThanOrEqual(planted * 1.01);
});

test("nothing that redaction finds is left for the second pass, and redacting again changes nothing", () => {
  for (const { text } of corpus(500, 2)) {
    const once = clean(text);
    expect(redactor.survivors({ messages: [{ role: "user", content: once }] })).toEqual([]);
    expect(clean(once)).toBe(once);
  }
});

test("the look at bytes suspects every text in which a detector finds something, as text and as JSON", () => {
  const marked = new MarkedBytes(POINTS);
  const suspicion = new Suspicion();
  const suspicionOf = (text: string): number => {
    marked.encode(text);
    return suspicion.of(marked, 0, marked.length);
  };
  const pieces = fc.oneof(
    fc.constantFrom(
      ..."0123456789".split(""),
      ..." .:-_@/=+()\"'\\\n\t\u000b\u0001abeABEJKPSx\u00e9\u4e2d\u{1f642}\ud800",
    ),
    fc.constantFrom(
      "password",
      "API_KEY",
      "secret",
      "Bearer ",
      "basic ",
      "eyJ",
      "PRIVATE KEY",
      "://",
      "::",
      "030 ",
      "+49 ",
      "0033 1 ",
    ),
    fc.constantFrom(
      "-----BEGIN PRIVATE KEY-----",
      "GB82 WEST 1234 5698 7654 32",
      "4111 1111 1111 1111",
      "2001:db8::1:2",
      "x.org",
    ),
    fc.constantFrom(...TOKEN_STARTS),
    fc.stringMatching(/^[A-Za-z0-9_-]{8,40}$/),
    fc.integer({ min: 0, max: 511 }).chain((seed) =>
      fc.constantFrom(
        ...corpus(3, seed)
          .flatMap(({ values }) => values.map((v) => v.value))
          .concat("x"),
      ),
    ),
  );
  fc.assert(
    fc.property(fc.array(pieces, { minLength: 1, maxLength: 7 }), (parts) => {
      const text = parts.join("");
      const [asText, asJson] = [suspicionOf(text), suspicionOf(JSON.stringify(text))];
      for (const { type, pattern, accepts, hasPrefix, suspect } of DETECTORS) {
        const isFound = [...text.matchAll(pattern)].some((found) => {
          const match = found[0].slice(hasPrefix ? found[1]?.length : 0);
          return !accepts || accepts(match, text, found.index);
        });
        if (isFound)
          expect([asText & suspect, asJson & suspect], `${type} in ${JSON.stringify(text)}`).toEqual([
            suspect,
            suspect,
          ]);
      }
    }),
    { numRuns: 20_000 },
  );
});

test("of a webhook the host stays, and it is one value wherever it stands", () => {
  const address = `https://hooks.slack.com/services/T0AB/B0CD/${"aB3x".repeat(6)}`;
  expect(clean(`post to ${address}, or <${address}>.`)).toBe(
    "post to https://hooks.slack.com/services/[SECRET_1], or <https://hooks.slack.com/services/[SECRET_1]>.",
  );
});

test("the second pass looks at names of fields too", () => {
  const row = { messages: [{ role: "assistant", content: "x", tool_calls: [{ "ada@example.org": 1 }] }] };
  expect(redactor.survivors(redactor.redact(row, {}))).toEqual(["EMAIL"]);
});

test("text without anything to find stays as it is", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("a", "B", " ", "\n", "é", "🙂", ".", ",", "1", "("), maxLength: 60 }),
      (text) => {
        fc.pre(!/1[^a-zA-Z]*1[^a-zA-Z]*1/.test(text));
        expect(clean(text)).toBe(text);
      },
    ),
  );
});

describe("time grows with the length, not faster", () => {
  test.each([
    ["digits", "5"],
    ["digits apart", "1 "],
    ["digits in brackets", "(1) "],
    ["letters and @", "a@"],
    ["dots", "a.b"],
    ["dots and @", "a.@b."],
    ["colons", "a:"],
    ["slashes", "a://b:"],
    ["key prefixes", "sk-"],
    ["assignments", "password="],
    ["tokens", "eyJ."],
    ["dashes", "-----BEGIN PRIVATE KEY-----"],
    ["IBAN", "DE89 "],
    ["hex", "ab:1:"],
    ["hosts of webhooks", "https://a.hook.azure."],
    ["webhooks", "https://hooks.slack.com/services/a"],
  ])("%s", (_, unit) => {
    const text = unit.repeat(Math.ceil(200_000 / unit.length));
    expect(cpuMs(() => void clean(`${text} 1.1 x@y :// secret key`))).toBeLessThan(5_000);
  });
});

test("patterns that are none, or match nothing, are the user's to mend", () => {
  for (const pattern of ["(", "a*", ""]) expect(() => new Redactor({ patterns: [pattern] })).toThrow(RlcliError);
});

test("excerpts carry no secret, however they are cut", () => {
  const secret = `ghp_${"a1B2".repeat(9)}`;
  expect(maskSecrets(`{"k": "${secret}"`)).not.toContain("a1B2");
});
