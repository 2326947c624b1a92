/** What decoding gives: a value, or what is wrong with the bytes. Bytes from the network are never worth an exception. */

export type Decoded<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: string };

/** Thrown inside this folder only; `decoding` turns it into an error value. */
export class WireFault extends Error {}

/** Runs a decoder. Whatever it throws is the fault of the bytes: decoders have no other input. */
export function decoding<T>(message: string, decode: () => T): Decoded<T> {
  try {
    return { ok: true, value: decode() };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ok: false, error: `${message}: ${reason}` };
  }
}

/** `work` with the place it was in at the head of a fault's words: `data.3: target_tokens: …`. */
export function at<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof WireFault) throw new WireFault(`${place}: ${error.message}`);
    throw error;
  }
}
