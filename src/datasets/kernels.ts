/**
 * Two loops over bytes that the engine runs several times faster in WebAssembly than in JavaScript, assembled here by hand:
 * marking the bytes of a set (sixteen at a time) and hashing (XXH64). Everything else about reading is TypeScript.
 *
 * What is marked is a byte of one set that is followed by a byte of another, for up to eight such pairs at once. A set has
 * two tables of sixteen bytes: a byte with low nibble l and high nibble h is in the set of pair p if bit p is set in both
 * `low[l]` and `high[h]` (the classification of Langdale and Lemire, "Parsing Gigabytes of JSON per Second", 2019). So a
 * set is all combinations of some low and some high nibbles.
 */

/** All combinations of low and high nibbles; `any`: every byte. */
export type Nibbles = { readonly low: readonly number[]; readonly high: readonly number[] } | "any";

/** Bytes that are marked: of `byte`, where one of `next` follows. */
export interface BytePair {
  readonly byte: Nibbles;
  readonly next: Nibbles;
}

const ALL = Array.from({ length: 16 }, (_, i) => i);
export const TABLE_BYTES = 64;

/** The tables of at most eight pairs. */
export function pairTables(pairs: readonly BytePair[]): Uint8Array {
  const tables = new Uint8Array(TABLE_BYTES);
  const add = (at: number, nibbles: readonly number[], pair: number): void => {
    for (const nibble of nibbles) tables[at + nibble] = (tables[at + nibble] as number) | (1 << pair);
  };
  for (const [pair, sets] of pairs.entries()) {
    for (const [i, set] of [sets.byte, sets.next].entries()) {
      const { low, high } = set === "any" ? { low: ALL, high: ALL } : set;
      add(i * 32, low, pair);
      add(i * 32 + 16, high, pair);
    }
  }
  return tables;
}

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** What is used of the global; the compiler's own declarations of it come only with those of a browser. */
declare const WebAssembly: {
  readonly Memory: new (descriptor: { initial: number }) => Memory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
};

export interface Kernels {
  readonly memory: Memory;
  /** Writes a bit for each byte of [from, to) from `out` on, least significant first; whole sixteens, and one more byte is read. `tables`: where they lie. */
  mark(from: number, to: number, out: number, tables: number): void;
  /** XXH64 of `length` bytes at `from`, as a signed number. */
  hash(from: number, length: number, seed: bigint): bigint;
}

const [I32, I64, V128, VOID] = [0x7f, 0x7e, 0x7b, 0x40];

type Code = readonly number[];
const code = (...parts: readonly Code[]): number[] => parts.flat();
const unsigned = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)]);
const signed = (value: bigint): number[] => {
  const low = Number(value & 127n);
  const rest = value >> 7n;
  return (rest === 0n && low < 64) || (rest === -1n && low >= 64) ? [low] : [low | 128, ...signed(rest)];
};
const get = (local: number): Code => [0x20, local];
const set = (local: number): Code => [0x21, local];
const int = (value: number): Code => [0x41, ...signed(BigInt(value))];
const long = (value: bigint): Code => [0x42, ...signed(BigInt.asIntN(64, value))];
const simd = (opcode: number, ...rest: number[]): Code => [0xfd, ...unsigned(opcode), ...rest];
/** Operators take their operands as code, so that an expression reads from the outside in. */
const binary = (opcode: number) => (a: Code, b: Code) => code(a, b, [opcode]);
const add32 = binary(0x6a);
const sub32 = binary(0x6b);
const geU32 = binary(0x4f);
const add = binary(0x7c);
const sub = binary(0x7d);
const mul = binary(0x7e);
const xor = binary(0x85);
const shr = binary(0x88);
const rotl = binary(0x89);
const loadV128 = (at: Code, offset = 0): Code => code(at, simd(0x00, 0, offset));
const load64 = (at: Code, offset = 0): Code => code(at, [0x29, 0, offset]);
const load32 = (at: Code): Code => code(at, [0x35, 0, 0]);
const load8 = (at: Code): Code => code(at, [0x31, 0, 0]);
const andV128 = (a: Code, b: Code): Code => code(a, b, simd(0x4e));
const swizzle = (table: Code, indices: Code): Code => code(table, indices, simd(0x0e));
const splat8 = (value: number): Code => code(int(value), simd(0x0f));
/** Repeats `body` while `condition` holds at its start. */
const loopWhile = (condition: Code, body: Code): Code =>
  code([0x02, VOID, 0x03, VOID], condition, [0x45, 0x0d, 1], body, [0x0c, 0, 0x0b, 0x0b]);

