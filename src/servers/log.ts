/** A log that never outgrows its folder: `log.txt`, and what came before in `log.1.txt` and `log.2.txt`. */
import { appendFileSync, existsSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";

const MOST_BYTES = 10_000_000;
const KEPT = 2;

export class RotatingLog {
  readonly #folder: string;
  readonly #mostBytes: number;
  #bytes: number;

  constructor(folder: string, mostBytes = MOST_BYTES) {
    this.#folder = folder;
    this.#mostBytes = mostBytes;
    this.#bytes = statSync(join(folder, "log.txt"), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Bytes as they came; a disk that is full loses them and nothing else. */
  write(bytes: Uint8Array): void {
    try {
      if (this.#bytes + bytes.length > this.#mostBytes && this.#bytes > 0) this.#rotate();
      appendFileSync(join(this.#folder, "log.txt"), bytes, { mode: 0o600 });
      this.#bytes += bytes.length;
    } catch {
      // A server does not die of what it cannot say.
    }
  }

  line(text: string): void {
    this.write(Buffer.from(`${new Date().toISOString()} ${text}\n`));
  }

  #rotate(): void {
    const name = (at: number) => join(this.#folder, at === 0 ? "log.txt" : `log.${at}.txt`);
    for (let at = KEPT; at > 0; at--) if (existsSync(name(at - 1))) renameSync(name(at - 1), name(at));
    this.#bytes = 0;
  }
}

const MOST_LINES = 12;
/** A failure's own line, in Python's, Node's, the kernel's and the CUDA driver's words. */
const FAULT =
  /\b(error|exception|fatal|killed|segmentation fault|out of memory|oom|assert\w*|cannot|no such|refused|unrecognized)\b/i;
const NOISE = /^\s*(File "|at |raise |\^+$|~+)|(GET|POST) \/api|\b(INFO|DEBUG)\b/;

/** Lines that most likely say why a program ended: the last traceback's end and the errors around it, else the last lines. */
export function errorLines(log: string): readonly string[] {
  const lines = log
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .slice(-400);
  const faults = lines.filter((line) => FAULT.test(line) && !NOISE.test(line));
  const chosen = faults.length > 0 ? faults : lines;
  return [...new Set(chosen)].slice(-MOST_LINES);
}

/** The end of a server's log from byte `from` on, at most about a quarter megabyte. */
export function readLog(folder: string, from = 0): string {
  try {
    const bytes = readFileSync(join(folder, "log.txt"));
    return bytes.subarray(Math.max(from <= bytes.length ? from : 0, bytes.length - 250_000)).toString("utf8");
  } catch {
    return "";
  }
}
