/** `rlcli explain`: blocks, fields and codes for a reader. */
import type { KindName } from "../../address.ts";
import type { DiagnosticCode } from "../../codes.ts";
import { CODES, type CodeInfo } from "../../codes.ts";
import { changeWords } from "../../config/changes.ts";
import { type BlockInfo, blockOfKind, type FieldInfo } from "../../config/fields.ts";
import type { LossDefinition } from "../../losses/loss.ts";
import type { MetricInfo } from "../../training/rl/metrics.ts";
import type { Page } from "../pages.ts";
import type { Style } from "./style.ts";
import { widthOf, wrap } from "./text.ts";

interface ViewOptions {
  readonly style: Style;
  readonly width: number;
}

const yaml = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** What a field takes, in words. */
function takesWords(field: FieldInfo): string {
  if (field.values) return field.values.join(" | ");
  if (field.shorthand === "list") return "text, or a list of texts";
  if (field.shorthand !== undefined) return `block, or its ${field.shorthand} alone`;
  const words = {
    integer: "whole number",
    string: "text",
    group: "block",
    scalar: "text, number or boolean",
  } as Record<string, string>;
  return [words[field.type] ?? field.type, field.range, field.form].filter((w) => w !== undefined).join(", ");
}

function defaultWords(field: FieldInfo): string | undefined {
  if (field.default !== undefined) return yaml(field.default);
  return field.defaultText ?? (field.isRequired ? "required" : undefined);
}

/** The field as it would be written. */
function exampleLines(field: FieldInfo): string[] {
  const key = field.path.split(".").at(-1) ?? field.path;
  return (field.examples ?? []).map((example) => `${key}: ${flow(example)}`);
}

/** A value in YAML's flow style. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    return entries.length === 0 ? "{}" : `{ ${entries.map(([k, v]) => `${k}: ${flow(v)}`).join(", ")} }`;
  }
  return typeof value === "string" &&
    /[:*{}[\],#&]|^\s|\s$/.test(value) &&
    !/^\$\{.*\}$/.test(value) &&
    !/^[\w./-]+:[\w/.:-]+$/.test(value)
    ? JSON.stringify(value)
    : String(value);
}

export function renderField(block: BlockInfo, field: FieldInfo, { style, width }: ViewOptions): string {
  const isKind = blockOfKind(block.name as KindName) !== undefined;
  const change = isKind ? changeWords(block.name as KindName, field) : undefined;
  const only =
    field.when === undefined ? undefined : `${field.when.path.split(".").at(-1)}: ${field.when.values.join(", ")}`;
  const rows: (readonly [string, string | undefined])[] = [
    ["takes", takesWords(field)],
    [field.isRequired ? "" : "default", defaultWords(field)],
    ["only with", only],
    [
      "refers to",
      field.ref === undefined
        ? undefined
        : `${/^[aeiou]/.test(field.ref) ? "an" : "a"} ${field.ref} of the spec, by name`,
    ],
    ["a change", change],
  ];
  const name = block.name === "spec" ? field.path : `${block.name}.${field.path}`;
  const body = rows.flatMap(([label, text]) => (text === undefined ? [] : row(label, text, { style, width })));
  const examples = exampleLines(field).map((line) => `  ${line}`);
  return [
    style.bold(`${name}: ${field.title}`),
    ...wrap(field.description, width),
    "",
    ...body,
    ...(examples.length === 0 ? [] : ["", "Example:", ...examples]),
    "",
  ].join("\n");
}

const LABEL_WIDTH = 11;
/** Of a loss's options, whose names are longer. */
const OPTION_WIDTH = 22;

function row(label: string, text: string, { style, width }: ViewOptions, room = LABEL_WIDTH): string[] {
  const lines = wrap(text, width - room - 2);
  return lines.map((line, i) => `  ${i === 0 ? style.dim(label.padEnd(room)) : " ".repeat(room)}${line}`);
}

/** A block with one line a field. */
export function renderBlock(block: BlockInfo, { style, width }: ViewOptions): string {
  const longest = Math.max(...block.fields.map((f) => widthOf(f.path)));
  const lines = block.fields.map((field) => {
    const about = [defaultWords(field) === undefined ? undefined : `[${defaultWords(field)}]`, takesWords(field)];
    const text = cut(about.filter((t) => t !== undefined).join(" "), width - longest - 4);
    return `  ${style.bold(field.path.padEnd(longest))}  ${text}`;
  });
  const sample = block.fields.find((field) => field.default !== undefined) ?? block.fields[0];
  const topic = block.name === "spec" ? "project" : `${block.name}.${sample?.path}`;
  return [
    ...wrap(block.description, width),
    "",
    ...lines,
    "",
    `\`rlcli explain ${topic}\` says more about one field.`,
    "",
  ].join("\n");
}

