/**
 * Verbs without a spec stand for one: it is written as an ordinary file under `.rlcli/adhoc/<hash>/`, with its state beside it,
 * in a `.rlcli` of its own, so that the same command finds what it did before, and `--emit-spec` can print it.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { digestJson, shortDigest } from "../digest.ts";
import { writeFileWhole } from "../files.ts";
import type { CommandContext } from "./context.ts";

export interface AdhocSpec {
  readonly file: string;
  readonly text: string;
}

/**
 * `body` is a spec without its version and project. `identity` is what tells one ad-hoc project from another; paths in it are
 * absolute, since the file does not lie where the user stands.
 */
export function adhocSpec(context: CommandContext, verb: string, body: object, identity: unknown = body): AdhocSpec {
  const text = specText(body);
  const folder = join(context.cwd, ".rlcli", "adhoc", shortDigest(digestJson({ verb, identity })));
  const file = join(folder, "rlcli.yaml");
  if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileWhole(file, text);
  return { file, text };
}

export function specText(body: object): string {
  return stringify({ rlcli: 1, project: "adhoc", ...body });
}
