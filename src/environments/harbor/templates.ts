/** Values of env tables: `${NAME}` and `${NAME:-default}`, only as a whole value, from the host's environment. */
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

/** Puts stars in the place of secrets, before anything is tokenised. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .sort((a, b) => b.length - a.length)
    .reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}
