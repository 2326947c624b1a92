/** Terminal colours, in the few roles that output has. A disabled style returns its text unchanged. */

type Paint = (text: string) => string;

export interface Style {
  readonly isEnabled: boolean;
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly blue: Paint;
  readonly magenta: Paint;
  readonly cyan: Paint;
}

/** SGR codes: what switches each on and off. */
const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

export function createStyle(isEnabled: boolean): Style {
  const paints = Object.entries(CODES).map(([name, [on, off]]): [string, Paint] => [
    name,
    isEnabled ? (text) => (text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`) : (text) => text,
  ]);
  return { isEnabled, ...(Object.fromEntries(paints) as Record<keyof typeof CODES, Paint>) };
}

/**
 * Whether to use colour: --no-color first, then FORCE_COLOR (as Node has it, over NO_COLOR), NO_COLOR (no-color.org: set
 * and not empty), TERM=dumb, and last whether the stream is a terminal.
 */
export function wantsColor(options: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
  /** False for --no-color. */
  readonly color: boolean;
}): boolean {
  const { FORCE_COLOR: force, NO_COLOR: no, TERM: term } = options.env;
  if (!options.color) return false;
  if (force !== undefined) return force !== "0" && force !== "false";
  if (no !== undefined && no !== "") return false;
  return options.isTerminal && term !== "dumb";
}
