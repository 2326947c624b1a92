/**
 * Bytes of a WebAssembly module with one function, `multiply(x, w, y, rows, inputs, outputs)`, over an imported memory:
 * y[r, o] = Σ x[r, i] · w[i, o] for float32 matrices at byte addresses x `[rows, inputs]`, w `[inputs, outputs]` and
 * y `[rows, outputs]`; `outputs` is a multiple of 16. In words:
 *
 *   for each tile of 16 outputs
 *     while four rows are left: their 4 x 16 sums stay in registers while i runs over the inputs
 *     then the same for one row at a time
 *
 * Numbers are opcodes of the WebAssembly core specification (and its SIMD part, prefix 0xfd).
 */
const I32 = 0x7f;
const V128 = 0x7b;
const EMPTY = 0x40;

/** Parameters, then locals of the function. */
const X = 0;
const W = 1;
const Y = 2;
const ROWS = 3;
const INPUTS = 4;
const OUTPUTS = 5;
const TILE_AT = 6;
const ROW = 7;
const INPUT = 8;
const W_AT = 9;
const Y_AT = 10;
/** One address for each row of a tile. */
const X_AT = 11;
const MOST_ROWS = 4;
const TILE_VECTORS = 4;
const VALUE = X_AT + MOST_ROWS;
const WEIGHTS = VALUE + 1;
const SUMS = WEIGHTS + TILE_VECTORS;
const LOCALS_END = SUMS + TILE_VECTORS * MOST_ROWS;

type Code = readonly number[];

const get = (local: number): Code => [0x20, local];
const set = (local: number): Code => [0x21, local];
const constant = (value: number): Code => [0x41, ...signed(value)];
const ADD: Code = [0x6a];
const MULTIPLY: Code = [0x6c];
const LESS: Code = [0x48];
const LESS_OR_EQUAL: Code = [0x4c];
const vector = (opcode: number): Code => [0xfd, ...unsigned(opcode)];
/** Alignment is a hint only: 2 stands for four bytes. */
const loadVector = (offset: number): Code => [...vector(0x00), 2, ...unsigned(offset)];
const loadSplat = (offset: number): Code => [...vector(0x09), 2, ...unsigned(offset)];
const storeVector = (offset: number): Code => [...vector(0x0b), 2, ...unsigned(offset)];
const ZERO: Code = [...vector(0x0c), ...new Array<number>(16).fill(0)];
const VECTOR_ADD = vector(0xe4);
const VECTOR_MULTIPLY = vector(0xe6);

/** Repeats `body` while `condition` leaves something other than 0. */
const loopWhile = (condition: Code, body: Code): Code => [
  ...[0x02, EMPTY, 0x03, EMPTY],
  ...condition,
  ...[0x45, 0x0d, 1],
  ...body,
  ...[0x0c, 0, 0x0b, 0x0b],
];

const increase = (local: number, by: Code): Code => [...get(local), ...by, ...ADD, ...set(local)];

function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest & 0x7f;
    rest >>>= 7;
    bytes.push(rest === 0 ? low : low | 0x80);
  } while (rest !== 0);
  return bytes;
}

function signed(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
    bytes.push(isLast ? low : low | 0x80);
    if (isLast) return bytes;
  }
}

/** `rows` rows of one tile, from row ROW on: the sums over all inputs, then the stores. */
function tileOf(rows: number): Code {
  const tile = Array.from({ length: TILE_VECTORS }, (_, i) => i);
  const each = Array.from({ length: rows }, (_, row) => row);
  const sum = (row: number, i: number) => SUMS + row * TILE_VECTORS + i;
  const inputBytes: Code = [...get(INPUTS), ...constant(4), ...MULTIPLY];
  const outputBytes: Code = [...get(OUTPUTS), ...constant(4), ...MULTIPLY];
  const tileBytes: Code = [...get(TILE_AT), ...constant(4), ...MULTIPLY];
  const addressOf = (row: number): Code => [...get(ROW), ...constant(row), ...ADD, ...inputBytes, ...MULTIPLY];
  const addProducts = (row: number): Code => [
    ...[...get(X_AT + row), ...loadSplat(0), ...set(VALUE)],
    ...tile.flatMap((i) => [
      ...[...get(sum(row, i)), ...get(VALUE), ...get(WEIGHTS + i), ...VECTOR_MULTIPLY],
      ...[...VECTOR_ADD, ...set(sum(row, i))],
    ]),
    ...increase(X_AT + row, constant(4)),
  ];
  return [
    ...each.flatMap((row) => tile.flatMap((i) => [...ZERO, ...set(sum(row, i))])),
    ...each.flatMap((row) => [...get(X), ...addressOf(row), ...ADD, ...set(X_AT + row)]),
    ...[...get(W), ...tileBytes, ...ADD, ...set(W_AT)],
    ...[...constant(0), ...set(INPUT)],
    ...loopWhile(
      [...get(INPUT), ...get(INPUTS), ...LESS],
      [
        ...tile.flatMap((i) => [...get(W_AT), ...loadVector(i * 16), ...set(WEIGHTS + i)]),
        ...each.flatMap(addProducts),
        ...increase(W_AT, outputBytes),
        ...increase(INPUT, constant(1)),
      ],
    ),
    ...[...get(Y), ...get(ROW), ...outputBytes, ...MULTIPLY, ...ADD, ...tileBytes, ...ADD, ...set(Y_AT)],
    ...each.flatMap((row) => [
      ...tile.flatMap((i) => [...get(Y_AT), ...get(sum(row, i)), ...storeVector(i * 16)]),
      ...increase(Y_AT, outputBytes),
    ]),
    ...increase(ROW, constant(rows)),
  ];
}

function body(): Code {
  const fourAreLeft: Code = [...get(ROW), ...constant(MOST_ROWS), ...ADD, ...get(ROWS), ...LESS_OR_EQUAL];
  return [
    ...[...constant(0), ...set(TILE_AT)],
    ...loopWhile(
      [...get(TILE_AT), ...get(OUTPUTS), ...LESS],
      [
        ...[...constant(0), ...set(ROW)],
        ...loopWhile(fourAreLeft, tileOf(MOST_ROWS)),
        ...loopWhile([...get(ROW), ...get(ROWS), ...LESS], tileOf(1)),
        ...increase(TILE_AT, constant(TILE_VECTORS * 4)),
      ],
    ),
    0x0b,
  ];
}

export function assembleProduct(): Uint8Array {
  const section = (id: number, content: Code): Code => [id, ...unsigned(content.length), ...content];
  const name = (text: string): Code => [text.length, ...Buffer.from(text)];
  const code = [...[2, VALUE - TILE_AT, I32, LOCALS_END - VALUE, V128], ...body()];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 6, ...new Array<number>(6).fill(I32), 0]),
    ...section(2, [1, ...name("env"), ...name("memory"), 0x02, 0x00, 1]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...name("multiply"), 0x00, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}
