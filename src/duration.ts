/** Durations as the spec writes them: a whole number and a unit, `300s`, `10m`, `2h`, `1d`. */

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds of a duration that the schema has already checked; NaN for other text. */
export function durationMs(text: string): number {
  const match = /^([0-9]{1,9})([smhd])$/.exec(text);
  return match ? Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS] : Number.NaN;
}
