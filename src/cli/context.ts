/** What a command gets to see of the world. Commands write through it and never touch `process` themselves. */
import { type Diagnostic, diagnostic, messageOf } from "../diagnostic.ts";
import { diagnosticsJson, nextCommand, renderDiagnostics } from "./views/diagnostic.ts";
import { createStyle, type Style, wantsColor } from "./views/style.ts";

declare const __RLCLI_VERSION__: string;

/** The version of this rlcli, fixed when it was built. */
export const VERSION = __RLCLI_VERSION__;

/** See docs/reference/exit-codes.md. */
export const EXIT = { done: 0, failed: 1, changes: 2, incomplete: 3, bug: 70, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface Interruption {
  /** Aborted on the first Ctrl-C or SIGTERM: reach a safe point and stop. */
  readonly stop: AbortSignal;
  /** Aborted on the second: stop now. The process exits with 130 soon after. */
  readonly kill: AbortSignal;
}

export interface CommandContext {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isJson: boolean;
  readonly isTerminal: boolean;
  /** Whether lines on stderr can be drawn again: a terminal that is not dumb, and nobody's log. */
  readonly canRedraw: boolean;
  /** Columns for text: of the terminal as it is now (80 where there is none), but neither too few nor too many to read. */
  readonly width: number;
  /** Columns that stderr has now. A line that is to be drawn again must not be longer. */
  readonly errColumns: number;
  /** For stdout. */
  readonly style: Style;
  readonly errStyle: Style;
  /** Results go here. */
  out(text: string): void;
  /** Everything else: progress, warnings, questions. */
  err(text: string): void;
  /** Diagnostics for people on stderr; with --json the caller puts them into its result. */
  report(diagnostics: readonly Diagnostic[]): void;
  /** Aborted when the reader of stdout has gone (`| head`): stop producing. */
  readonly outputClosed: AbortSignal;
  /** Takes over Ctrl-C and SIGTERM from now on. */
  interruption(): Interruption;
}

export interface GlobalOptions {
  readonly json?: boolean;
  readonly color: boolean;
  readonly chdir?: string;
}

const NARROWEST = 40;
const WIDEST = 120;

export function createContext(options: GlobalOptions, outputClosed: AbortSignal): CommandContext {
  const { stdout, stderr, env } = process;
  const color = options.color;
  const isTerminal = stdout.isTTY === true;
  const style = createStyle(wantsColor({ env, isTerminal, color }));
  const errStyle = createStyle(wantsColor({ env, isTerminal: stderr.isTTY === true, color }));
  // Asked for each time: a window is resized while an apply runs.
  const width = (): number =>
    Math.min(Math.max((stdout.isTTY ? stdout.columns : stderr.columns) || 80, NARROWEST), WIDEST);
  const isJson = options.json === true;
  const out = (text: string): void => void stdout.write(text);
  const err = (text: string): void => void stderr.write(text);
  return {
    cwd: currentFolder(),
    env,
    isJson,
    isTerminal,
    // What a pipeline shows is kept as it was written, also where it has a terminal.
    canRedraw: stderr.isTTY === true && env.TERM !== "dumb" && /^(|0|false)$/i.test(env.CI ?? ""),
    get width() {
      return width();
    },
    get errColumns() {
      return stderr.columns || 80;
    },
    style,
    errStyle,
    out,
    err,
    report: (diagnostics) => {
      if (diagnostics.length > 0 && !isJson) err(renderDiagnostics(diagnostics, { style: errStyle, width: width() }));
    },
    outputClosed,
    interruption: catchInterruption,
  };
}

/** Empty where the folder was removed while its shell stayed in it. */
function currentFolder(): string {
  try {
    return process.cwd();
  } catch {
    return "";
  }
}

/**
 * The result of a command that failed: diagnostics for people on stderr, with the command to type next, or as JSON on stdout.
 * `help` is the command that prints help about what was asked for.
 */
export function reportFailure(context: CommandContext, diagnostics: readonly Diagnostic[], help?: string): void {
  if (context.isJson) {
    context.out(diagnosticsJson(diagnostics));
    return;
  }
  context.report(diagnostics);
  const next = nextCommand(diagnostics, help);
  if (next !== undefined) context.err(`\n\`${next}\` says more.\n`);
}

/**
 * A reader that went away is no fault: later writes are dropped and the signal tells whoever goes on producing. A result that
 * cannot be written (a full disk) is one: the signal's reason is then the error.
 */
export function watchOutput(): AbortSignal {
  const closed = new AbortController();
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    closed.abort(error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED" ? undefined : error);
  });
  // What cannot be said on stderr cannot be said.
  process.stderr.on("error", () => {});
  return closed.signal;
}

/** Why the result could not be written; undefined where it was, or where nobody wanted it. */
export function outputFault({ aborted, reason }: AbortSignal): Diagnostic | undefined {
  if (!aborted || (reason as NodeJS.ErrnoException).errno === undefined) return undefined;
  return diagnostic("RL9007", `The result could not be written to standard output: ${messageOf(reason)}.`);
}

/** How long after the second signal the process may still take to clean up. */
const KILL_GRACE_MS = 2_000;

function catchInterruption(): Interruption {
  const stop = new AbortController();
  const kill = new AbortController();
  const onSignal = (): void => {
    if (!stop.signal.aborted) {
      stop.abort();
      return;
    }
    if (kill.signal.aborted) process.exit(EXIT.interrupted);
    kill.abort();
    setTimeout(() => process.exit(EXIT.interrupted), KILL_GRACE_MS).unref();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return { stop: stop.signal, kill: kill.signal };
}
