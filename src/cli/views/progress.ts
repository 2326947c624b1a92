/** The progress of an apply as text: live lines on a terminal, plain lines elsewhere, one JSON object a line with --json. */
import type { Address } from "../../address.ts";
import { ACTION_SYMBOLS } from "../../change.ts";
import type { ChangeStatus, EngineEvent } from "../../event.ts";
import { EVENT_VERSION } from "../../event.ts";
import type { RunEvent, SandboxCount } from "../../run-record.ts";
import type { Style } from "./style.ts";
import { columnsOf, widthOf } from "./text.ts";
import { compact, duration, measuredWords, sandboxWords } from "./units.ts";

export interface ProgressView {
  on(event: EngineEvent): void;
  /** Leaves the terminal as it should be for what is printed next. */
  close(): void;
}

export interface Output {
  write(text: string): void;
  readonly isTTY: boolean;
  /** As they are now. */
  readonly columns: number;
}

/** Marks and bars, and what stands for them where only ASCII can be shown. */
const GLYPHS = { done: "✓", failed: "✗", full: "█", empty: "░" } as const;
const ASCII_GLYPHS = { done: "ok", failed: "x", full: "#", empty: "." } as const;
type Glyphs = Readonly<Record<keyof typeof GLYPHS, string>>;

export function jsonProgress(out: Output): ProgressView {
  return {
    on: (event) => out.write(`${JSON.stringify({ formatVersion: EVENT_VERSION, ...event })}\n`),
    close: () => {},
  };
}

const DONE_WORDS: Readonly<Record<ChangeStatus, string>> = {
  done: "done",
  interrupted: "interrupted",
  failed: "failed",
  skipped: "not started",
  detached: "running in the background",
  waiting: "waiting",
};

/** Seconds between progress lines of one run where lines cannot be rewritten. */
const PLAIN_EVERY_MS = 5000;
const REDRAW_MS = 100;

/** Finished things scroll; what runs is redrawn below them on a terminal, or told now and then without one. */
export class TextProgress implements ProgressView {
  readonly #out: Output;
  readonly #style: Style;
  readonly #now: () => number;
  readonly #glyphs: Glyphs;
  readonly #live = new Map<Address, Line>();
  readonly #sandboxes = new Map<Address, SandboxCount>();
  readonly #toldAt = new Map<Address, number>();
  #drawn = 0;
  #drawnAt = 0;

  constructor(
    out: Output,
    style: Style,
    { isAscii = false, now = Date.now }: { readonly isAscii?: boolean; readonly now?: () => number } = {},
  ) {
    this.#out = out;
    this.#style = style;
    this.#now = now;
    this.#glyphs = isAscii ? ASCII_GLYPHS : GLYPHS;
  }

  on(event: EngineEvent): void {
    switch (event.type) {
      case "apply.start":
      case "apply.end":
        break;
      case "change.start":
        this.#show(event.address, { text: `${ACTION_SYMBOLS[event.action]} ${event.address}` }, true);
        break;
      case "change.phase":
        this.#show(event.address, { text: `${event.address}: ${event.text}` }, true);
        break;
      case "change.run":
        this.#run(event.address, event.event);
        break;
      case "change.end": {
        const { address, status, seconds, summary } = event;
        const isGood = status === "done" || status === "detached";
        const mark = isGood ? this.#style.green(this.#glyphs.done) : this.#style.red(this.#glyphs.failed);
        const words = [DONE_WORDS[status], ...(summary ? [summary] : []), duration(seconds)].join(", ");
        this.#finish(address, `${mark} ${this.#style.bold(address)}: ${words}`);
        break;
      }
      case "apply.stopping": {
        const words = event.forced
          ? "stopping now"
          : "stopping at the end of the step, with a checkpoint; press Ctrl-C again to stop now";
        this.#print(this.#style.yellow(words));
      }
    }
  }

  close(): void {
    this.#clear();
    this.#live.clear();
  }

  #run(address: Address, event: RunEvent): void {
    switch (event.t) {
      case "phase":
        this.#show(address, { text: `${address}: ${event.phase}${event.detail ? ` (${event.detail})` : ""}` }, true);
        break;
      case "progress":
        this.#show(address, progressLine(address, event), false);
        break;
      case "sandboxes":
        this.#sandboxes.set(address, event.sandboxes);
        if (this.#out.isTTY) this.#redraw(false);
        break;
      case "warning":
        this.#print(`${this.#style.yellow("warning")} ${address}: ${event.diagnostic.detail}`);
        break;
      case "checkpoint":
      case "end":
        break;
    }
  }

