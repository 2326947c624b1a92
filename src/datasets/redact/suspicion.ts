/**
 * Where something to redact may be: a look at a text's bytes that tells which detectors have to look closer. Most texts
 * need none. It may suspect too much and must never miss: a detector that is not named finds nothing (the test of that
 * compares with detectors that look everywhere). Bytes may be those of a text or of its canonical JSON string, whose
 * escapes only add letters and digits beside what is looked for.
 */
import { pairTables } from "../kernels.ts";
import type { MarkedBytes } from "../marks.ts";

/** Bits of a suspicion, one for each detector. */
export const SUSPECT = {
  privateKey: 1,
  jwt: 2,
  key: 4,
  assigned: 8,
  inUrl: 16,
  email: 32,
  iban: 64,
  card: 128,
  ipv4: 256,
  ipv6: 512,
  nanpPhone: 1024,
  phone: 2048,
  /** The user's own names and patterns, which may be anywhere. */
  own: 4096,
  webhook: 8192,
} as const;

const ALL = Array.from({ length: 16 }, (_, i) => i);
const codes = (text: string): number[] => [...Buffer.from(text)];

/** Bytes beside which there is something to look at, by what follows them. */
export const POINTS = pairTables([
  // @ J
  { byte: { low: [0, 10], high: [4] }, next: "any" },
  // : =
  { byte: { low: [10, 13], high: [3] }, next: "any" },
  // A digit, before another or what groups them.
  { byte: { low: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], high: [3] }, next: { low: ALL, high: [2, 3] } },
  // - and . before letters, digits, underscores.
  { byte: { low: [13, 14], high: [2] }, next: { low: ALL, high: [3, 4, 5, 6, 7] } },
  // The same before a dash.
  { byte: { low: [13, 14], high: [2] }, next: { low: [13], high: [2] } },
  // _
  { byte: { low: [15], high: [5] }, next: "any" },
  // b B, before a or e.
  { byte: { low: [2], high: [4, 6] }, next: { low: [1, 5], high: [4, 6] } },
  // A P S, before another capital.
  { byte: { low: [0, 1, 3], high: [4, 5] }, next: { low: ALL, high: [4, 5] } },
]);

/** What no match of goes over a space between two letters: these are looked for in windows around what is suspected. */
export const WITHIN_WORDS =
  SUSPECT.jwt |
  SUSPECT.key |
  SUSPECT.inUrl |
  SUSPECT.webhook |
  SUSPECT.email |
  SUSPECT.card |
  SUSPECT.ipv4 |
  SUSPECT.ipv6 |
  SUSPECT.nanpPhone |
  SUSPECT.phone;

/** What detectors may look at beside a match, in bytes: twelve characters, each at most an escape of six. */
const BESIDE = 80;

/** Classes of bytes: 1 digit, 2 letter, 4 underscore or dash, 8 between digits of a number, 16 hexadecimal, 32 beyond ASCII. */
const CLASS = new Uint8Array(256).fill(32, 128);
const addClass = (bit: number, text: string): void => {
  for (const code of codes(text)) CLASS[code] = (CLASS[code] as number) | bit;
};
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
addClass(1, "0123456789");
addClass(2, LETTERS + LETTERS.toUpperCase());
addClass(4, "_-");
addClass(8, " ().-/");
addClass(16, "0123456789abcdefABCDEF");
const [DIGIT, LETTER, DASH, BETWEEN, HEX, OTHER] = [1, 2, 4, 8, 16, 32];
const WORD = DIGIT | LETTER | DASH;

/** The two bytes before the separator of every token that has one, nine characters of which follow. */
const BEFORE_SEPARATOR = new Uint8Array(1 << 16);
for (const pair of "sk pk rk ec hp ho hu hs hr at xa xb xe xp xr xs pp PX 29 hf pm pi SG v1 ai lx fw pt ly r8 ml vs ms ys ey".split(
  " ",
))
  BEFORE_SEPARATOR[(pair.charCodeAt(0) << 8) | pair.charCodeAt(1)] = 1;

