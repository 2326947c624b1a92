/** What `rlcli explain` can be asked for, as candidates. */
import { KINDS } from "../../address.ts";
import { CODES } from "../../codes.ts";
import { blockInfo } from "../../config/fields.ts";
import { LOSSES } from "../../losses/registry.ts";
import { METRICS } from "../../training/rl/metrics.ts";
import { PAGES } from "../pages.ts";
import type { Candidate } from "./complete.ts";

/** Fields only of a block that was begun: there are hundreds. */
export function topicsFor(typed: string): readonly Candidate[] {
  const fields = KINDS.filter((kind) => typed.startsWith(`${kind}.`)).flatMap((kind) =>
    blockInfo(kind).fields.map(({ path, title }) => ({ value: `${kind}.${path}`, about: title })),
  );
  const blocks = KINDS.map((kind) => ({ value: kind, about: `the block ${kind}` }));
  const metrics = METRICS.map(({ name, description }) => ({ value: name, about: description.split(". ")[0] ?? "" }));
  const codes = /^rl\d?/i.test(typed)
    ? Object.entries(CODES).map(([value, { summary }]) => ({ value, about: summary }))
    : [];
  const losses = LOSSES.map(({ name, description }) => ({ value: name, about: description }));
  const pages = PAGES.map(({ name, about }) => ({ value: name, about }));
  return [...blocks, ...pages, ...fields, ...losses, ...metrics, ...codes];
}
