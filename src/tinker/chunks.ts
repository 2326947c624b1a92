/**
 * Large passes: cut into requests under the server's limits, and their results put together again as if there had been
 * one. The cut depends on data and limits alone, so a repeat is cut alike.
 */
import type { Datum, PassResult } from "./data.ts";
import { imageBytes } from "./input.ts";

export interface ChunkLimits {
  /** Datums in one request. */
  readonly datums: number;
  /** About the bytes of one request; a single datum may exceed it. */
  readonly bytes: number;
}

/** What the SDK uses where a server says nothing. */
export const DEFAULT_LIMITS: ChunkLimits = { datums: 1024, bytes: 5_000_000 };

const TOKEN_BYTES = 4;
const INT64_BYTES = 8;

/** Bytes of a datum on the wire, without the framing: whole numbers travel as int64. */
export function datumBytes(datum: Datum): number {
  const { input, lossInputs } = datum;
  const tensors = Object.values(lossInputs).map((t) =>
    t instanceof Int32Array ? t.length * INT64_BYTES : t.byteLength,
  );
  return tensors.reduce((a, b) => a + b, input.length * TOKEN_BYTES + imageBytes(datum));
}

/** Cuts data into requests, in order. */
export function splitData(data: readonly Datum[], limits: ChunkLimits = DEFAULT_LIMITS): (readonly Datum[])[] {
  const parts: Datum[][] = [];
  let open: Datum[] = [];
  let bytes = 0;
  for (const datum of data) {
    const size = datumBytes(datum);
    if (open.length > 0 && (open.length >= limits.datums || bytes + size > limits.bytes)) {
      parts.push(open);
      open = [];
      bytes = 0;
    }
    open.push(datum);
    bytes += size;
  }
  return open.length > 0 ? [...parts, open] : parts;
}

/** Outputs in order, metrics reduced by the suffix of their names. The result of a single request stays as it is. */
export function mergePasses(parts: readonly PassResult[]): PassResult {
  if (parts.length === 1) return parts[0] as PassResult;
  return { outputs: parts.flatMap((part) => part.outputs), metrics: mergeMetrics(parts) };
}

/**
 * Metrics that every part has, by what follows the one colon of their name; protocol section 4.5. Means weigh by the
 * numbers of outputs. Names of another form say nothing about how to put them together and are dropped.
 */
function mergeMetrics(parts: readonly PassResult[]): Record<string, number> {
  const weights = parts.map(({ outputs }) => outputs.length);
  const merged: Record<string, number> = {};
  for (const name of Object.keys(parts[0]?.metrics ?? {})) {
    const values = parts.map(({ metrics }) => metrics[name]);
    const [, suffix, more] = name.split(":");
    if (suffix === undefined || more !== undefined || values.includes(undefined)) continue;
    if (suffix === "unique") {
      values.forEach((value, i) => {
        merged[i === 0 ? name : `${name}_${i}`] = value as number;
      });
      continue;
    }
    const value = reduce(suffix, values as number[], weights);
    if (value !== undefined) merged[name] = value;
  }
  return merged;
}

function reduce(suffix: string, values: readonly number[], weights: readonly number[]): number | undefined {
  switch (suffix) {
    case "sum":
      return values.reduce((a, b) => a + b, 0);
    case "mean":
      return weightedMean(values, weights);
    case "min":
      return Math.min(...values);
    case "max":
      return Math.max(...values);
    case "slack":
      return Math.max(...values) - weightedMean(values, weights);
    case "hash2":
      return Number(
        BigInt.asUintN(
          64,
          values.reduce((sum, value) => sum + BigInt(Math.trunc(value)), 0n),
        ),
      );
    case "last":
      // SkyRL's: the state after the last request.
      return values.at(-1);
    default:
      return undefined;
  }
}

function weightedMean(values: readonly number[], weights: readonly number[]): number {
  const total = weights.reduce((a, b) => a + b, 0);
  return values.reduce((sum, value, i) => sum + value * (weights[i] as number), 0) / total;
}