  /** A thing's newest line. `isTurn` marks words that are told at once also where lines cannot be rewritten. */
  #show(address: Address, line: Line, isTurn: boolean): void {
    const isNew = this.#live.get(address)?.text !== line.text;
    this.#live.set(address, line);
    if (this.#out.isTTY) {
      this.#redraw(isTurn);
      return;
    }
    const now = this.#now();
    if (isNew && (isTurn || now - (this.#toldAt.get(address) ?? 0) >= PLAIN_EVERY_MS)) {
      if (!isTurn) this.#toldAt.set(address, now);
      const most = line.sandboxes ? `  ${sandboxWords(line.sandboxes)}` : "";
      this.#out.write(`${line.text}${most}\n`);
    }
  }

  #finish(address: Address, line: string): void {
    this.#clear();
    this.#live.delete(address);
    this.#sandboxes.delete(address);
    this.#out.write(`${line}\n`);
    if (this.#out.isTTY) this.#redraw(true);
  }

  #print(line: string): void {
    this.#clear();
    this.#out.write(`${line}\n`);
    if (this.#out.isTTY) this.#redraw(true);
  }

  #clear(): void {
    if (this.#drawn > 0) this.#out.write(`\u001b[${this.#drawn}A\u001b[0J`);
    this.#drawn = 0;
  }

  #redraw(isNow: boolean): void {
    const now = this.#now();
    if (!isNow && now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.#clear();
    for (const [address, line] of this.#live) this.#out.write(`${cut(this.#drawing(address, line), this.#room)}\n`);
    this.#drawn = this.#live.size;
  }

  /** Columns of a line that is not to wrap, which would break the redraw. */
  get #room(): number {
    return Math.max(0, this.#out.columns - 1);
  }

  /** With the sandboxes as they are now, and a bar as far as there is room for it. */
  #drawing(address: Address, { text, done }: Line): string {
    const sandboxes = this.#sandboxes.get(address);
    const words = sandboxes ? `${text}  ${sandboxWords(sandboxes)}` : text;
    const width = Math.min(BAR_WIDTH, this.#room - widthOf(words) - 1);
    if (done === undefined || width < LEAST_BAR_WIDTH) return words;
    const filled = Math.round(width * done);
    const { full, empty } = this.#glyphs;
    const bar = `${this.#style.cyan(full.repeat(filled))}${this.#style.dim(empty.repeat(width - filled))}`;
    return `${address} ${bar}${words.slice(address.length)}`;
  }
}

const BAR_WIDTH = 20;
const LEAST_BAR_WIDTH = 5;

/** What is told of a thing. */
interface Line {
  /** Begins with the address where there is a bar, which stands after it. */
  readonly text: string;
  /** Share of the steps; there is a bar. */
  readonly done?: number;
  /** Of the step; on a terminal what is now is shown instead. */
  readonly sandboxes?: SandboxCount;
}

function progressLine(address: Address, event: Extract<RunEvent, { t: "progress" }>): Line {
  const { step, steps, tokensPerSecond, etaSeconds, sandboxes } = event;
  const [measured, ...apart] = measuredWords(event);
  const parts = [`step ${step}/${steps}`, measured, `${compact(tokensPerSecond)} tokens/s`, ...apart];
  if (etaSeconds !== undefined && step < steps) parts.push(`${duration(etaSeconds)} left`);
  const text = `${address} ${parts.join("  ")}`;
  return { text, done: step / Math.max(1, steps), ...(sandboxes ? { sandboxes } : {}) };
}

/** Cuts to a width in columns, counting no colour codes. */
function cut(line: string, columns: number): string {
  let left = columns;
  let result = "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes start with an escape character
  for (const part of line.split(/(\u001b\[[0-9;]*m)/)) {
    if (part.startsWith("\u001b")) {
      result += part;
      continue;
    }
    for (const codePoint of part) {
      left -= columnsOf(codePoint);
      if (left < 0) break;
      result += codePoint;
    }
  }
  return result;
}
