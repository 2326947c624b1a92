/** What a machine's findings mean for each backend. Pure. */
import type { Machine } from "./machine.ts";
import { HOW_TO_GET_UV } from "./skyrl/uv.ts";

export interface Check {
  readonly name: string;
  /** `missing` keeps something from working, `warning` may. */
  readonly status: "ok" | "warning" | "missing";
  readonly detail: string;
}

export interface BackendVerdict {
  readonly backend: "embedded" | "jax" | "fsdp" | "megatron" | "harbor";
  readonly isUsable: boolean;
  /** What it lacks, or what slows it down; empty where all is well. */
  readonly lacks: readonly string[];
}

const GB = 1e9;
/** A jax environment takes about 3 GB on a CPU, 8 GB with CUDA; fsdp and megatron about 20 GB. */
const DISK_GB = { jax: 5, fsdp: 25, megatron: 30 } as const;
/** Of the driver that CUDA 13, for which SkyRL's GPU packages are built, asks for. */
const DRIVER = 580;
const LEAST_MEMORY_GB = 4;

export function checksOf(machine: Machine): readonly Check[] {
  const { node, python, uv, driver, gpus, memoryBytes, disk, ports, docker } = machine;
  const gb = (bytes: number) => `${(bytes / GB).toFixed(1)} GB`;
  const found = (name: string, value: string | undefined, otherwise: Omit<Check, "name">): Check =>
    value === undefined ? { name, ...otherwise } : { name, status: "ok", detail: value };
  return [
    { name: "node", status: "ok", detail: node },
    found("uv", uv && `${uv.version} (${uv.path})`, { status: "missing", detail: `not found. ${HOW_TO_GET_UV}` }),
    found("python", python, {
      status: "warning",
      detail: "none of the version that servers take; uv fetches it, which needs a network",
    }),
    driverCheck(driver),
    gpus.length === 0
      ? { name: "gpus", status: "warning", detail: "none" }
      : {
          name: "gpus",
          status: "ok",
          detail: gpus.map(({ name, memoryMb, freeMb }) => `${name}, ${memoryMb} MiB (${freeMb} free)`).join("; "),
        },
    {
      name: "memory",
      status: memoryBytes.free < LEAST_MEMORY_GB * GB ? "warning" : "ok",
      detail: `${gb(memoryBytes.free)} free of ${gb(memoryBytes.total)}`,
    },
    {
      name: "disk",
      status: disk.freeBytes < DISK_GB.jax * GB ? "warning" : "ok",
      detail: `${gb(disk.freeBytes)} free for ${disk.folder}`,
    },
    ...ports.map(
      ({ port, isFree }): Check => ({
        name: `port ${port}`,
        status: isFree ? "ok" : "warning",
        detail: isFree ? "free" : "taken: a server that does not name another `port` cannot start",
      }),
    ),
    found("docker", docker, { status: "warning", detail: "no daemon answers; environments of type harbor need one" }),
  ];
}

function driverCheck(driver: string | undefined): Check {
  if (driver === undefined)
    return {
      name: "cuda driver",
      status: "warning",
      detail: "none: jax runs on the CPU, fsdp and megatron not at all",
    };
  const isOld = Number(driver.split(".")[0]) < DRIVER;
  return {
    name: "cuda driver",
    status: isOld ? "warning" : "ok",
    detail: isOld ? `${driver}, older than the ${DRIVER} that CUDA 13 needs` : driver,
  };
}

export function verdictsOf(machine: Machine): readonly BackendVerdict[] {
  const common = machine.uv === undefined ? ["uv"] : [];
  return [
    { backend: "embedded", isUsable: true, lacks: [] },
    verdict(
      "jax",
      [...common, ...spaceFor(machine, "jax")],
      machine.gpus.length === 0 ? ["a GPU (runs on the CPU, slowly)"] : [],
    ),
    ...(["fsdp", "megatron"] as const).map((backend) =>
      verdict(backend, [...common, ...platformFor(machine), ...gpuFor(machine), ...spaceFor(machine, backend)], []),
    ),
    verdict("harbor", machine.docker === undefined ? ["a Docker daemon"] : [], []),
  ];
}

const verdict = (
  backend: BackendVerdict["backend"],
  missing: readonly string[],
  slower: readonly string[],
): BackendVerdict => ({
  backend,
  isUsable: missing.length === 0,
  lacks: [...missing, ...slower],
});

const platformFor = ({ platform }: Machine): readonly string[] => (platform === "linux" ? [] : ["Linux"]);

function gpuFor({ gpus, driver }: Machine): readonly string[] {
  if (gpus.length === 0) return ["an NVIDIA GPU with its driver"];
  return Number(driver?.split(".")[0]) < DRIVER ? [`a CUDA driver of ${DRIVER} or newer`] : [];
}

function spaceFor({ disk }: Machine, backend: keyof typeof DISK_GB): readonly string[] {
  return disk.freeBytes < DISK_GB[backend] * GB ? [`${DISK_GB[backend]} GB of disk for its Python environment`] : [];
}
