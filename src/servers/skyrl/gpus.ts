/** The GPUs of this machine, as NVIDIA's own tool lists them. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const TIMEOUT_MS = 15_000;

export interface Gpu {
  readonly name: string;
  readonly memoryMb: number;
  readonly freeMb: number;
}

export interface GpuReport {
  readonly gpus: readonly Gpu[];
  /** Undefined where there is no driver, or it does not answer. */
  readonly driver?: string;
}

export async function reportGpus(): Promise<GpuReport> {
  const fields = "driver_version,name,memory.total,memory.free";
  try {
    const { stdout } = await run("nvidia-smi", [`--query-gpu=${fields}`, "--format=csv,noheader,nounits"], {
      timeout: TIMEOUT_MS,
    });
    return parseGpus(stdout);
  } catch {
    return { gpus: [] };
  }
}

/** Lines of `driver, name, MiB, MiB`. */
export function parseGpus(text: string): GpuReport {
  const rows = text
    .split("\n")
    .map((line) => line.split(",").map((field) => field.trim()))
    .filter((row) => row.length === 4);
  const gpus = rows.map(([, name, memory, free]) => ({
    name: name as string,
    memoryMb: Number(memory),
    freeMb: Number(free),
  }));
  const driver = rows[0]?.[0];
  return driver === undefined ? { gpus } : { gpus, driver };
}

export const countGpus = async (): Promise<number> => (await reportGpus()).gpus.length;
