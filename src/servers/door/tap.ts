/** A copy of a small body that streams by. */
import type { Readable } from "node:stream";

const MOST_BYTES = 64 * 1024;

export class Tap {
  readonly #parts: Buffer[] = [];
  readonly #waiting: ((body: Buffer) => void)[] = [];
  #bytes = 0;
  #isWhole = false;

  constructor(stream: Readable) {
    stream.on("data", (part: Buffer) => {
      this.#bytes += part.length;
      if (this.#bytes <= MOST_BYTES) this.#parts.push(part);
    });
    stream.once("end", () => {
      this.#isWhole = true;
      for (const use of this.#waiting.splice(0)) this.whole(use);
    });
  }

  /** Hands over the body once it has passed; never, where it is large or breaks off. */
  whole(use: (body: Buffer) => void): void {
    if (!this.#isWhole) this.#waiting.push(use);
    else if (this.#bytes <= MOST_BYTES) use(Buffer.concat(this.#parts));
  }
}
