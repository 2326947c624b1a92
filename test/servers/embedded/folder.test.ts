/** Reading model folders: what is refused, and that the number formats are read right. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { RlcliError } from "../../../src/diagnostic.ts";
import { parseArchitecture, readArchitecture, rotaryTables } from "../../../src/servers/embedded/architecture.ts";
import { encodeTensors, readModelTensors, readTensors } from "../../../src/servers/embedded/safetensors.ts";
import { readModel } from "../../../src/servers/embedded/weights.ts";
import { copyOfTinyQwen3, smallConfig, smallModel, temporaryFolder, writeModelFolder } from "./support.ts";

/** Code and detail of the diagnostic that `act` throws. */
function refusalOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
    return error.message;
  }
  throw new Error("nothing was refused");
}

describe("config.json", () => {
  test.each([
    { name: "another architecture", changes: { model_type: "gpt2" }, says: /RL5001.*"gpt2"/ },
    { name: "no architecture", changes: { model_type: undefined }, says: /RL5001.*null/ },
    { name: "quantised weights", changes: { quantization_config: { bits: 4 } }, says: /RL5001.*quantised/ },
    {
      name: "sliding window in use",
      changes: { use_sliding_window: true, sliding_window: 128 },
      says: /RL5001.*sliding-window/,
    },
    {
      name: "sliding layers",
      changes: { layer_types: ["full_attention", "sliding_attention"] },
      says: /RL5001.*"sliding_attention"/,
    },
    { name: "another activation", changes: { hidden_act: "gelu" }, says: /RL5001.*"gelu"/ },
    {
      name: "yarn scaling",
      changes: { rope_scaling: { rope_type: "yarn", factor: 4 } },
      says: /RL5001.*"yarn"/,
    },
    { name: "a missing size", changes: { hidden_size: undefined }, says: /RL5002.*hidden_size.*null/ },
    { name: "a size that is no whole number", changes: { num_hidden_layers: 1.5 }, says: /RL5002.*num_hidden_layers/ },
    { name: "heads that do not fit", changes: { num_key_value_heads: 3 }, says: /RL5002.*3 key\/value heads/ },
    {
      name: "incomplete llama3 scaling",
      changes: { rope_scaling: { rope_type: "llama3", factor: 8 } },
      says: /RL5002.*low_freq_factor/,
    },
  ])("$name is refused", ({ changes, says }) => {
    expect(refusalOf(() => parseArchitecture(smallConfig(changes), {}, "models/m"))).toMatch(says);
  });

  test("a sliding window that Qwen3 does not use is fine", () => {
    const config = smallConfig({ use_sliding_window: false, sliding_window: 4096 });
    expect(parseArchitecture(config, {}, "m").layers).toBe(2);
  });

  test("rope_parameters and rope_theta say the same", () => {
    const plain = parseArchitecture(smallConfig({ rope_theta: 5e5 }), {}, "m");
    const nested = smallConfig({ rope_theta: undefined, rope_parameters: { rope_theta: 5e5, rope_type: "default" } });
    expect(parseArchitecture(nested, {}, "m")).toEqual(plain);
  });

  test("end-of-sequence tokens of generation_config.json win, one or several", () => {
    expect(parseArchitecture(smallConfig(), {}, "m").eosTokens).toEqual([1]);
    expect(parseArchitecture(smallConfig(), { eos_token_id: [3, 4] }, "m").eosTokens).toEqual([3, 4]);
  });

  test("a missing, damaged or foreign file is named", () => {
    const folder = copyOfTinyQwen3();
    writeFileSync(join(folder, "config.json"), "{");
    expect(refusalOf(() => readArchitecture(folder))).toMatch(/RL5002.*config\.json is not JSON/);
    writeFileSync(join(folder, "config.json"), "[]");
    expect(refusalOf(() => readArchitecture(folder))).toMatch(/RL5002.*JSON object/);
    expect(refusalOf(() => readArchitecture(temporaryFolder()))).toMatch(/RL5002.*does not exist/);
  });

  test("llama3 scaling keeps high frequencies and divides low ones", () => {
    const sizes = { model_type: "llama", head_dim: 64, max_position_embeddings: 4096 };
    const scaling = { factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 1024 };
    const plain = rotaryTables(parseArchitecture(smallConfig(sizes), {}, "m"), 9);
    const scaled = rotaryTables(
      parseArchitecture(smallConfig({ ...sizes, rope_scaling: { rope_type: "llama3", ...scaling } }), {}, "m"),
      9,
    );
    const angle = ({ cosines, sines }: typeof plain, position: number, pair: number) =>
      Math.atan2(sines[position * 32 + pair]!, cosines[position * 32 + pair]!);
    expect(angle(scaled, 1, 0)).toBeCloseTo(angle(plain, 1, 0), 6);
    expect(angle(scaled, 8, 31)).toBeCloseTo(angle(plain, 1, 31), 6);
  });
});