/** Points by what has to be looked at there, in the order of `Suspicion`'s looks. */
const KINDS = ["._-", "bB", "0123456789", "@", ":", "=", "AS", "J", "P"];
const KIND = new Uint8Array(256).fill(KINDS.length);
for (const [kind, text] of KINDS.entries()) for (const code of codes(text)) KIND[code] = kind;

/** How far before `=` the end of a name may lie: a quote and three white spaces, each escaped, and the name's last word. */
const NAME_WINDOW = 34;
/** How far an address goes before its `@`: 60 characters of user and 100 of password, in bytes of JSON. */
const ADDRESS_WINDOW = 1000;
/** How far the host of an address goes. */
const HOST_WINDOW = 170;
/** `outlook.office` and `chat.googleapis` beside all hosts that say what they are. */
const HOOK_WORDS = ["hook", "discord", "logic.azure", "powerplatform", "office", "chat.google"];
const NAME_ENDS = new Uint8Array(256);
for (const code of codes("ytndYTNDabcefr")) NAME_ENDS[code] = 1;
const NAMES = ["key", "secret", "token", "passw", "pwd"].map(codes);

type Look = (at: number) => number;

/** Numbers of a window: its start, its end, and what its bytes are suspected of. */
export const WINDOW = 3;

/** Reads the suspicions of one text after another from marked bytes. */
export class Suspicion {
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  /** Of the last text: windows that hold all that is suspected, if that is `WITHIN_WORDS`: `WINDOW` numbers for each. */
  windows = new Int32Array(64 * WINDOW);
  /** Numbers of `windows` that are in use. */
  windowsEnd = 0;
  /** After the last run of groups that was looked at, so that none is looked at twice. */
  #groupsEnd = 0;
  /** The same of numbers. */
  #numberEnds = 0;

  /** Suspicions of bytes [start, end) of bytes marked at `POINTS`. */
  of({ bytes, points }: MarkedBytes, start: number, end: number): number {
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
    this.#groupsEnd = start;
    this.#numberEnds = start;
    this.windowsEnd = 0;
    let found = 0;
    if (start >= end) return found;
    const last = (end - 1) >>> 5;
    let bits = (points[start >>> 5] as number) & (-1 << (start & 31));
    for (let word = start >>> 5; word <= last; ) {
      if (bits === 0) {
        word += 1;
        bits = points[word] as number;
        continue;
      }
      const at = (word << 5) + 31 - Math.clz32(bits & -bits);
      bits &= bits - 1;
      const kind = KIND[bytes[at] as number] as number;
      // Most of the commonest points are nothing. What is read outside of the text can only add to the suspicion.
      if (kind === 0 && BEFORE_SEPARATOR[((bytes[at - 2] as number) << 8) | (bytes[at - 1] as number)] !== 1) continue;
      // The word of marks may go beyond the text.
      if (at < end) found |= (this.#looks[kind] as Look)(at);
    }
    return found;
  }

  /**
   * By kind. Called through a table, so that the engine compiles each by itself when it is common, and none of them again
   * with the loop whenever a rare one is met.
   */
  readonly #looks: readonly Look[] = [
    (at) => this.#token(at),
    (at) => this.#suspect(this.#scheme(at), at, at),
    (at) => (at < this.#numberEnds ? 0 : this.#figures(at)),
    (at) => this.#suspect(this.#isInEmail(at) ? SUSPECT.email : 0, at, at),
    (at) => this.#suspect(this.#colon(at) | this.#assigned(at), at, at),
    (at) => this.#suspect(this.#assigned(at), at, at),
    (at) => this.#suspect(this.#capitals(at), at, at),
    (at) => this.#suspect(this.#at(at - 1) === 0x79 && this.#at(at - 2) === 0x65 ? SUSPECT.jwt : 0, at, at),
    (at) => this.#suspect(this.#spells("private key", at) ? SUSPECT.privateKey : 0, at, at),
    () => 0,
  ];

  #token(at: number): number {
    return this.#runsOn(at + 1, 9) ? this.#suspect(SUSPECT.key, at, at) : 0;
  }

