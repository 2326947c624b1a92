/** Takes secrets out of texts that leave the machine: values that are known to be secret here, and what looks like one. */
import { DETECTORS } from "../../datasets/redact/detectors.ts";
import { MASK, withoutCredentials } from "../../url.ts";

/** Shorter values are words of every text. */
const LEAST = 6;
/** Shorter pieces of base64 are in other words too. */
const LEAST_BASE64 = 8;
/** Environment variables that hold secrets, by their names. */
const SECRET_NAME = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|DSN|DATABASE_URL|WEBHOOK/i;
/** Not so secret by their names, and in every text. */
const HARMLESS_NAME = /^(SSH_AUTH_SOCK|XAUTHORITY|.*_KEY_ID_FILE|.*(PATH|DIR|FILE))$/i;

const SECRET_TYPES = new Set(["PRIVATE_KEY", "JWT", "KEY", "SECRET", "EMAIL"]);

/** The value after a name that says it is secret, in YAML, JSON, headers and assignments; `${secret.NAME}` is only a name. */
const NAMED =
  /((?:api[_-]?key|(?:access|auth|refresh|id)[_-]?token|["' ]token|password|passwd|client[_-]?secret|authorization|cookie)["']?\s*[:=]\s*(?:(?:Bearer|Basic)\s+)?["']?)(?!["']?\$\{|\[masked\])([^\s"',;{}\]]{4,})/gi;

/** An option of a command and its value, in one word or in two, also as a list in YAML or JSON. */
const OPTION =
  /(--[\w-]*(?:key|token|secret|password|passwd)(?:=|["']?,?\s+["']?|["']?,["']?))(?![-$<[])([^\s"',\]}]{4,})/gi;

/** Each with what stays, and what is masked. */
const PATTERNS = [NAMED, OPTION];

type Env = Readonly<Record<string, string | undefined>>;

/** Values of the environment that are secret by their names, or because a spec names them. */
export function secretValues(env: Env, named: Iterable<string>): readonly string[] {
  const asked = new Set(named);
  return Object.entries(env).flatMap(([name, value]) => {
    const isSecret = asked.has(name) || (SECRET_NAME.test(name) && !HARMLESS_NAME.test(name));
    return isSecret && value !== undefined ? [value.trim()] : [];
  });
}

/** Names of `${secret.NAME}` in a text. */
export const secretNames = (text: string): readonly string[] =>
  [...text.matchAll(/\$\{secret\.([A-Za-z_]\w*)\}/g)].map(([, name]) => name as string);

/** How a value may stand in a text: as it is, escaped in JSON, in an address, in base64. */
function spellings(value: string): readonly string[] {
  const json = JSON.stringify(value).slice(1, -1);
  return [...new Set([value, json, encodeURIComponent(value), ...base64Within(value)])];
}

/** The part of a longer text's base64 that a value in it decides, by where it begins: `user:password` holds the password too. */
function base64Within(value: string): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.from("\0".repeat(before) + value)
      .toString("base64")
      .replace(/=+$/, "");
    // A character holds six bits: the first ones are shared with what stands before, the last with what follows.
    const inner = encoded.slice(Math.ceil((before * 8) / 6), -1);
    return inner.length >= LEAST_BASE64 ? [inner] : [];
  });
}

export class Masker {
  readonly #spellings: readonly string[];
  #count = 0;

  constructor(values: Iterable<string>) {
    const long = [...new Set(values)].filter((value) => value.length >= LEAST);
    // The longest first: one may hold another.
    this.#spellings = long.flatMap(spellings).sort((a, b) => b.length - a.length);
  }

  /** How many places were masked so far. */
  get count(): number {
    return this.#count;
  }

  /** Only what is known to be secret: for names, in which much looks like something else. */
  maskKnown(text: string): string {
    let masked = text;
    for (const value of this.#spellings) {
      const parts = masked.split(value);
      this.#count += parts.length - 1;
      masked = parts.join(MASK);
    }
    return masked;
  }

  mask(text: string): string {
    // Addresses first: of a parameter, its name and an `=` look like any assignment up to the end of the address.
    let masked = withoutCredentials(this.maskKnown(text), () => {
      this.#count++;
      return MASK;
    });
    for (const pattern of PATTERNS)
      masked = masked.replace(pattern, (_, name: string) => {
        this.#count++;
        return `${name}${MASK}`;
      });
    for (const { type, pattern, accepts, hasPrefix } of DETECTORS)
      if (SECRET_TYPES.has(type))
        masked = masked.replace(pattern, (...found: unknown[]) => {
          const whole = found[0] as string;
          const kept = hasPrefix ? (found[1] as string) : "";
          const match = whole.slice(kept.length);
          if (match === MASK || accepts?.(match, masked, 0) === false) return whole;
          this.#count++;
          return `${kept}${MASK}`;
        });
    return masked;
  }
}
