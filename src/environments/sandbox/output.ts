/** What a command writes, as Docker sends it: frames of two streams, of which a beginning and an end are kept. */
import type { Output } from "./sandbox.ts";

/** Splits Docker's stream: 8 bytes (1 stdout or 2 stderr, three zeros, length) and that many bytes, cut anywhere. */
export class FrameReader {
  readonly #onData: (stream: 1 | 2, bytes: Buffer) => void;
  #header: Buffer = Buffer.alloc(0);
  #left = 0;
  #stream: 1 | 2 = 1;

  constructor(onData: (stream: 1 | 2, bytes: Buffer) => void) {
    this.#onData = onData;
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#left > 0) {
        const end = Math.min(chunk.length, at + this.#left);
        this.#onData(this.#stream, chunk.subarray(at, end));
        this.#left -= end - at;
        at = end;
        continue;
      }
      const end = Math.min(chunk.length, at + 8 - this.#header.length);
      this.#header = Buffer.concat([this.#header, chunk.subarray(at, end)]);
      at = end;
      if (this.#header.length < 8) return;
      this.#stream = this.#header[0] === 2 ? 2 : 1;
      this.#left = this.#header.readUInt32BE(4);
      this.#header = Buffer.alloc(0);
    }
  }
}

/** The first and the last bytes of a stream, and how many there were. */
export class HeadTail {
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headLength = 0;
  #tail: Buffer = Buffer.alloc(0);
  total = 0;

  constructor(keepBytes: number) {
    this.#half = Math.ceil(keepBytes / 2);
  }

  push(bytes: Buffer): void {
    this.total += bytes.length;
    const room = Math.max(0, this.#half - this.#headLength);
    if (room > 0) {
      // Copied: a slice would keep the whole chunk that it was cut from.
      const taken = Buffer.from(bytes.subarray(0, room));
      this.#head.push(taken);
      this.#headLength += taken.length;
    }
    const rest = bytes.subarray(room);
    if (rest.length >= this.#half) this.#tail = Buffer.from(rest.subarray(rest.length - this.#half));
    else if (rest.length > 0) {
      const joined = Buffer.concat([this.#tail, rest]);
      this.#tail = joined.subarray(Math.max(0, joined.length - this.#half));
    }
  }

  output(): Output {
    const head = Buffer.concat(this.#head);
    const droppedBytes = this.total - head.length - this.#tail.length;
    if (droppedBytes === 0)
      return { text: textOf(Buffer.concat([head, this.#tail])), totalBytes: this.total, droppedBytes };
    const text = `${textOf(head, "end")}\n[… ${droppedBytes} bytes left out …]\n${textOf(this.#tail, "start")}`;
    return { text, totalBytes: this.total, droppedBytes };
  }
}

/** Where a stream was cut, half a character is left away; what is no UTF-8 is replaced, and so are NULs. */
function textOf(bytes: Buffer, cut?: "start" | "end"): string {
  let from = 0;
  let to = bytes.length;
  const isInner = (at: number) => ((bytes[at] as number) & 0xc0) === 0x80;
  if (cut === "start") while (from < to && from < 3 && isInner(from)) from += 1;
  if (cut === "end") {
    let lead = to - 1;
    while (lead > to - 4 && lead >= 0 && isInner(lead)) lead -= 1;
    const first = bytes[lead] ?? 0;
    const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (lead >= 0 && lead + length > to) to = lead;
  }
  return bytes.subarray(from, to).toString("utf8").replaceAll("\0", "\uFFFD");
}

/** Passes a stream on up to a mark, behind which stand numbers and a newline. */
export class MarkedStream {
  readonly #mark: Buffer;
  readonly #out: HeadTail;
  #pending: Buffer = Buffer.alloc(0);
  #after: Buffer | undefined;
  /** What stood behind the mark; undefined until all of it is there. */
  values: readonly number[] | undefined;

  constructor(mark: string, out: HeadTail) {
    this.#mark = Buffer.from(mark);
    this.#out = out;
  }

  push(bytes: Buffer): void {
    if (this.values !== undefined) return;
    if (this.#after === undefined) {
      const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
      const at = all.indexOf(this.#mark);
      if (at < 0) {
        const sure = Math.max(0, all.length - this.#mark.length + 1);
        this.#out.push(all.subarray(0, sure));
        this.#pending = Buffer.from(all.subarray(sure));
        return;
      }
      this.#out.push(all.subarray(0, at));
      this.#pending = Buffer.alloc(0);
      this.#after = Buffer.from(all.subarray(at + this.#mark.length));
    } else this.#after = Buffer.concat([this.#after, bytes]);
    const end = this.#after.indexOf(10);
    if (end >= 0) this.values = this.#after.subarray(0, end).toString().split(" ").map(Number);
  }

  /** The stream ended without a mark: what was held back belongs to it. */
  end(): void {
    this.#out.push(this.#pending);
    this.#pending = Buffer.alloc(0);
  }
}
