/** Which fields may and must stand together, read from the field table. */
import { listNames } from "../../suggest.ts";
import { isSecret } from "../../value.ts";
import type { Block } from "../blocks.ts";
import { type BlockInfo, type BlockName, blockInfo, type FieldInfo } from "../fields.ts";
import { addressesWithCredentials, secretValues } from "../secrets.ts";
import { child, descend, entriesOf, type Tree, textOf } from "../tree.ts";
import { article, capital } from "../words.ts";
import type { RuleContext } from "./rule.ts";

/** A field that the block's backend or type would ignore. */
export function fieldsApply(block: Block, context: RuleContext): void {
  const info = blockInfo(block.kind as BlockName);
  for (const field of info.fields) {
    const { when } = field;
    if (when === undefined || isPartOf(when, field.path, info) || descend(block.tree, field.path) === undefined)
      continue;
    const value = textOf(descend(block.tree, when.path)) ?? defaultOf(info, when.path);
    if (value === undefined || when.values.includes(value) || !isKnown(info, when.path, value)) continue;
    context.reporter.atKey(block, field.path, "RL1203", inapplicable(info, field, when.path, value));
  }
}

/** Whether the group that a field lies in is reported already. */
function isPartOf(when: FieldInfo["when"], path: string, info: BlockInfo): boolean {
  return info.fields.some((f) => f.type === "group" && path.startsWith(`${f.path}.`) && f.when?.path === when?.path);
}

/** A value that the deciding field does not have is reported there; what it would mean here nobody can tell. */
function isKnown(info: BlockInfo, path: string, value: string): boolean {
  const values = info.fields.find((f) => f.path === path)?.values;
  return values === undefined || values.includes(value);
}

function defaultOf(info: BlockInfo, path: string): string | undefined {
  const value = info.fields.find((f) => f.path === path)?.default;
  return typeof value === "string" ? value : undefined;
}

function inapplicable(info: BlockInfo, field: FieldInfo, path: string, value: string): string {
  const key = path.split(".").at(-1);
  const name = field.path.split(".").at(-1);
  const only = listNames(field.when?.values ?? []);
  const options = info.fields.filter((f) => f.when?.path === path && f.when.values.includes(value)).map((f) => f.path);
  const has = options.length === 0 ? "It has no options of its own." : `It has ${listNames(options, 20)}.`;
  return info.name === "loss"
    ? `Loss type \`${value}\` has no option \`${name}\`, which belongs to ${only}. ${has}`
    : `\`${name}\` means nothing with \`${key}: ${value}\`, only with ${only}. Remove it.`;
}

export function keyGroups(block: Block, context: RuleContext): void {
  for (const group of blockInfo(block.kind as BlockName).groups) {
    const tree: Tree | undefined = descend(block.tree, group.path);
    if (tree?.type !== "map") continue;
    const present = group.keys.filter((key) => tree.entries.has(key));
    const prefix = group.path === "" ? "" : `${group.path}.`;
    const where = group.path === "" ? capital(article(block.kind)) : `\`${group.path}\``;
    if (present.length > 1)
      context.reporter.atKey(
        block,
        prefix + present[1],
        "RL1109",
        `${where} takes either ${present.map((k) => `\`${k}\``).join(" or ")}, not both. Keep one.`,
      );
    else if (present.length === 0 && group.isRequired)
      context.reporter.atKey(
        block,
        group.path,
        "RL1106",
        `${where} needs either ${group.keys.map((k) => `\`${k}\``).join(" or ")}.`,
      );
  }
}

export function secretsAreReferences(block: Block, context: RuleContext): void {
  for (const { path, tree } of secretValues(block)) {
    if (tree.type !== "scalar" || tree.isFaulty || tree.value === null || isSecret(tree.value)) continue;
    const detail = `\`${path}\` takes \`\${secret.NAME}\`: the value is then read from the environment variable NAME when it is used, and never stored. If this key is real, consider it leaked.`;
    context.reporter.at(block, path, "RL1308", detail);
  }
}

/** They would be hashed, stored and shown in plans. */
export function addressesAreOpen(block: Block, context: RuleContext): void {
  for (const { path, what } of addressesWithCredentials(block)) {
    const detail = `\`${path}\` has ${what}, and addresses are stored and shown in plans. ${wayOut(path)} If this one is real, consider it leaked.`;
    context.reporter.at(block, path, "RL1308", detail);
  }
}

/** Where the secret of an address can be instead. */
function wayOut(path: string): string {
  switch (path.split(".")[0]) {
    case "command":
      return "Let the command read it from the environment: `$NAME` in a shell.";
    case "python":
      return "Keep it in `~/.netrc`, where uv and git look for it.";
    case "registry":
      return "Download the file and name its path.";
    case "source":
    case "import":
      return "Leave it out: objects are read as `s3://BUCKET/KEY` with the key in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and by hand `rlcli import ADDRESS -o rows.jsonl` takes a signed address and stores nothing of it.";
    default:
      return "Leave it out: a key goes into `api_key: ${secret.NAME}`, or into the program that listens there.";
  }
}

export function externalHasUrl(block: Block, context: RuleContext): void {
  if (
    block.kind !== "server" ||
    textOf(child(block.tree, "backend")) !== "external" ||
    entriesOf(block.tree).has("url")
  )
    return;
  context.reporter.atKey(
    block,
    "",
    "RL1106",
    "An external server needs `url`, for instance `url: http://gpu-box:8000`.",
  );
}
