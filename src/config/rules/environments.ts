/** What a grader of each type needs, and that each part of an environment is one. */

import { listNames } from "../../suggest.ts";
import type { Block } from "../blocks.ts";
import { blockInfo } from "../fields.ts";
import { child, descend, entriesOf, type Tree, textOf } from "../tree.ts";
import type { RuleContext } from "./rule.ts";

/** Options without which a type says nothing. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  json_schema: ["schema"],
  command: ["command"],
  http: ["url"],
  module: ["module"],
  judge: ["url", "model", "rubric"],
  harbor: ["tasks"],
};

/** What is said of rows and graders; tasks in sandboxes have neither. */
const OF_GRADERS: readonly string[] = [
  "dataset",
  "question",
  "prompt",
  "few_shot",
  "weight",
  "parts",
  "length_penalty",
  "tests",
  "timeout",
  "retries",
  "concurrency",
];

/** Every grader needs rows with tasks; `harbor` brings its own, and would ignore all that is about rows. */
export function tasksComeFromOneSide(block: Block, context: RuleContext): void {
  if (block.kind !== "environment") return;
  const type = textOf(child(block.tree, "type"));
  if (type !== "harbor") {
    if (child(block.tree, "dataset") === undefined)
      context.reporter.atKey(block, "", "RL1106", "An environment needs `dataset`, the tasks.");
    return;
  }
  for (const key of OF_GRADERS) {
    if (child(block.tree, key) === undefined) continue;
    const detail = `\`${key}\` means nothing with \`type: harbor\`, whose tasks bring their own tests. Remove it.`;
    context.reporter.atKey(block, key, "RL1203", detail);
  }
}

export function graderIsWhole(block: Block, context: RuleContext): void {
  if (block.kind !== "environment") return;
  for (const missing of missingOptions(block.tree)) {
    const type = textOf(child(block.tree, "type"));
    context.reporter.atKey(block, "", "RL1106", `An environment of type \`${type}\` needs \`${missing}\`.`);
  }
}

function missingOptions(grader: Tree): readonly string[] {
  const type = textOf(child(grader, "type")) ?? "";
  const isRegex = type === "match" && textOf(child(grader, "mode")) === "regex";
  return [...(NEEDED[type] ?? []), ...(isRegex ? ["pattern"] : [])].filter((key) => child(grader, key) === undefined);
}

/** Keys of a part that are not options of its type. */
const OF_A_PART: ReadonlySet<string> = new Set(["type", "name", "weight", "timeout", "concurrency"]);

/** Options that are the environment's own: a part of that type would need a conversation of its own. */
const WHOLE_ONLY: ReadonlySet<string> = new Set(["max_turns"]);

export function partsAreGraders(block: Block, context: RuleContext): void {
  if (block.kind !== "environment") return;
  const parts = descend(block.tree, "parts");
  if (parts?.type !== "list") return;
  const names = new Set<string>();
  for (const [i, part] of parts.items.entries()) {
    const path = `parts.${i}`;
    const type = textOf(child(part, "type")) ?? "";
    const options = optionsOf(type);
    for (const [key] of entriesOf(part)) {
      if (OF_A_PART.has(key) || options.includes(key)) continue;
      const detail = `A part of type \`${type}\` has no option \`${key}\`. It has ${listNames([...options, ...OF_A_PART], 20)}.`;
      context.reporter.at(block, `${path}.${key}`, "RL1203", detail);
    }
    for (const missing of missingOptions(part))
      context.reporter.at(block, path, "RL1106", `A part of type \`${type}\` needs \`${missing}\`.`);
    const name = textOf(child(part, "name")) ?? type;
    if (names.has(name)) {
      const detail = `Two parts are called \`${name}\`, so that their metrics would be one. Give each a \`name\`.`;
      context.reporter.at(block, path, "RL1205", detail);
    }
    names.add(name);
  }
}

function optionsOf(type: string): readonly string[] {
  return blockInfo("environment")
    .fields.filter(({ when, path }) => when?.path === "type" && when.values.includes(type) && !WHOLE_ONLY.has(path))
    .map(({ path }) => path);
}
