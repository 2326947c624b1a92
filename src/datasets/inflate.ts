/**
 * Compressed bytes as they inflate, to the last byte before a fault. Node's own streams drop what was inflated last when
 * the data breaks off or is damaged; here everything is taken over as it comes, and the piece in which the fault lies is
 * gone through once more, a byte at a time.
 */
import type { Transform } from "node:stream";

/** Compressed bytes given at once: what they inflate to is held in memory, at most about a thousand times as much. */
const SLICE_BYTES = 1 << 14;
/** Compressed bytes kept of a source that cannot be opened again, to find a fault among them. */
const KEPT_BYTES = 1 << 22;

type Chunks = AsyncIterable<Uint8Array>;

/** What stopped the inflating; its cause is zlib's error. */
export class InflateError extends Error {}

export interface Inflation {
  readonly create: () => Transform;
  readonly chunks: Chunks;
  /** The same chunks from their beginning once more, where that is possible. */
  readonly reopen: (() => Chunks) | undefined;
}

/** Throws `InflateError` after the last byte before a fault. */
export async function* inflated({ create, chunks, reopen }: Inflation): AsyncGenerator<Buffer> {
  const inflater = new Inflater(create());
  const kept = reopen ? undefined : new Kept();
  let given = 0;
  try {
    for await (const slice of slices(chunks)) {
      kept?.add(slice);
      yield* await inflater.give(slice);
      if (inflater.fault) break;
      given += slice.length;
    }
    if (!inflater.fault) yield* await inflater.end();
    if (!inflater.fault) return;
    const again = reopen?.() ?? kept?.chunks;
    if (again) yield* lastBytes(create(), again, given, inflater.count);
    throw new InflateError(inflater.fault.message, { cause: inflater.fault });
  } finally {
    inflater.close();
  }
}

/** What inflates after the first `known` bytes, from data whose fault lies after `sound` compressed ones. */
async function* lastBytes(transform: Transform, chunks: Chunks, sound: number, known: number): AsyncGenerator<Buffer> {
  const inflater = new Inflater(transform);
  let given = 0;
  let seen = 0;
  try {
    for await (const slice of slices(chunks)) {
      const isSound = given + slice.length <= sound;
      for (let at = 0; at < slice.length && !inflater.fault; at += isSound ? slice.length : 1) {
        for (const bytes of await inflater.give(isSound ? slice : slice.subarray(at, at + 1))) {
          const start = Math.max(0, known - seen);
          seen += bytes.length;
          if (start < bytes.length) yield bytes.subarray(start);
        }
      }
      if (inflater.fault) return;
      given += slice.length;
    }
  } finally {
    inflater.close();
  }
}

async function* slices(chunks: Chunks): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) yield chunk.subarray(at, at + SLICE_BYTES);
}

/** A copy of the first compressed bytes, as long as there are not too many. */
class Kept {
  #slices: Uint8Array[] | undefined = [];
  #length = 0;

  add(slice: Uint8Array): void {
    this.#length += slice.length;
    if (this.#length > KEPT_BYTES) this.#slices = undefined;
    this.#slices?.push(Uint8Array.from(slice));
  }

  get chunks(): Chunks | undefined {
    const all = this.#slices;
    return (
      all &&
      (async function* () {
        yield* all;
      })()
    );
  }
}

class Inflater {
  /** Bytes that came out. */
  count = 0;
  fault: Error | undefined;
  readonly #transform: Transform;
  #out: Buffer[] = [];
  /** Ends the wait for what was given last. */
  #wake: (() => void) | undefined;

  constructor(transform: Transform) {
    this.#transform = transform;
    transform.on("data", (bytes: Buffer) => {
      this.#out.push(bytes);
      this.count += bytes.length;
    });
    transform.on("error", (error) => {
      this.fault = error;
      this.#wake?.();
    });
    transform.on("end", () => this.#wake?.());
  }

  async give(slice: Uint8Array): Promise<Buffer[]> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#transform.write(slice, () => resolve());
    });
    return this.#take();
  }

  async end(): Promise<Buffer[]> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#transform.end();
    });
    return this.#take();
  }

  #take(): Buffer[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  close(): void {
    this.#transform.destroy();
  }
}
