/** Attempts at tasks for a reader: what was asked, what was answered, what it was worth. */
import { isRecord } from "../../datasets/row.ts";
import { type Attempt, isLost } from "../../training/rl/rollout.ts";
import type { TrajectoryStep } from "../../training/rl/trajectory.ts";
import type { Style } from "./style.ts";
import { columnsOf, printable, widthOf, wrap } from "./text.ts";

interface Place {
  readonly group: number;
  readonly index: number;
  readonly task: number;
  /** Where tasks have names. */
  readonly taskName?: string;
}

export interface ShownTurn {
  /** What the policy saw that was new. */
  readonly prompt: string;
  readonly answer: string;
  /** Of the answer. */
  readonly tokens: number;
  readonly stop: "stop" | "length";
}

export type ShownAttempt = Place &
  (
    | {
        readonly turns: readonly ShownTurn[];
        /** Who said what and which tools were called, where there are tools; one list for each conversation. */
        readonly conversations?: readonly (readonly TrajectoryStep[])[];
        readonly reward: number;
        readonly metrics: Readonly<Record<string, number>>;
        readonly note?: string;
        readonly weights: number;
      }
    | {
        /** As far as it came. */
        readonly turns: readonly ShownTurn[];
        readonly conversations?: readonly (readonly TrajectoryStep[])[];
        readonly fault: { readonly code: string; readonly message: string };
      }
  );

interface ViewOptions {
  readonly style: Style;
  readonly width: number;
}

export interface ShownAttempts {
  readonly title: string;
  readonly attempts: readonly Attempt[];
  /** How many of them are of the kind that was asked for. */
  readonly fitting: number;
  readonly shown: readonly ShownAttempt[];
}

/** A line on all of them, then those that were chosen. */
export function renderAttempts({ title, attempts: all, fitting, shown }: ShownAttempts, options: ViewOptions): string {
  const { style } = options;
  const rewards = all.flatMap((attempt) => (isLost(attempt) ? [] : [attempt.reward]));
  const lost = all.length - rewards.length;
  const words = [
    `${all.length} answers`,
    ...(rewards.length > 0
      ? [`reward ${mean(rewards).toFixed(3)} (${number(Math.min(...rewards))} to ${number(Math.max(...rewards))})`]
      : []),
    ...(lost > 0 ? [`${lost} lost`] : []),
  ];
  if (fitting === 0) words.push("none of them like that");
  const rest = fitting - shown.length;
  const hint = `${rest} more: --worst K, --best K, --task I, --lost, --limit N`;
  const more = rest > 0 ? [...wrap(hint, options.width).map(style.dim), ""] : [];
  const head = wrap(`${title}: ${words.join(", ")}`, options.width).map(style.bold);
  return [...head, "", ...shown.flatMap((attempt) => attemptLines(attempt, options)), ...more].join("\n");
}

const mean = (values: readonly number[]): number => values.reduce((sum, v) => sum + v, 0) / values.length;
const number = (value: number): string => String(Number(value.toPrecision(4)));

function attemptLines(attempt: ShownAttempt, options: ViewOptions): readonly string[] {
  const { style } = options;
  const task = [attempt.task, ...(attempt.taskName === undefined ? [] : [printable(attempt.taskName)])].join(" ");
  const title = `task ${task}, answer ${attempt.group}.${attempt.index}`;
  const name = style.bold(title);
  if ("fault" in attempt) {
    const { code, message } = attempt.fault;
    return [
      `${name}  ${style.red("lost")}`,
      ...saidLines(attempt, options),
      ...block("fault", `${message} (${code})`, options),
      "",
    ];
  }
  const { turns, reward, metrics, note } = attempt;
  const tokens = turns.reduce((sum, turn) => sum + turn.tokens, 0);
  const isCut = turns.some(({ stop }) => stop === "length");
  const facts = [`${tokens} tokens`, ...(turns.length > 1 ? [`${turns.length} turns`] : []), ...(isCut ? ["cut"] : [])];
  const measured = Object.entries(metrics).map(([key, value]) => `${key} ${number(value)}`);
  const paint = reward > 0 ? style.green : style.yellow;
  const [worth, about] = [`reward ${number(reward)}`, facts.join(", ")];
  // What does not fit beside the reward stands below it.
  const isNarrow = widthOf(`${title}  ${worth}  ${about}`) > options.width;
  return [
    `${name}  ${paint(worth)}${isNarrow ? "" : `  ${style.dim(about)}`}`,
    ...(isNarrow ? block("", about, options, style.dim) : []),
    ...saidLines(attempt, options),
    ...(note === undefined ? [] : block("note", note, options)),
    ...(measured.length === 0 ? [] : block("metrics", measured.join("  "), options)),
    "",
  ];
}

