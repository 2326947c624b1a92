/** Values of env tables: `${NAME}` and `${NAME:-default}`, only as a whole value, from the host's environment. */
import { RlcliError } from "../../diagnostic.ts";
import type { EnvTable } from "./config.ts";

export interface ResolvedEnv {
  readonly env: EnvTable;
  /** Names of host variables that are needed and not set. */
  readonly missing: readonly string[];
  /** Values that came from the host: masked in whatever the policy sees. */
  readonly secrets: readonly string[];
}

const TEMPLATE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?\}$/;

export function resolveEnv(table: EnvTable, host: Readonly<Record<string, string | undefined>>): ResolvedEnv {
  const env: Record<string, string> = {};
  const missing: string[] = [];
  const secrets: string[] = [];
  for (const [key, value] of Object.entries(table)) {
    const [, name, fallback] = TEMPLATE.exec(value) ?? [];
    const found = name === undefined ? undefined : host[name];
    if (name === undefined) env[key] = value;
    else if (found !== undefined) {
      env[key] = found;
      if (found !== "") secrets.push(found);
    } else if (fallback !== undefined) env[key] = fallback;
    else missing.push(name);
  }
  return { env, missing, secrets };
}

/** Shorter values are no secrets, and masking them would hide ordinary words. */
const SHORTEST_SECRET = 6;

/** Of a secret that was cut, a piece this long is masked too. */
const SHORTEST_PIECE = 4;
/** How a sandbox marks what it left out of an output. */
const CUT = /(\n\[… \d+ bytes left out …\]\n)/;

/** Puts stars in the place of secrets, before anything is tokenised; also of their pieces where an output was cut through one. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  const long = secrets.filter((secret) => secret.length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length);
  const whole = long.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
  // Every second part is a mark.
  const parts = whole.split(CUT);
  return parts
    .map((part, at) => {
      if (at % 2 === 1) return part;
      const end = at < parts.length - 1 ? pieceAt(part, long, "end") : 0;
      const start = at > 0 ? pieceAt(part, long, "start") : 0;
      return `${start > 0 ? MASK : ""}${part.slice(start, part.length - end)}${end > 0 ? MASK : ""}`;
    })
    .join("");
}

const MASK = "***";

/** Length of the longest piece of a secret at which a text was cut; 0 for none. */
function pieceAt(text: string, secrets: readonly string[], where: "start" | "end"): number {
  const lengths = secrets.map((secret) => {
    for (let length = secret.length - 1; length >= SHORTEST_PIECE; length -= 1)
      if (where === "end" ? text.endsWith(secret.slice(0, length)) : text.startsWith(secret.slice(-length)))
        return length;
    return 0;
  });
  return Math.max(0, ...lengths);
}

/** A failure in whose words no secret stands: tests print what they like, and a fault is written down. */
export function withoutSecrets(error: RlcliError, secrets: readonly string[]): RlcliError {
  const masked = error.diagnostics.map((one) => ({ ...one, detail: maskSecrets(one.detail, secrets) }));
  return masked.every(({ detail }, at) => detail === error.diagnostics[at]?.detail) ? error : new RlcliError(masked);
}
