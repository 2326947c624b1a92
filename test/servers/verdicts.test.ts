/** What findings about a machine mean, as tables; and that this machine can be looked at. */
import { describe, expect, test } from "vitest";
import { examineMachine, type Machine } from "../../src/servers/machine.ts";
import { parseGpus } from "../../src/servers/skyrl/gpus.ts";
import { checksOf, verdictsOf } from "../../src/servers/verdicts.ts";

const GPU_BOX: Machine = {
  platform: "linux",
  node: "20.19.0",
  python: "3.12.1",
  uv: { path: "/usr/bin/uv", version: "0.9.0" },
  docker: "28.0.0",
  driver: "580.65.06",
  gpus: [{ name: "NVIDIA H100 80GB HBM3", memoryMb: 81559, freeMb: 81000 }],
  memoryBytes: { total: 512e9, free: 400e9 },
  disk: { folder: "/home/me/.local/share/rlcli", freeBytes: 900e9 },
  ports: [{ port: 8000, isFree: true }],
};
const { uv: _, ...withoutUv } = GPU_BOX;
const { docker: __, ...withoutDocker } = GPU_BOX;
const { driver: ___, ...withoutDriver } = GPU_BOX;
const LAPTOP: Machine = { ...withoutDriver, gpus: [] };

const lacking = (machine: Machine) =>
  Object.fromEntries(
    verdictsOf(machine)
      .filter(({ lacks }) => lacks.length > 0)
      .map(({ backend, isUsable, lacks }) => [backend, [isUsable, ...lacks]]),
  );
const amiss = (machine: Machine) =>
  checksOf(machine)
    .filter(({ status }) => status !== "ok")
    .map(({ name, status }) => `${name} ${status}`);

describe.each<{ name: string; machine: Machine; lacks: object; checks: string[] }>([
  { name: "a GPU box", machine: GPU_BOX, lacks: {}, checks: [] },
  {
    name: "a laptop",
    machine: LAPTOP,
    lacks: {
      jax: [true, "a GPU (runs on the CPU, slowly)"],
      fsdp: [false, "an NVIDIA GPU with its driver"],
      megatron: [false, "an NVIDIA GPU with its driver"],
    },
    checks: ["cuda driver warning", "gpus warning"],
  },
  {
    name: "no uv",
    machine: withoutUv,
    lacks: { jax: [false, "uv"], fsdp: [false, "uv"], megatron: [false, "uv"] },
    checks: ["uv missing"],
  },
  {
    name: "no Docker",
    machine: withoutDocker,
    lacks: { harbor: [false, "a Docker daemon"] },
    checks: ["docker warning"],
  },
  {
    name: "an old driver, a full disk, a taken port, little memory",
    machine: {
      ...GPU_BOX,
      driver: "535.54",
      disk: { folder: "/", freeBytes: 4e9 },
      ports: [{ port: 8000, isFree: false }],
      memoryBytes: { total: 8e9, free: 1e9 },
    },
    lacks: {
      jax: [false, "5 GB of disk for its Python environment"],
      fsdp: [false, "a CUDA driver of 580 or newer", "25 GB of disk for its Python environment"],
      megatron: [false, "a CUDA driver of 580 or newer", "30 GB of disk for its Python environment"],
    },
    checks: ["cuda driver warning", "memory warning", "disk warning", "port 8000 warning"],
  },
])("$name", ({ machine, lacks, checks }) => {
  test("lacks what it lacks", () => expect(lacking(machine)).toEqual(lacks));
  test("has its faults named", () => expect(amiss(machine)).toEqual(checks));
});

test("reads what nvidia-smi prints", () => {
  const text = "580.65.06, NVIDIA H100 80GB HBM3, 81559, 81004\n580.65.06, NVIDIA H100 80GB HBM3, 81559, 12\n";
  expect(parseGpus(text)).toEqual({
    driver: "580.65.06",
    gpus: [
      { name: "NVIDIA H100 80GB HBM3", memoryMb: 81559, freeMb: 81004 },
      { name: "NVIDIA H100 80GB HBM3", memoryMb: 81559, freeMb: 12 },
    ],
  });
  expect(parseGpus("No devices were found\n")).toEqual({ gpus: [] });
});

test("this machine can be looked at, and a uv that is not there is not found", async () => {
  const machine = await examineMachine({ ...process.env, RLCLI_UV: "/nowhere/uv" }, "3.12");
  expect(machine.uv).toBeUndefined();
  expect(machine.memoryBytes.total).toBeGreaterThan(machine.memoryBytes.free);
  expect(machine.disk.freeBytes).toBeGreaterThan(0);
});
