/** Questions on a terminal, asked on stderr: plain lines and numbers, which work in every terminal. Ctrl-C, Ctrl-D and the end of input end them. */
import { createInterface, type Interface } from "node:readline/promises";
import type { CommandContext } from "./context.ts";

export interface Choice {
  readonly value: string;
  readonly about: string;
}

/** Whether somebody sits there who sees a question and can answer it. */
export const canAsk = (context: CommandContext): boolean =>
  context.isTerminal && process.stderr.isTTY === true && process.stdin.isTTY === true && !context.isJson;

/** Thrown where the person went away in the middle. */
export class Unanswered extends Error {}

export class Questions {
  readonly #prompt: Interface;
  readonly #closed: Promise<never>;
  readonly #write: (text: string) => void;

  constructor({
    stdin,
    stderr,
  }: { readonly stdin: NodeJS.ReadableStream; readonly stderr: NodeJS.WritableStream } = process) {
    this.#prompt = createInterface({ input: stdin, output: stderr });
    this.#write = (text) => void stderr.write(text);
    this.#closed = new Promise((_, reject) => this.#prompt.once("close", () => reject(new Unanswered())));
    this.#closed.catch(() => {});
  }

  async #ask(question: string): Promise<string> {
    const answered = this.#prompt.question(question).catch(() => {
      throw new Unanswered();
    });
    return (await Promise.race([answered, this.#closed])).trim();
  }

  /** An empty line is the default. `fault` says what is wrong with an answer; then it is asked again. */
  async text(question: string, preset: string, fault: (answer: string) => string | undefined): Promise<string> {
    for (;;) {
      const answer = (await this.#ask(`${question} [${preset}]: `)) || preset;
      const wrong = fault(answer);
      if (wrong === undefined) return answer;
      this.#write(`  ${wrong}\n`);
    }
  }

  /** One of several, by number or by name; `preset`, else the first, by an empty line. */
  async choice(question: string, choices: readonly Choice[], preset?: string): Promise<string> {
    const width = Math.max(...choices.map(({ value }) => value.length));
    this.#write(`${question}\n`);
    for (const [at, { value, about }] of choices.entries())
      this.#write(`  ${at + 1}  ${value.padEnd(width)}  ${about}\n`);
    const values = choices.map(({ value }) => value);
    const find = (answer: string) => values[Number(answer) - 1] ?? values.find((value) => value === answer);
    const first = String(Math.max(0, values.indexOf(preset ?? "")) + 1);
    const answer = await this.text("Which", first, (given) =>
      find(given) === undefined ? `Type a number from 1 to ${values.length}, or a name.` : undefined,
    );
    return find(answer) as string;
  }

  /** Yes by an empty line. */
  async yes(question: string): Promise<boolean> {
    const answer = await this.text(`${question} (yes or no)`, "yes", (given) =>
      /^(y|yes|n|no)$/i.test(given) ? undefined : "Type yes or no.",
    );
    return /^y/i.test(answer);
  }

  close(): void {
    this.#prompt.close();
  }
}
