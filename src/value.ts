/**
 * Values of a spec during planning. Most are known; some are known only after apply (an address, a path, a metric);
 * a secret is known but only its name may ever be stored, hashed or printed.
 */

export type Scalar = string | number | boolean | null;
export type Json = Scalar | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** Marks a value that exists only after apply. */
export interface Unknown {
  readonly $unknown: string;
}

/** A secret's name (`${secret.NAME}`), in the place of its value. Resolved only where it is used. */
export interface SecretRef {
  readonly $secret: string;
}

export type Value = Scalar | Unknown | SecretRef | readonly Value[] | { readonly [key: string]: Value };
export type ValueObject = { readonly [key: string]: Value };

export function isUnknown(value: unknown): value is Unknown {
  return typeof value === "object" && value !== null && "$unknown" in value;
}

export function isSecret(value: unknown): value is SecretRef {
  return typeof value === "object" && value !== null && "$secret" in value;
}

/**
 * JSON with sorted keys and no white space: equal content gives equal text. Numbers are written as JavaScript writes
 * them, `undefined` members are left out.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const entries = Object.entries(value as Record<string, unknown>)
    .filter(([, v]) => v !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${canonicalJson(v)}`).join(",")}}`;
}
