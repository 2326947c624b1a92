/** Tape archives in the ustar format (POSIX.1-1988): a header of 512 bytes a file, contents padded to as many. */

export interface TarFile {
  /** At most 100 bytes. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

const BLOCK = 512;

/** An uncompressed archive. The same files give the same bytes: there are no times and no owners in it. */
export function tarOf(files: readonly TarFile[]): Buffer {
  const parts = files.flatMap(({ name, bytes }) => [
    header(name, bytes.length),
    bytes,
    Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function header(name: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  if (Buffer.byteLength(name) > 100) throw new Error(`${name} is too long a name for an archive`);
  const octal = (value: number, at: number, width: number) =>
    block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at, "ascii");
  block.write(name, 0);
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  // The checksum is taken with its own field full of spaces.
  block.fill(" ", 148, 156);
  block.write("0", 156);
  block.write("ustar\x0000", 257, "ascii");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return block;
}