export function renderMetric({ name, formula, description, of }: MetricInfo, { style, width }: ViewOptions): string {
  const where = { step: "a step of a run", eval: "an eval", both: "a step of a run, and an eval" }[of];
  const rows = [...row("formula", formula, { style, width }), ...row("of", where, { style, width })];
  return [style.bold(name), ...wrap(description, width), "", ...rows, ""].join("\n");
}

export function renderMetrics(metrics: readonly MetricInfo[], { style, width }: ViewOptions): string {
  const longest = Math.max(...metrics.map(({ name }) => widthOf(name)));
  const lines = metrics.map(({ name, formula }) => {
    return `  ${style.bold(name.padEnd(longest))}  ${cut(formula, width - longest - 4)}`;
  });
  const about =
    "Metrics of runs of reinforcement learning (metrics.jsonl) and of evals. r is a reward, q and ℓ are log-probabilities of a token as it was sampled and as it is trained.";
  return [...wrap(about, width), "", ...lines, "", "`rlcli explain metric reward/mean` says more about one.", ""].join(
    "\n",
  );
}

const LOSS_LETTERS =
  "ℓ is the log-probability of a token as it is trained, q as it was sampled, A its advantage; of a critic, v is the value, v_old the one before, R the return; sg lets no gradient through.";

const BACKENDS = ["embedded", "jax", "fsdp", "megatron", "hosted"];

/** A loss: its formula, its options with their defaults, and where it is computed in one call. */
export function renderLoss(
  { name, description, text, options, backends, runs }: LossDefinition,
  view: ViewOptions,
): string {
  const { style } = view;
  const lacking = BACKENDS.filter((backend) => !(backends as readonly string[]).includes(backend));
  const elsewhere = lacking.length === 0 ? "" : `; on ${lacking.join(", ")} with \`strategy: two_pass\``;
  const defaults = options.map((option) => {
    const value = option.default === undefined ? "as the server has it" : `default ${option.default}`;
    return row(option.name, `${option.description} (${value})`, view, OPTION_WIDTH);
  });
  return [
    style.bold(`${name}: ${description}`),
    "",
    ...row("formula", text, view),
    ...row("where", LOSS_LETTERS, view),
    ...row("runs", runs.map((type) => `type: ${type}`).join(", "), view),
    ...row("servers", `${backends.join(", ")}${runs.includes("rl") ? elsewhere : ""}`, view),
    ...(options.length === 0 ? [] : ["", "Options:", ...defaults.flat()]),
    "",
    "Example:",
    ...exampleOfLoss(name, options),
    "",
  ].join("\n");
}

function exampleOfLoss(name: string, options: LossDefinition["options"]): readonly string[] {
  const values = options.flatMap((option) =>
    option.default === undefined ? [] : [`${option.name}: ${option.default}`],
  );
  if (values.length === 0) return [`  loss: ${name}`];
  return ["  losses:", "    mine:", `      type: ${name}`, ...values.map((line) => `      ${line}`)];
}

export function renderLosses(losses: readonly LossDefinition[], { style, width }: ViewOptions): string {
  const longest = Math.max(...losses.map(({ name }) => widthOf(name)));
  const lines = losses.map(
    ({ name, text }) => `  ${style.bold(name.padEnd(longest))}  ${cut(text, width - longest - 4)}`,
  );
  return [...wrap(LOSS_LETTERS, width), "", ...lines, "", "`rlcli explain gspo` says more about one.", ""].join("\n");
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0))}…`;
}

/** A table of terms; those that are too long stand above their words. */
export function renderPage({ about, rows }: Page, { style, width }: ViewOptions): string {
  const lines = rows.flatMap(({ term, about: words }) => {
    const [first = "", ...rest] = wrap(words, Math.max(width - TERM_WIDTH - 4, 20));
    const pad = " ".repeat(TERM_WIDTH + 4);
    const isLong = term.length > TERM_WIDTH;
    const head = `  ${style.bold(term)}${isLong ? "" : " ".repeat(TERM_WIDTH - term.length)}`;
    const body = rest.map((line) => `${pad}${line}`);
    return isLong ? [head, `${pad}${first}`, ...body] : [`${head}  ${first}`, ...body];
  });
  return [...wrap(about, width), "", ...lines, ""].join("\n");
}

const TERM_WIDTH = 22;

export function renderCode(code: DiagnosticCode, { style, width }: ViewOptions): string {
  const { summary, explanation, next, severity }: CodeInfo = CODES[code];
  return [
    style.bold(`${severity ?? "error"}[${code}]: ${summary}`),
    ...wrap(explanation, width),
    "",
    ...wrap(`What to do: ${next}`, width),
    "",
  ].join("\n");
}
