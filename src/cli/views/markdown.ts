/**
 * A plan as GitHub-flavoured Markdown for a comment on a pull request: what is to be done first, details folded away, and never longer than
 * such a comment may be.
 */
import { ACTION_SYMBOLS, type AttributeChange, type Change } from "../../change.ts";
import type { Diagnostic } from "../../diagnostic.ts";
import type { Queue } from "../../plan/plan.ts";
import type { Value } from "../../value.ts";
import { renderDiagnostic } from "./diagnostic.ts";
import { FORCES, isShown, lineage, renderEstimate, renderSummary, renderValue, shownChanges } from "./plan.ts";
import { createStyle } from "./style.ts";

/** Characters that GitHub takes in a comment's body. */
const MOST_CHARACTERS = 65_536;
/** For the words that say what was left out, and for what a pipeline adds. */
const RESERVE = 1000;

const plain = createStyle(false);

export interface MarkdownPlan {
  readonly project: string;
  readonly changes: readonly Change[];
  readonly queues: readonly Queue[];
  readonly diagnostics: readonly Diagnostic[];
}

export function renderMarkdownPlan({ project, changes, queues, diagnostics }: MarkdownPlan): string {
  const shown = shownChanges(changes);
  const page = new Page(MOST_CHARACTERS - RESERVE);
  page.add(`## Plan for ${code(project)}\n\n${summaryOf(changes)}\n`);
  page.addAll(diagnostics.map(diagnosticBlock), "messages");
  if (shown.length > 0) page.add(`\n| | resource | why | takes |\n|---|---|---|---|\n`);
  page.addAll(shown.map(row), "resources in the table");
  page.addAll(queues.map(queueLine), "queues");
  page.addAll(
    shown.map(details).filter((block) => block !== ""),
    "blocks of details",
  );
  return page.text;
}

/** What stands in the way of a plan. */
export function renderMarkdownFailure(diagnostics: readonly Diagnostic[]): string {
  const page = new Page(MOST_CHARACTERS - RESERVE);
  page.add("## There is no plan\n\nThe spec has to be mended first.\n");
  page.addAll(diagnostics.map(diagnosticBlock), "messages");
  return page.text;
}

/** Text that grows up to a bound; whole pieces that do not fit are counted. */
class Page {
  readonly #most: number;
  #text = "";

  constructor(most: number) {
    this.#most = most;
  }

  get text(): string {
    return this.#text;
  }

  add(piece: string): void {
    this.#text += piece;
  }

  addAll(pieces: readonly string[], what: string): void {
    let left = 0;
    for (const piece of pieces) {
      if (this.#text.length + piece.length > this.#most) left += 1;
      else this.#text += piece;
    }
    if (left > 0)
      this.#text += `\n_${left} ${what} left out: a comment has no room for more. \`rlcli plan\` shows all._\n\n`;
  }
}

function summaryOf(changes: readonly Change[]): string {
  const [head, ...rest] = renderSummary(changes, plain).split(/(?<=Plan:|No changes\.)/);
  return `**${head}**${rest.join("")}`;
}

function row(change: Change): string {
  const symbol = change.action === "none" ? "" : code(ACTION_SYMBOLS[change.action]);
  const why =
    change.reasons[0] ?? change.drift[0]?.message ?? (change.busy ? `in progress by ${change.busy.owner}` : "");
  const takes = (change.estimate && renderEstimate(change.estimate)) ?? "";
  return `| ${symbol} | ${code(change.address)} | ${cell(why)} | ${cell(takes)} |\n`;
}

function queueLine({ address, slots, waves }: Queue): string {
  const lines = waves.map((wave, at) => `${at + 1}. ${wave.map(code).join(", ")}\n`);
  return `\n${code(address)} holds ${slots} at a time, so the work queues:\n\n${lines.join("")}`;
}

/** Empty where the table has said it all. */
function details(change: Change): string {
  const attributes = change.attributes.filter((attribute) => isShown(change, attribute));
  const isNew = change.action === "create";
  const lines = attributes.flatMap((attribute) => (isNew ? created(attribute) : edited(change, attribute)));
  if (change.action === "replace" && change.kind === "run" && change.before && change.after)
    lines.push(`- generation  ${lineage(change.before)}`, `+ generation  ${lineage(change.after)}`);
  const notes = [...change.reasons.slice(1), ...change.drift.map(({ message }) => `drift: ${message}`)];
  if (lines.length === 0 && notes.length === 0) return "";
  const list = notes.map((note) => `- ${escapeText(note)}\n`).join("");
  const gap = list === "" ? "" : "\n";
  const block = lines.length > 0 ? `${gap}${fenced("diff", lines.join("\n"))}` : "";
  return `\n<details><summary>${ACTION_SYMBOLS[change.action].trim()} <code>${escapeHtml(change.address)}</code></summary>\n\n${list}${block}\n</details>\n`;
}

const created = ({ path, after }: AttributeChange): readonly string[] => [`+ ${path}  ${renderValue(after as Value)}`];

function edited(change: Change, attribute: AttributeChange): readonly string[] {
  const { path, rule, because } = attribute;
  const forces = rule === change.action ? FORCES[change.action] : undefined;
  const words = [forces, because && `through ${because}`].filter((word) => word !== undefined).join(", ");
  const note = words === "" ? "" : `  # ${words}`;
  return [
    `- ${path}  ${"before" in attribute ? renderValue(attribute.before as Value) : "(default)"}`,
    `+ ${path}  ${"after" in attribute ? renderValue(attribute.after as Value) : "(as by default)"}${note}`,
  ];
}

const WIDTH = 100;

const diagnosticBlock = (diagnostic: Diagnostic): string =>
  `\n${fenced("", renderDiagnostic(diagnostic, { style: plain, width: WIDTH }))}\n`;

/** A fence longer than any run of backticks inside. */
function fenced(language: string, text: string): string {
  const fence = "`".repeat(Math.max(3, longestTicks(text) + 1));
  return `${fence}${language}\n${text}\n${fence}\n`;
}

const longestTicks = (text: string): number => Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));

function code(text: string): string {
  const longest = longestTicks(text);
  const ticks = "`".repeat(longest + 1);
  const space = longest > 0 ? " " : "";
  return `${ticks}${space}${cell(text, false)}${space}${ticks}`;
}

/** One line, and no end of a table's cell. */
function cell(text: string, isEscaped = true): string {
  const line = text.replace(/\s*\n\s*/g, " ").replaceAll("|", "\\|");
  return isEscaped ? escapeText(line) : line;
}

/** No markup, mentions or links out of what a spec or a server says. */
const escapeText = (text: string): string =>
  escapeHtml(text).replace(/[*_`[\]~#@]/g, (mark) => `&#${mark.charCodeAt(0)};`);

const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