type Said = Pick<ShownAttempt, "turns" | "conversations">;

function saidLines({ turns, conversations }: Said, options: ViewOptions): readonly string[] {
  const { style } = options;
  let answers = 0;
  if (conversations) return conversations.flat().flatMap((step) => stepLines(step, options, () => (answers += 1)));
  return turns.flatMap((turn) => [
    ...block("asked", turn.prompt, options, style.dim),
    ...block("answer", turn.answer, options),
  ]);
}

/** A message, or an answer with what it thought, the tools that it called and what they gave. `count` numbers the answers. */
function stepLines(step: TrajectoryStep, options: ViewOptions, count: () => number): readonly string[] {
  const { dim } = options.style;
  if (step.source !== "agent" || !step.metrics) return block(step.source, step.message, options, dim);
  const results = step.observation?.results ?? [];
  const output = (content: string) => block("output", outputText(content), options, dim);
  const cut = step.extra?.stop === "length" ? ", cut" : "";
  return [
    ...block(`turn ${count()}`, `${step.metrics.completion_tokens} tokens${cut}`, options, dim),
    ...(step.reasoning_content === undefined ? [] : block("thought", step.reasoning_content, options, dim)),
    ...(step.message === "" ? [] : block("said", step.message, options)),
    ...(step.tool_calls ?? []).flatMap(({ tool_call_id: id, function_name: name, arguments: given }) => [
      ...block(printable(name).slice(0, LABEL_WIDTH - 1), callText(given), options),
      ...results.filter((result) => result.source_call_id === id).flatMap(({ content }) => output(content)),
    ]),
    ...results.filter((result) => result.source_call_id === undefined).flatMap(({ content }) => output(content)),
  ];
}

/** A lone command as it stands; anything else as JSON. */
function callText(given: Readonly<Record<string, unknown>>): string {
  const { command, ...others } = given;
  return typeof command === "string" && Object.keys(others).length === 0 ? command : JSON.stringify(given);
}

/** The result of a command in lines, anything else as it stands. */
function outputText(content: string): string {
  let result: unknown;
  try {
    result = JSON.parse(content);
  } catch {
    return content;
  }
  if (!isRecord(result)) return content;
  if (typeof result.error === "string") return `error: ${result.error}`;
  const { exit_code: code, timed_out: isLate, stdout, stderr } = result;
  if (typeof code !== "number" || typeof stdout !== "string" || typeof stderr !== "string") return content;
  const parts = [
    `exit code ${code}${isLate === true ? ", killed for its time" : ""}`,
    stdout,
    stderr && `stderr: ${stderr}`,
  ];
  return parts
    .filter((part) => part !== "")
    .map((part) => part.replace(/\n$/, ""))
    .join("\n");
}

const LABEL_WIDTH = 8;

/** A text under a label, its lines broken to the width whatever they are made of. */
function block(
  label: string,
  text: string,
  { style, width }: ViewOptions,
  paint: (line: string) => string = (line) => line,
): readonly string[] {
  const room = Math.max(10, width - LABEL_WIDTH - 4);
  const lines = text
    .replace(/\n+$/, "")
    .split(/\r?\n/)
    .flatMap((line) => wrap(printable(line), room).flatMap((part) => cutHard(part, room)));
  return lines.map((line, at) => `  ${style.dim((at === 0 ? label : "").padEnd(LABEL_WIDTH))}${paint(line)}`.trimEnd());
}

/** Pieces of at most so many columns. */
function cutHard(line: string, room: number): readonly string[] {
  if (widthOf(line) <= room) return [line];
  const pieces: string[] = [];
  let piece = "";
  let used = 0;
  for (const codePoint of line) {
    const columns = columnsOf(codePoint);
    if (used + columns > room) {
      pieces.push(piece);
      piece = "";
      used = 0;
    }
    piece += codePoint;
    used += columns;
  }
  return [...pieces, piece];
}
