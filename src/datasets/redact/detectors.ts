/**
 * What personal data and secrets look like. Each detector matches and checks what it matched; checksums keep order numbers
 * and identifiers from being taken for cards and accounts. `suspicion.ts` says which of them have to look at a text at all,
 * and must know of every form that is added here.
 */
import { isCard, isIban, isIpv4, isIpv6, isPhone } from "./checks.ts";
import { SUSPECT } from "./suspicion.ts";

export interface Detector {
  /** Written in capitals into placeholders. */
  readonly type: string;
  /** A text that is not suspected of this has no match. */
  readonly suspect: number;
  readonly pattern: RegExp;
  /** Every match holds `text`, at most `reach` UTF-16 units after its start or what the pattern looks at before it. */
  readonly anchor?: {
    readonly text: string;
    readonly reach: number;
    /** False for what no match has before `text`. */
    readonly mayPrecede: (utf16: number) => boolean;
  };
  readonly accepts?: (match: string, text: string, at: number) => boolean;
  /** The pattern's first group is no part of the value: it stays. */
  readonly hasPrefix?: true;
  /** Spellings that are the same value share a placeholder. */
  readonly same?: (match: string) => string;
}

/** Prefixes by which services mark their keys, and how long what follows is. */
const TOKENS = [
  "sk-ant-[A-Za-z0-9_-]{20,}",
  "sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}",
  "sk-[A-Za-z0-9]{20,}",
  "(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",
  "whsec_[A-Za-z0-9+/=]{20,}",
  "(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[0-9A-Z]{16}",
  "gh[pousr]_[A-Za-z0-9]{36,}",
  "github_pat_[A-Za-z0-9_]{40,}",
  "glpat-[A-Za-z0-9_-]{20,}",
  "xox[abeprs]-[A-Za-z0-9-]{10,}",
  "xapp-\\d-[A-Za-z0-9-]{20,}",
  "AIza[0-9A-Za-z_-]{35}",
  "GOCSPX-[A-Za-z0-9_-]{28}",
  "ya29\\.[0-9A-Za-z_-]{20,}",
  "hf_[A-Za-z0-9]{30,}",
  "npm_[A-Za-z0-9]{36}",
  "pypi-AgE[A-Za-z0-9_-]{50,}",
  "SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{30,}",
  "dop_v1_[a-f0-9]{64}",
  "(?:gsk|xai|pplx|fw|lsv2_(?:pt|sk)|tvly|r8|tml|dckr_pat|shpat|hvs|rubygems|sntrys|nvapi|csk)[_.-][A-Za-z0-9_-]{24,}",
  "key-[0-9a-f]{32}",
  "AC[0-9a-f]{32}|SK[0-9a-f]{32}",
  "\\d{8,10}:AA[A-Za-z0-9_-]{33}",
];

