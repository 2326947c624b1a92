/**
 * Loops over bytes that the engine runs several times faster in WebAssembly than in JavaScript, assembled here by hand:
 * marking bytes (sixteen at a time), hashing (XXH64) and copying. Everything else about reading is TypeScript.
 *
 * Marked are bytes at which a JSON string can stop or break: a quote, a backslash, a control character. And, if asked for, a
 * byte of one set that is followed by a byte of another, for up to eight such pairs at once. A set has
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

/** Numbers are addresses in `memory`, or numbers of bytes. */
export interface Kernels {
  readonly memory: Memory;
  /**
   * Writes a bit for each byte of [from, to) from `stops` on, least significant first, where a string can stop; whole
   * sixteens.
   */
  markStops(from: number, to: number, stops: number): void;
  /** The same, and bits of the pairs of `tables` from `points` on; one more byte is read. */
  mark(from: number, to: number, stops: number, points: number, tables: number): void;
  /** XXH64 of `length` bytes at `from`, as a signed number. */
  hash(from: number, length: number, seed: bigint): bigint;
  /** The key of eight bytes at `key` becomes the XXH64 of `length` bytes at `from`, seeded with itself xor those at `kind`. */
  fold(key: number, kind: number, from: number, length: number): void;
  /** Copies to `to`; up to fifteen bytes more are read and written. */
  copy(to: number, from: number, length: number): void;
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

const eq8 = (a: Code, b: Code): Code => code(a, b, simd(0x23));
const ltU8 = (a: Code, b: Code): Code => code(a, b, simd(0x26));
const orV128 = (a: Code, b: Code): Code => code(a, b, simd(0x50));
const bits = (mask: Code): Code => code(mask, simd(0x64));
const store16 = (at: Code, value: Code): Code => code(at, value, [0x3b, 0, 0]);
const step32 = (local: number, by: number): Code => code(add32(get(local), int(by)), set(local));
const isBelow = (a: Code, b: Code): Code => code(a, b, [0x49]);

/** Bits of a vector in a local at which a string can stop. */
const stopBits = (v: number): Code =>
  bits(orV128(orV128(eq8(get(v), splat8(0x22)), eq8(get(v), splat8(0x5c))), ltU8(get(v), splat8(0x20))));

/** Locals: 0 from, 1 to, 2 stops; 3 a vector of bytes. */
function markStopsCode(): Code {
  const body = code(loadV128(get(0)), set(3), store16(get(2), stopBits(3)), step32(0, 16), step32(2, 2));
  return loopWhile(isBelow(get(0), get(1)), body);
}

/** Locals: 0 from, 1 to, 2 stops, 3 points, 4 tables; vectors 5 to 8 the tables, 9 bytes, 10 the bytes after them. */
function markCode(): Code {
  const classes = (v: number, low: number, high: number): Code =>
    andV128(swizzle(get(low), andV128(get(v), splat8(15))), swizzle(get(high), code(get(v), int(4), simd(0x6d))));
  const isMember = bits(code(andV128(classes(9, 5, 6), classes(10, 7, 8)), splat8(0), simd(0x24)));
  return code(
    ...[0, 1, 2, 3].map((i) => code(loadV128(get(4), i * 16), set(5 + i))),
    loopWhile(
      isBelow(get(0), get(1)),
      code(
        ...[0, 1].map((offset) => code(loadV128(get(0), offset), set(9 + offset))),
        store16(get(2), stopBits(9)),
        store16(get(3), isMember),
        step32(0, 16),
        step32(2, 2),
        step32(3, 2),
      ),
    ),
  );
}

/** Locals: 0 to, 1 from, 2 bytes left. */
function copyCode(): Code {
  const move = code(get(0), loadV128(get(1)), simd(0x0b, 0, 0));
  const body = code(move, step32(0, 16), step32(1, 16), sub32(get(2), int(16)), set(2));
  return loopWhile(code(get(2), int(0), [0x4a]), body);
}

/** Locals: 0 key, 1 kind, 2 from, 3 length. */
function foldCode(hash: number): Code {
  const seed = xor(load64(get(0)), load64(get(1)));
  return code(get(0), get(2), get(3), seed, [0x10, hash], [0x37, 0, 0]);
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

/** In the order of their numbers. */
const FUNCTIONS: readonly { readonly name: string; readonly type: number; readonly body: Code }[] = [
  { name: "markStops", type: 0, body: body([[1, V128]], markStopsCode()) },
  { name: "mark", type: 1, body: body([[6, V128]], markCode()) },
  { name: "hash", type: 2, body: body([[6, I64]], hashCode()) },
  { name: "fold", type: 3, body: body([], foldCode(2)) },
  { name: "copy", type: 0, body: body([], copyCode()) },
];

function assemble(): Uint8Array<ArrayBuffer> {
  const types = [
    functionType([I32, I32, I32], []),
    functionType([I32, I32, I32, I32, I32], []),
    functionType([I32, I32, I64], [I64]),
    functionType([I32, I32, I32, I32], []),
  ];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, types),
    ...section(2, [[...text("env"), ...text("memory"), 0x02, 0x00, 1]]),
    ...section(
      3,
      FUNCTIONS.map(({ type }) => [type]),
    ),
    ...section(
      7,
      FUNCTIONS.map(({ name }, i) => [...text(name), 0x00, i]),
    ),
    ...section(
      10,
      FUNCTIONS.map((f) => f.body),
    ),
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