  #figures(at: number): number {
    const end = this.#numberEnd(at);
    this.#numberEnds = end;
    return this.#suspect(this.#number(at, end), at, end);
  }

  /** Adds the surroundings of bytes [from, to) to the windows. */
  #suspect(found: number, from: number, to: number): number {
    if (found === 0) return 0;
    const { windows } = this;
    const last = this.windowsEnd - WINDOW;
    const known = last < 0 ? this.#start : (windows[last + 1] as number);
    if (last >= 0 && to + BESIDE <= known) {
      windows[last + 2] = (windows[last + 2] as number) | found;
      return found;
    }
    let start = from - BESIDE;
    while (start > known && !this.#isBetweenWords(start)) start -= 1;
    let end = to + BESIDE;
    while (end < this.#end && !this.#isBetweenWords(end)) end += 1;
    end = Math.min(end, this.#end);
    if (last >= 0 && start <= known) {
      windows[last + 1] = end;
      windows[last + 2] = (windows[last + 2] as number) | found;
    } else this.#open(Math.max(start, this.#start), end, found);
    return found;
  }

  #open(start: number, end: number, found: number): void {
    const at = this.windowsEnd;
    if (at + WINDOW > this.windows.length) {
      const more = new Int32Array(this.windows.length * 2);
      more.set(this.windows);
      this.windows = more;
    }
    this.windows[at] = start;
    this.windows[at + 1] = end;
    this.windows[at + 2] = found;
    this.windowsEnd = at + WINDOW;
  }

  /** At a space between two small letters. */
  #isBetweenWords(at: number): boolean {
    const bytes = this.#bytes;
    const [before, after] = [bytes[at - 1] as number, bytes[at + 1] as number];
    return bytes[at] === 0x20 && before >= 0x61 && before <= 0x7a && after >= 0x61 && after <= 0x7a;
  }

  #at(at: number): number {
    return at >= this.#start && at < this.#end ? (this.#bytes[at] as number) : 0;
  }

  #is(at: number, mask: number): boolean {
    return ((CLASS[this.#at(at)] as number) & mask) !== 0;
  }

  /** Schemes of `Authorization`. */
  #scheme(at: number): number {
    const third = this.#at(at + 2) | 0x20;
    if (third !== 0x61 && third !== 0x73) return 0;
    return this.#spells("bearer ", at) || this.#spells("basic ", at) ? SUSPECT.assigned : 0;
  }

  /** In any case. */
  #spells(word: string, at: number): boolean {
    for (let i = 0; i < word.length; i += 1) if ((this.#at(at + i) | 0x20) !== word.charCodeAt(i)) return false;
    return true;
  }

  /** A character of a name before the `@`, and of a host after it. */
  #isInEmail(at: number): boolean {
    const before = this.#at(at - 1);
    const isName =
      this.#is(at - 1, WORD | OTHER) || before === 0x2e || before === 0x25 || before === 0x2b || before === 0x27;
    return isName && this.#is(at + 1, DIGIT | LETTER | OTHER);
  }

  #colon(at: number): number {
    const next = this.#at(at + 1);
    if (next === 0x2f) {
      if (this.#at(at + 2) !== 0x2f) return 0;
      return (this.#isInAddress(at + 3) ? SUSPECT.inUrl : 0) | (this.#isHookHost(at + 3) ? SUSPECT.webhook : 0);
    }
    const isBot = next === 0x41 && this.#at(at + 2) === 0x41 && this.#is(at - 1, DIGIT);
    return (isBot ? SUSPECT.key : 0) | (at >= this.#groupsEnd && this.#isInIpv6(at) ? SUSPECT.ipv6 : 0);
  }

  /** Whether the host that begins here is one of those where webhooks are: each has one of these words in it. */
  #isHookHost(from: number): boolean {
    for (let at = from; at < from + HOST_WINDOW; at += 1) {
      if (!this.#is(at, WORD) && this.#at(at) !== 0x2e) return false;
      const first = (this.#bytes[at] as number) | 0x20;
      for (const word of HOOK_WORDS) if (first === word.charCodeAt(0) && this.#spells(word, at)) return true;
    }
    return false;
  }

  /** Whether an `@` follows before anything that ends the user and password of an address. */
  #isInAddress(from: number): boolean {
    for (let at = from; at < from + ADDRESS_WINDOW; at += 1) {
      if (at >= this.#end) return false;
      const byte = this.#bytes[at];
      if (byte === 0x40) return true;
      if (byte === 0x2f || byte === 0x20 || byte === 0x3c || byte === 0x3e || byte === 0x27) return false;
    }
    return true;
  }

  /** At the first colon of a run of groups: seven colons, or two beside each other and some digits. */
  #isInIpv6(first: number): boolean {
    let digits = 0;
    let colons = 0;
    let hasGap = false;
    for (let at = first - 1; at >= first - 4 && this.#is(at, HEX); at -= 1) digits += 1;
    let at = first;
    for (; ; at += 1) {
      if (this.#at(at) === 0x3a) {
        colons += 1;
        hasGap ||= this.#at(at + 1) === 0x3a;
      } else if (this.#is(at, HEX)) digits += 1;
      else break;
    }
    this.#groupsEnd = at;
    return digits >= 3 && (hasGap || colons >= 7);
  }

  /** Whether the end of a name for a secret stands a little before. */
  #assigned(at: number): number {
    // All such names end in y, t, n or d; other letters, and what is none, may be a quote, white space or the end of an escape.
    const last = this.#at(at - 1);
    if (((CLASS[last] as number) & LETTER) !== 0 && NAME_ENDS[last] !== 1) return 0;
    for (let from = Math.max(this.#start, at - NAME_WINDOW); from < at; from += 1) {
      const first = (this.#bytes[from] as number) | 0x20;
      for (const name of NAMES) {
        if (first !== name[0]) continue;
        let i = 1;
        while (i < name.length && (this.#at(from + i) | 0x20) === name[i]) i += 1;
        if (i === name.length) return SUSPECT.assigned;
      }
    }
    return 0;
  }

  /** Characters of tokens. */
  #runsOn(from: number, count: number): boolean {
    for (let at = from; at < from + count; at += 1) if (!this.#is(at, WORD)) return false;
    return true;
  }

  /** AKIA…, ASIA…, AC…, SK…, AIza…: no separator, but a long run. */
  #capitals(at: number): number {
    const next = this.#at(at + 1);
    const isStart = next === 0x4b || (this.#bytes[at] === 0x41 && [0x53, 0x47, 0x49, 0x52, 0x4e, 0x43].includes(next));
    return isStart && this.#runsOn(at + 2, 14) ? SUSPECT.key : 0;
  }

  /** After the last digit of the number that begins here, whatever is used to group digits. */
  #numberEnd(from: number): number {
    let last = from;
    for (let at = from + 1; this.#is(at, DIGIT | BETWEEN); at += 1) if (this.#is(at, DIGIT)) last = at;
    return last + 1;
  }

  #number(from: number, end: number): number {
    let digits = 0;
    let dots = 0;
    let hasZeroFirst = false;
    for (let at = from; at < end; at += 1) {
      const byte = this.#bytes[at] as number;
      if (byte === 0x2e) dots += 1;
      if (!this.#is(at, DIGIT)) continue;
      digits += 1;
      hasZeroFirst ||= byte === 0x30 && (at === from || !this.#is(at - 1, DIGIT));
    }
    const before = this.#at(from - 1);
    // After a letter the first digits may be those of an escape.
    const isDialled = hasZeroFirst || before === 0x2b || before === 0x28 || this.#is(from - 1, LETTER);
    const isAccount = this.#is(from - 1, LETTER) && this.#is(from - 2, LETTER) && this.#is(from + 1, DIGIT);
    return (
      (dots >= 3 ? SUSPECT.ipv4 : 0) |
      (digits >= 8 && isDialled ? SUSPECT.phone : 0) |
      (digits >= 10 ? SUSPECT.nanpPhone : 0) |
      (digits >= 13 ? SUSPECT.card : 0) |
      (isAccount ? SUSPECT.iban : 0)
    );
  }
}
