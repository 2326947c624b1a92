/** Differences between what was recorded and what is desired, attribute by attribute, and the action they ask for. */
import type { Action, AttributeChange } from "../change.ts";
import { type Identity, recordedValue } from "../kind.ts";
import type { ChangeRule } from "../spec.ts";
import { canonicalJson, type Value } from "../value.ts";

/** How strong a rule is: the strongest of all changed attributes decides the action. */
const STRENGTH: readonly ChangeRule[] = ["none", "rule", "update", "extend", "restart", "replace"];

/**
 * Changed attributes, strongest first and otherwise in the schema's order. Recorded attributes leave out what equals its
 * default, so an absent one means "the default". `ruleOf` tells the rule of an attribute that is no longer written.
 */
export function diffAttributes(
  recorded: Readonly<Record<string, Value>>,
  identity: Identity,
  ruleOf: (path: string) => ChangeRule,
): readonly AttributeChange[] {
  const changes: AttributeChange[] = [];
  for (const [path, attribute] of identity.attributes) {
    const isRecorded = Object.hasOwn(recorded, path);
    if (!isRecorded && attribute.isDefault) continue;
    const before = recorded[path];
    if (isRecorded && isEqual(before, attribute.value)) continue;
    const because = identity.because.get(path);
    changes.push({
      path,
      ...(isRecorded && before !== undefined ? { before } : {}),
      after: attribute.value,
      rule: attribute.change,
      ...(because === undefined ? {} : { because }),
    });
  }
  for (const [path, before] of Object.entries(recorded)) {
    if (!identity.attributes.has(path)) changes.push({ path, before, rule: ruleOf(path) });
  }
  return changes.sort((a, b) => STRENGTH.indexOf(b.rule) - STRENGTH.indexOf(a.rule));
}

/** Most values are scalars, and most have not changed. */
function isEqual(a: Value | undefined, b: Value): boolean {
  if (a === b) return true;
  const recorded = recordedValue(b);
  return recorded === a || (typeof recorded === "object" && canonicalJson(a) === canonicalJson(recorded));
}

/** The action that attribute changes ask for where the kind does not decide itself. */
export function actionOf(changes: readonly AttributeChange[]): Action {
  switch (changes[0]?.rule) {
    case "replace":
      return "replace";
    case "restart":
      return "restart";
    case "extend":
      return "extend";
    case "update":
    case "rule":
      return "update";
    case "none":
    case undefined:
      return "none";
  }
}

/** One sentence on why the strongest change forces what it forces. */
export function reasonOf(action: Action, changes: readonly AttributeChange[]): string {
  const cause = changes[0];
  if (!cause) return "";
  const verb = PAST[action];
  return cause.because ? `${verb} because ${cause.because} changed` : `${verb} because ${cause.path} changed`;
}

const PAST: Readonly<Record<Action, string>> = {
  create: "created",
  update: "updated",
  restart: "restarted",
  extend: "extended",
  resume: "resumed",
  restore: "restored",
  replace: "replaced",
  destroy: "destroyed",
  forget: "forgotten",
  none: "unchanged",
};
