/** A conversation's terminal: lines in, text out, and Ctrl-C that ends an answer rather than the program. */
import { createInterface, type Interface } from "node:readline";

export interface Screen {
  /** A line; undefined at the end of the input. */
  line(prompt: string): Promise<string | undefined>;
  /** The next line of a text of several; `DROPPED` where a Ctrl-C took the text back. */
  more(prompt: string): Promise<string | typeof DROPPED | undefined>;
  write(text: string): void;
  /** Runs work whose signal a Ctrl-C aborts. */
  interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  close(): void;
}

export const DROPPED = Symbol("dropped");
type Line = string | typeof DROPPED | undefined;

interface Streams {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Raw keys, editing and a history; plain lines otherwise. */
  readonly isTerminal: boolean;
}

export class LineScreen implements Screen {
  readonly #interface: Interface;
  readonly #output: NodeJS.WritableStream;
  /** Typed while an answer was written: the next questions. */
  readonly #typed: string[] = [];
  #waiting: ((line: Line) => void) | undefined;
  #isMore = false;
  #working: AbortController | undefined;
  #isClosed = false;

  constructor({ input, output, isTerminal }: Streams) {
    this.#output = output;
    this.#interface = createInterface({ input, output, terminal: isTerminal });
    this.#interface.on("line", (line) => this.#take(line));
    this.#interface.on("close", () => {
      this.#isClosed = true;
      this.#take(undefined);
    });
    this.#interface.on("SIGINT", () => this.interrupt());
  }

  async line(prompt: string): Promise<string | undefined> {
    const line = await this.#next(prompt);
    return line === DROPPED ? undefined : line;
  }

  async more(prompt: string): Promise<Line> {
    this.#isMore = true;
    try {
      return await this.#next(prompt);
    } finally {
      this.#isMore = false;
    }
  }

  #next(prompt: string): Promise<Line> {
    const typed = this.#typed.shift();
    if (typed !== undefined) this.#output.write(`${prompt}${typed}\n`);
    if (typed !== undefined || this.#isClosed) return Promise.resolve(typed);
    this.#interface.setPrompt(prompt);
    this.#interface.prompt();
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  write(text: string): void {
    this.#output.write(text);
  }

  async interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const working = new AbortController();
    this.#working = working;
    try {
      return await work(working.signal);
    } finally {
      this.#working = undefined;
    }
  }

  /** Ctrl-C: ends an answer; at the prompt, drops what was typed, also of a text of several lines. */
  interrupt(): void {
    if (this.#working) {
      this.#working.abort();
      return;
    }
    const wasEmpty = this.#interface.line === "" && !this.#isMore;
    this.#output.write(wasEmpty ? "\n(Ctrl-D or /exit ends)\n" : "\n");
    // Ctrl-U and Ctrl-K: the line before and after the cursor.
    this.#interface.write(null, { ctrl: true, name: "e" });
    this.#interface.write(null, { ctrl: true, name: "u" });
    if (this.#isMore) this.#take(DROPPED);
    else this.#interface.prompt();
  }

  close(): void {
    this.#interface.close();
  }

  #take(line: Line): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting(line);
    else if (typeof line === "string") this.#typed.push(line);
    else this.#working?.abort();
  }
}
