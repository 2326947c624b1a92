/** Names that a spec declares, read fast and forgivingly: a spec that does not load yet has names too. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseDocument } from "yaml";
import { BLOCK_KEYS, KINDS, type KindName } from "../../address.ts";
import type { Candidate, NameKind } from "./complete.ts";

/** A spec that takes longer to read than one waits for a Tab key is not read. */
const MOST_BYTES = 1 << 20;

interface Named {
  readonly kind: KindName;
  readonly name: string;
  readonly about: string;
}

interface SpecNames {
  readonly blocks: readonly Named[];
  readonly variables: readonly Candidate[];
}

function readSpec(path: string): Readonly<Record<string, unknown>> {
  try {
    const text = readFileSync(path, "utf8");
    if (text.length > MOST_BYTES) return {};
    const value: unknown = parseDocument(text, { logLevel: "silent" }).toJS({ maxAliasCount: 1000 });
    return isMap(value) ? value : {};
  } catch {
    return {};
  }
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function namesIn(files: readonly string[], cwd: string): SpecNames {
  const specs = files.map((file) => readSpec(resolve(cwd, file)));
  const blocks = new Map<string, Named>();
  const variables = new Map<string, Candidate>();
  for (const spec of specs) {
    if (isMap(spec.server))
      blocks.set("server.default", { kind: "server", name: "default", about: wordsOf(spec.server) });
    for (const kind of KINDS)
      for (const [name, body] of Object.entries(
        isMap(spec[BLOCK_KEYS[kind]]) ? (spec[BLOCK_KEYS[kind]] as object) : {},
      ))
        blocks.set(`${kind}.${name}`, { kind, name, about: wordsOf(body) });
    for (const [name, body] of Object.entries(isMap(spec.variables) ? spec.variables : {}))
      variables.set(name, { value: `${name}=`, about: isMap(body) ? String(body.description ?? body.type ?? "") : "" });
  }
  return { blocks: [...blocks.values()], variables: [...variables.values()] };
}

/** What tells one block from another: its type, backend or origin. */
function wordsOf(body: unknown): string {
  if (!isMap(body)) return "";
  const { type, backend, model, source, checkpoint } = body;
  return [type, backend, model, source, checkpoint].filter((word) => typeof word === "string").join(" ");
}

/** All names of a kind; `weights` are what `sample` may be asked of. */
export function namesOf(kind: Exclude<NameKind, "topic">, files: readonly string[], cwd: string): readonly Candidate[] {
  const { blocks, variables } = namesIn(files, cwd);
  const of = (wanted: KindName, isFull: boolean): Candidate[] =>
    blocks
      .filter((block) => block.kind === wanted)
      .map(({ name, about }) => ({ value: isFull ? `${wanted}.${name}` : name, about: about || wanted }));
  switch (kind) {
    case "variable":
      return variables;
    case "address":
      return KINDS.flatMap((each) => of(each, true));
    case "weights":
      return [...of("run", false), ...of("deployment", true), { value: "base", about: "the server's base model" }];
    default:
      return of(kind, false);
  }
}
