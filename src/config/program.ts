/**
 * Specs that are programs: a module whose default export is the spec, or a function that returns it. What it gives is written as YAML and goes
 * the way of every spec, so that it means the same; places in diagnostics are of that YAML.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Diagnostic, diagnostic, messageOf } from "../diagnostic.ts";
import { digestBytes } from "../digest.ts";
import { Source } from "./source.ts";

const TYPESCRIPT = /\.[cm]?ts$/;

/** Whether a spec file is a program by its name. */
export const isProgram = (file: string): boolean => TYPESCRIPT.test(file) || /\.[cm]?js$/.test(file);

type Env = Readonly<Record<string, string | undefined>>;

/** Runs it; a fault is a diagnostic. */
export async function readProgram(
  file: string,
  { cwd, env }: { readonly cwd: string; readonly env: Env },
): Promise<Source | Diagnostic> {
  const path = resolve(cwd, file);
  if (!existsSync(path))
    return diagnostic(
      "RL1001",
      `There is no file \`${file}\`. Name the spec with -f, or change to its folder with -C.`,
    );
  if (TYPESCRIPT.test(file) && !canRunTypeScript())
    return diagnostic(
      "RL1013",
      `Node ${process.versions.node} cannot run \`${file}\`: TypeScript needs Node 22.18 or later. Use that, or write \`${file.replace(TYPESCRIPT, ".mjs")}\`, in which a comment \`/** @type {import("rlcli").SpecSource} */\` brings the same types.`,
    );
  let value: unknown;
  try {
    const { default: exported } = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
    value = typeof exported === "function" ? await exported({ env }) : exported;
  } catch (error) {
    return diagnostic("RL1013", faultWords(file, error));
  }
  if (value === undefined)
    return diagnostic(
      "RL1013",
      `\`${file}\` exports no spec. Write \`export default defineSpec({ rlcli: 1, project: "…" })\`.`,
    );
  const stray = strayValue(value, []);
  if (stray !== undefined)
    return diagnostic(
      "RL1013",
      `\`${file}\` gives ${stray}, which no spec can hold: only texts, numbers, booleans, lists and maps.`,
    );
  // Loaded only for a spec that is a program.
  const text = (await import("yaml")).stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
  return new Source(`${file} (as YAML)`, path, text, digestBytes(Buffer.from(text)));
}

/** Node from 22.18 on leaves types out by itself. */
function canRunTypeScript(): boolean {
  const features = process.features as { readonly typescript?: unknown };
  return Boolean(features.typescript);
}

function faultWords(file: string, error: unknown): string {
  const isMissing = /Cannot find package 'rlcli'/.test(messageOf(error));
  const advice = isMissing
    ? "Install rlcli beside the spec: `npm install -D rlcli`."
    : "Mend the program; `node` runs it by itself.";
  const place = placeOf(error, file);
  return `\`${file}\` failed: ${messageOf(error).replace(/\.?$/, ".")}${place} ${advice}`;
}

/** Line of the program in the error's stack. */
function placeOf(error: unknown, file: string): string {
  const name = file.split(/[\\/]/).at(-1) ?? file;
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const line = stack.split("\n").find((one) => one.includes(`/${name}:`));
  const found = line === undefined ? null : /:(\d+):\d+\)?$/.exec(line.trim());
  return found ? ` It was at line ${found[1]}.` : "";
}

/** The first value that YAML would not give back as it is: where it stands, and what it is. */
function strayValue(
  value: unknown,
  path: readonly (string | number)[],
  seen: ReadonlySet<unknown> = new Set(),
): string | undefined {
  const at = path.length === 0 ? "as the spec" : `at \`${path.join(".")}\``;
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${value} ${at}`;
  if (typeof value !== "object") return `a value of type ${typeof value} ${at}`;
  if (seen.has(value)) return `a value that holds itself ${at}`;
  const inner = new Set([...seen, value]);
  const prototype = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null)
    return `a ${value.constructor?.name ?? "special"} object ${at}`;
  for (const [key, one] of Object.entries(value)) {
    // A field that is undefined is one that is not there.
    if (one === undefined && !Array.isArray(value)) continue;
    const stray = strayValue(one, [...path, key], inner);
    if (stray !== undefined) return stray;
  }
  return undefined;
}
