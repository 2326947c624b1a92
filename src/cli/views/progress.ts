/** The progress of an apply as text: live lines on a terminal, plain lines elsewhere, one JSON object a line with --json. */
import type { Address } from "../../address.ts";
import { ACTION_SYMBOLS } from "../../change.ts";
import type { ChangeStatus, EngineEvent } from "../../event.ts";
import { EVENT_VERSION } from "../../event.ts";
import type { RunEvent } from "../../run-record.ts";
import type { Style } from "./style.ts";
import { columnsOf } from "./text.ts";
import { compact, duration, measuredWords } from "./units.ts";

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
  readonly #live = new Map<Address, string>();
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
        this.#show(event.address, `${ACTION_SYMBOLS[event.action]} ${event.address}`, true);
        break;
      case "change.phase":
        this.#show(event.address, `${event.address}: ${event.text}`, true);
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
        this.#show(address, `${address}: ${event.phase}${event.detail ? ` (${event.detail})` : ""}`, true);
        break;
      case "progress":
        this.#show(
          address,
          renderProgress(address, event, this.#style, this.#out.isTTY ? this.#glyphs : undefined),
          false,
        );
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
  #show(address: Address, line: string, isTurn: boolean): void {
    const isNew = this.#live.get(address) !== line;
    this.#live.set(address, line);
    if (this.#out.isTTY) {
      this.#redraw(isTurn);
      return;
    }
    const now = this.#now();
    if (isNew && (isTurn || now - (this.#toldAt.get(address) ?? 0) >= PLAIN_EVERY_MS)) {
      if (!isTurn) this.#toldAt.set(address, now);
      this.#out.write(`${line}\n`);
    }
  }

  #finish(address: Address, line: string): void {
    this.#clear();
    this.#live.delete(address);
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
    for (const line of this.#live.values()) this.#out.write(`${cut(line, this.#out.columns)}\n`);
    this.#drawn = this.#live.size;
  }
}

const BAR_WIDTH = 20;

function renderProgress(
  address: Address,
  event: Extract<RunEvent, { t: "progress" }>,
  style: Style,
  /** Of the bar, where there is one. */
  glyphs: Glyphs | undefined,
): string {
  const { step, steps, tokensPerSecond, etaSeconds } = event;
  const filled = Math.round((BAR_WIDTH * step) / Math.max(1, steps));
  const bar = glyphs
    ? `${style.cyan(glyphs.full.repeat(filled))}${style.dim(glyphs.empty.repeat(BAR_WIDTH - filled))} `
    : "";
  const [measured, ...apart] = measuredWords(event);
  const parts = [`step ${step}/${steps}`, measured, `${compact(tokensPerSecond)} tokens/s`, ...apart];
  if (etaSeconds !== undefined && step < steps) parts.push(`${duration(etaSeconds)} left`);
  return `${address} ${bar}${parts.join("  ")}`;
}

/** Cuts to a width in columns, counting no colour codes; a wrapped line would break the redraw. */
function cut(line: string, columns: number): string {
  let left = Math.max(0, columns - 1);
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