/** Locals: 0 from, 1 to, 2 out, 3 tables; vectors 4 to 7 the tables, 8 bytes. */
function markCode(): Code {
  const classes = (offset: number, low: number, high: number): Code =>
    code(
      loadV128(get(0), offset),
      set(8),
      andV128(swizzle(get(low), andV128(get(8), splat8(15))), swizzle(get(high), code(get(8), int(4), simd(0x6d)))),
    );
  const isMember = code(andV128(classes(0, 4, 5), classes(1, 6, 7)), splat8(0), simd(0x24), simd(0x64));
  return code(
    ...[0, 1, 2, 3].map((i) => code(loadV128(get(3), i * 16), set(4 + i))),
    loopWhile(
      code(get(0), get(1), [0x49]),
      code(get(2), isMember, [0x3b, 0, 0], add32(get(0), int(16)), set(0), add32(get(2), int(2)), set(2)),
    ),
  );
}

const P1 = 0x9e3779b185ebca87n;
const P2 = 0xc2b2ae3d27d4eb4fn;
const P3 = 0x165667b19e3779f9n;
const P4 = 0x85ebca77c2b2ae63n;
const P5 = 0x27d4eb2f165667c5n;

const round = (lane: Code, input: Code): Code => mul(rotl(add(lane, mul(input, long(P2))), long(31n)), long(P1));
const merge = (h: Code, lane: Code): Code => add(mul(xor(h, round(long(0n), lane)), long(P1)), long(P4));

/** Locals: 0 from, 1 bytes left, 2 seed; 3 the hash, 4 to 7 the lanes, 8 the whole length. */
function hashCode(): Code {
  const [from, left, seed, h] = [0, 1, 2, 3];
  const lanes = [4, 5, 6, 7];
  const step = (bytes: number): Code =>
    code(add32(get(from), int(bytes)), set(from), sub32(get(left), int(bytes)), set(left));
  const starts = [add(get(seed), long(P1 + P2)), add(get(seed), long(P2)), get(seed), sub(get(seed), long(P1))];
  const turns = [1n, 7n, 12n, 18n];
  const summed = lanes.map((lane, i) => rotl(get(lane), long(turns[i] as bigint))).reduce(add);
  const long32 = code(
    ...lanes.map((lane, i) => code(starts[i] as Code, set(lane))),
    loopWhile(
      geU32(get(left), int(32)),
      code(...lanes.map((lane, i) => code(round(get(lane), load64(get(from), i * 8)), set(lane))), step(32)),
    ),
    summed,
    set(h),
    ...lanes.map((lane) => code(merge(get(h), get(lane)), set(h))),
  );
  const fold = (value: Code, turn: bigint, factor: bigint, plus?: bigint): Code => {
    const product = mul(rotl(xor(get(h), value), long(turn)), long(factor));
    return code(plus === undefined ? product : add(product, long(plus)), set(h));
  };
  const spread = (bits: bigint, factor?: bigint): Code => {
    const mixed = xor(get(h), shr(get(h), long(bits)));
    return code(factor === undefined ? mixed : mul(mixed, long(factor)), set(h));
  };
  return code(
    get(left),
    [0xad],
    set(8),
    geU32(get(left), int(32)),
    [0x04, VOID],
    long32,
    [0x05],
    add(get(seed), long(P5)),
    set(h),
    [0x0b],
    add(get(h), get(8)),
    set(h),
    loopWhile(geU32(get(left), int(8)), code(fold(round(long(0n), load64(get(from))), 27n, P1, P4), step(8))),
    geU32(get(left), int(4)),
    [0x04, VOID],
    fold(mul(load32(get(from)), long(P1)), 23n, P2, P3),
    step(4),
    [0x0b],
    loopWhile(geU32(get(left), int(1)), code(fold(mul(load8(get(from)), long(P5)), 11n, P1), step(1))),
    spread(33n, P2),
    spread(29n, P3),
    spread(32n),
    get(h),
  );
}

const sized = (content: Code): Code => [...unsigned(content.length), ...content];
const vector = (items: readonly Code[]): Code => [...unsigned(items.length), ...items.flat()];
const section = (id: number, items: readonly Code[]): Code => [id, ...sized(vector(items))];
const text = (name: string): Code => sized([...Buffer.from(name)]);
const functionType = (parameters: Code, results: Code): Code => [0x60, ...sized(parameters), ...sized(results)];
const body = (locals: readonly Code[], content: Code): Code => sized([...vector(locals), ...content, 0x0b]);

function assemble(): Uint8Array<ArrayBuffer> {
  const types = [functionType([I32, I32, I32, I32], []), functionType([I32, I32, I64], [I64])];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, types),
    ...section(2, [[...text("env"), ...text("memory"), 0x02, 0x00, 1]]),
    ...section(3, [[0], [1]]),
    ...section(7, [
      [...text("mark"), 0x00, 0],
      [...text("hash"), 0x00, 1],
    ]),
    ...section(10, [body([[5, V128]], markCode()), body([[6, I64]], hashCode())]),
  ]);
}

let compiled: object | undefined;

/** Kernels over a memory of their own, of `pages` times 64 KiB at first. */
export function openKernels(pages = 1): Kernels {
  compiled ??= new WebAssembly.Module(assemble());
  const memory = new WebAssembly.Memory({ initial: pages });
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
  return { ...(exports as Omit<Kernels, "memory">), memory };
}
