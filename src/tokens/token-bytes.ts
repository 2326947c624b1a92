/** The bytes that one token stands for. A token may hold part of a character, so its text alone does not tell. */

/**
 * GPT-2's way of spelling bytes as visible characters: those that are visible stand for themselves, the others are numbered from
 * U+0100 on, in their order.
 */
const BYTE_OF: ReadonlyMap<string, number> = (() => {
  const isVisible = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  const bytes = new Map<string, number>();
  let hidden = 0;
  for (let byte = 0; byte < 256; byte++)
    bytes.set(String.fromCharCode(isVisible(byte) ? byte : 0x100 + hidden++), byte);
  return bytes;
})();

/** `spelling` as the vocabulary has it, of a tokenizer whose decoder is of the given type, and the token's text by itself. */
export function bytesOfToken(spelling: string, decoder: string | undefined, text: string): Uint8Array {
  const hex = /^<0x([0-9A-F]{2})>$/i.exec(spelling)?.[1];
  if (hex !== undefined) return Uint8Array.of(Number.parseInt(hex, 16));
  const bytes = decoder === "ByteLevel" ? spelledBytes(spelling) : undefined;
  return bytes ?? new TextEncoder().encode(text);
}

/** The bytes that a spelling stands for; undefined where a character of it stands for none, or it has none. */
export function spelledBytes(spelling: string): Uint8Array | undefined {
  const bytes = [...spelling].map((character) => BYTE_OF.get(character));
  const isWhole = bytes.length > 0 && bytes.every((byte) => byte !== undefined);
  return isWhole ? Uint8Array.from(bytes as number[]) : undefined;
}