describe("safetensors", () => {
  /** A file with one tensor `x` of the given bytes. */
  function writeTensorFile(dtype: string, shape: readonly number[], bytes: Uint8Array): string {
    const header = Buffer.from(JSON.stringify({ x: { dtype, shape, data_offsets: [0, bytes.length] } }));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    const path = join(temporaryFolder(), "x.safetensors");
    writeFileSync(path, Buffer.concat([length, header, bytes]));
    return path;
  }

  test("F32, F16 and BF16 are widened exactly", () => {
    const read = (dtype: string, words: ArrayBufferView) => [
      ...readTensors(writeTensorFile(dtype, [6], Buffer.from(words.buffer))).get("x")!.data,
    ];
    const values = [0, 1, -2.5, 65504, 2 ** -24, Number.NEGATIVE_INFINITY];
    expect(read("F32", Float32Array.from(values))).toEqual(values);
    expect(read("F16", Uint16Array.from([0, 0x3c00, 0xc100, 0x7bff, 0x0001, 0xfc00]))).toEqual(values);
    expect(read("BF16", Uint16Array.from([0, 0x3f80, 0xc020, 0x477f, 0x3380, 0xff80]))).toEqual([
      0,
      1,
      -2.5,
      65280,
      2 ** -24,
      Number.NEGATIVE_INFINITY,
    ]);
  });

  test("what was written is read back", () => {
    const { tensors } = smallModel();
    const path = join(temporaryFolder(), "m.safetensors");
    writeFileSync(path, encodeTensors(tensors));
    expect([...readTensors(path)]).toEqual([...tensors]);
    expect(Buffer.from(encodeTensors(readTensors(path))).equals(readFileSync(path))).toBe(true);
  });

  test("a sharded model is put together by its index", () => {
    const { tensors } = smallModel();
    const folder = temporaryFolder();
    const names = [...tensors.keys()];
    const shards = [names.slice(0, 5), names.slice(5)];
    const weightMap: Record<string, string> = {};
    shards.forEach((shard, i) => {
      const file = `model-0000${i + 1}-of-00002.safetensors`;
      writeFileSync(join(folder, file), encodeTensors(new Map(shard.map((name) => [name, tensors.get(name)!]))));
      for (const name of shard) weightMap[name] = file;
    });
    writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map: weightMap }));
    expect(new Map(readModelTensors(folder))).toEqual(tensors);
  });

  test.each([
    { name: "an empty file", damage: () => Buffer.alloc(0), says: /RL5002.*header does not fit/ },
    { name: "a cut file", damage: (b: Buffer) => b.subarray(0, 2000), says: /RL5002.*(outside|header does not fit)/ },
    { name: "a header that is no JSON", damage: (b: Buffer) => b.fill("x", 8, 40), says: /RL5002.*does not parse/ },
    { name: "text", damage: () => Buffer.from("version https://git-lfs.example/spec/v1"), says: /RL5002.*header/ },
  ])("$name is refused", ({ damage, says }) => {
    const folder = copyOfTinyQwen3();
    const path = join(folder, "model.safetensors");
    writeFileSync(path, damage(readFileSync(path)));
    expect(refusalOf(() => readModel(folder))).toMatch(says);
  });

  test("another number format is named", () => {
    const path = writeTensorFile("I8", [2], Buffer.from([1, 2]));
    expect(refusalOf(() => readTensors(path))).toMatch(/RL5001.*x is stored as I8/);
  });

  test("missing tensors, other shapes and values that are not finite are named", () => {
    const { tensors } = smallModel();
    const without = new Map(tensors);
    without.delete("model.norm.weight");
    expect(refusalOf(() => readModel(writeModelFolder(smallConfig(), without)))).toMatch(/no tensor model\.norm/);
    const wide = smallConfig({ intermediate_size: 32 });
    expect(refusalOf(() => readModel(writeModelFolder(wide, tensors)))).toMatch(/gate_proj.*\[24, 16\].*\[32, 16\]/);
    const norm = { shape: [16], data: new Float32Array(16).fill(Number.NaN) };
    const broken = new Map([...tensors, ["model.norm.weight", norm] as const]);
    expect(refusalOf(() => readModel(writeModelFolder(smallConfig(), broken)))).toMatch(/model\.norm.*not finite/);
  });
});
