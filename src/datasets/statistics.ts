/** What the rows that came out look like: roles, and how long they are. */
import type { Row } from "./row.ts";

/** Counts by the power of two below a size: entry i holds sizes in [2^i, 2^(i+1)); sizes of 0 are in entry 0. */
export type Histogram = readonly number[];

export interface RowSummary {
  readonly rows: number;
  /** Turns by role. */
  readonly roles: Readonly<Record<string, number>>;
  /** Rows by messages. */
  readonly messages: Histogram;
  /** Rows by characters of content (UTF-16 units). */
  readonly characters: Histogram;
}

export class RowStatistics {
  #rows = 0;
  readonly #roles = new Map<string, number>();
  readonly #messages: number[] = [];
  readonly #characters: number[] = [];

  /** Rows as lines with their newlines. */
  add(lines: Buffer): void {
    for (const line of lines.toString().split("\n")) if (line !== "") this.#add(JSON.parse(line) as Row);
  }

  #add({ messages }: Row): void {
    this.#rows += 1;
    let characters = 0;
    for (const { role, content } of messages) {
      this.#roles.set(role, (this.#roles.get(role) ?? 0) + 1);
      if (typeof content === "string") characters += content.length;
    }
    count(this.#messages, messages.length);
    count(this.#characters, characters);
  }

  summary(): RowSummary {
    const roles = Object.fromEntries([...this.#roles].sort(([a], [b]) => (a < b ? -1 : 1)));
    return { rows: this.#rows, roles, messages: this.#messages, characters: this.#characters };
  }
}

function count(histogram: number[], size: number): void {
  const bucket = Math.floor(Math.log2(Math.max(1, size)));
  while (histogram.length <= bucket) histogram.push(0);
  histogram[bucket] = (histogram[bucket] ?? 0) + 1;
}
