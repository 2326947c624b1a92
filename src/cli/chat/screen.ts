/** A conversation's terminal: lines in, text out, and Ctrl-C that ends an answer rather than the program. */
import { createInterface, type Interface } from "node:readline";

export interface Screen {
  /** A line; undefined at the end of the input. `isEmpty` tells of a Ctrl-C at the prompt. */
  line(prompt: string): Promise<string | undefined>;
  write(text: string): void;
  /** Runs work whose signal a Ctrl-C aborts. */
  interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  close(): void;
}

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
  #waiting: ((line: string | undefined) => void) | undefined;
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

  line(prompt: string): Promise<string | undefined> {
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

  /** Ctrl-C: ends an answer; at the prompt, drops what was typed. */
  interrupt(): void {
    if (this.#working) {
      this.#working.abort();
      return;
    }
    const wasEmpty = this.#interface.line === "";
    this.#output.write(wasEmpty ? "\n(Ctrl-D or /exit ends)\n" : "\n");
    // Ctrl-U and Ctrl-K: the line before and after the cursor.
    this.#interface.write(null, { ctrl: true, name: "e" });
    this.#interface.write(null, { ctrl: true, name: "u" });
    this.#interface.prompt();
  }

  close(): void {
    this.#interface.close();
  }

  #take(line: string | undefined): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting(line);
    else if (line !== undefined) this.#typed.push(line);
    else this.#working?.abort();
  }
}