/** `password = …`, `"api_key": "…"`, `Authorization: Bearer …`: the value after a name that says it is secret. */
const ASSIGNED =
  /((?<![A-Za-z])(?:(?:aws_)?secret(?:_access)?_key|client_secret|api[_-]?key|access[_-]?token|auth[_-]?token|refresh[_-]?token|password|passwd|pwd|secret)["']?\s{0,3}[:=]\s{0,3}["']?|\b(?:Bearer|Basic) (?=[A-Za-z0-9+/_.~-]{16}))[A-Za-z0-9+/_.~!@#$%^&*-]{8,200}={0,2}/gi;

/** The password of an address such as `postgres://user:password@host`. */
const IN_URL = /((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,15}:\/\/[^\s:/@"'<>]{0,60}:)[^\s/@"'<>]{3,100}(?=@)/gi;

/**
 * Addresses that are secrets themselves, since whoever has one may post there; the host stays. Of Teams, both the connectors and
 * the flows that took their place.
 */
const WEBHOOK = new RegExp(
  `(https?:\\/\\/(?:${[
    "hooks\\.slack(?:-gov)?\\.com\\/(?:services|workflows|triggers)\\/",
    "(?:[\\w-]{1,20}\\.)?discord(?:app)?\\.com\\/api\\/(?:v\\d{1,2}\\/)?webhooks\\/",
    "(?:[\\w-]{1,63}\\.)?webhook\\.office(?:365)?\\.com\\/webhook(?:b2)?\\/",
    "outlook\\.office(?:365)?\\.com\\/webhook\\/",
    "[\\w.-]{1,120}\\.(?:logic\\.azure|api\\.powerplatform)\\.com(?::443)?\\/(?=[\\w/.%-]{0,200}workflows\\/)",
    "chat\\.googleapis\\.com\\/v1\\/spaces\\/",
    "hooks\\.zapier\\.com\\/hooks\\/",
    "hook\\.(?:[\\w-]{1,12}\\.)?make\\.com\\/",
  ].join("|")}))[\\w@/.%:?=&;+~-]{12,600}(?<![.:;?])`,
  "gi",
);

/** A value that is a variable, a placeholder or words of the sentence is no secret. */
const isSecretValue = (match: string): boolean =>
  !/^(?:[$%<{[]|\*+$|x+$|\.+$|your|example|changeme|placeholder|redacted|none|null|undefined|true|false|process\.|os\.|env\.)/i.test(
    match,
  ) &&
  /\d|[^A-Za-z.]/.test(match) &&
  !/^[A-Za-z]+(?:[._-][A-Za-z]+)*[.,!]?$/.test(match);

/** ASCII characters of the part of an address before its `@`. */
const MAILBOX = new Uint8Array(128);
for (const c of "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._%+'-") MAILBOX[c.charCodeAt(0)] = 1;

/** In the order in which they are looked for: what contains other things goes first. */
export const DETECTORS: readonly Detector[] = [
  {
    type: "PRIVATE_KEY",
    suspect: SUSPECT.privateKey,
    pattern:
      /-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  {
    type: "SECRET",
    suspect: SUSPECT.webhook,
    pattern: WEBHOOK,
    hasPrefix: true,
    // As documentation writes them.
    accepts: (match) => !/x{8}/i.test(match),
  },
  {
    type: "JWT",
    suspect: SUSPECT.jwt,
    pattern: /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g,
  },
  {
    type: "KEY",
    suspect: SUSPECT.key,
    pattern: new RegExp(`(?<![A-Za-z0-9_])(?:${TOKENS.join("|")})(?![A-Za-z0-9])`, "g"),
  },
  {
    type: "SECRET",
    suspect: SUSPECT.assigned,
    pattern: ASSIGNED,
    hasPrefix: true,
    accepts: isSecretValue,
  },
  {
    type: "SECRET",
    suspect: SUSPECT.inUrl,
    pattern: IN_URL,
    hasPrefix: true,
    accepts: (match) => !match.startsWith("["),
  },
  {
    type: "EMAIL",
    suspect: SUSPECT.email,
    pattern:
      /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}][\p{L}\p{N}._%+'-]{0,63}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}[\p{L}]{2,24}(?![\p{L}\p{N}-])/gu,
    anchor: { text: "@", reach: 130, mayPrecede: (utf16) => utf16 >= 0x80 || MAILBOX[utf16] === 1 },
    accepts: (match) => !/@\dx\.(png|jpe?g|gif|webp)$/i.test(match),
    same: (match) => match.toLowerCase(),
  },
  {
    type: "IBAN",
    suspect: SUSPECT.iban,
    pattern: /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])/gi,
    accepts: isIban,
    same: (match) => match.replace(/[ -]/g, "").toUpperCase(),
  },
  {
    type: "CARD",
    suspect: SUSPECT.card,
    pattern: /(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)/g,
    accepts: isCard,
    same: (match) => match.replace(/\D/g, ""),
  },
  {
    type: "IP",
    suspect: SUSPECT.ipv4,
    pattern: /(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)/g,
    accepts: isIpv4,
  },
  {
    type: "IP",
    suspect: SUSPECT.ipv6,
    pattern: /(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])/gi,
    accepts: isIpv6,
    same: (match) => match.toLowerCase(),
  },
  {
    type: "PHONE",
    suspect: SUSPECT.nanpPhone,
    pattern: /(?<![\w.+/=-])(?:\+?1[ .-]?)?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}(?![\w/=-]|\.\d)/g,
    same: (match) => match.replace(/\D/g, ""),
  },
  {
    type: "PHONE",
    suspect: SUSPECT.phone,
    // A digit after at most three separators, so that no text can be read in two ways: long numbers cost no time.
    pattern: /(?<![\w.+/=-])\+?\(?\d(?:[ ().\-/]{0,3}\d){7,14}(?![\w/=-]|\.\d)/g,
    accepts: isPhone,
    same: (match) => match.replace(/\D/g, ""),
  },
];
