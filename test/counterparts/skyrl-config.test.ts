/** The configurations that rlcli derives, built by the classes of SkyRL that will read them. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { backendConfig } from "../../src/servers/skyrl/config.ts";
import { CONFIGS, settings } from "../servers/skyrl/configs.ts";
import { cache } from "./environment.ts";

const python = join(cache, "skyrl/bin/python");
const imports = "import skyrl.backends.jax, skyrl.train.config";
const canImport =
  process.env.RLCLI_TEST_ALL === "1" &&
  existsSync(python) &&
  spawnSync(python, ["-c", imports], { env: { ...process.env, JAX_PLATFORMS: "cpu" } }).status === 0;

const cases = Object.entries(CONFIGS).map(([name, { of }]) => {
  const given = settings(of);
  return [name, { backend: given.backend, config: backendConfig(given, given.gpus!) }] as const;
});

test.skipIf(!canImport)(
  "SkyRL takes them and reads what was meant (needs SkyRL, RLCLI_TEST_ALL)",
  () => {
    const script = new URL("skyrl_config.py", import.meta.url).pathname;
    const said = execFileSync(python, [script], {
      input: JSON.stringify(Object.fromEntries(cases)),
      encoding: "utf8",
      env: { ...process.env, JAX_PLATFORMS: "cpu" },
    });
    const faults: Record<string, string | null> = JSON.parse(said.trim().split("\n").at(-1)!);
    expect(faults).toEqual(Object.fromEntries(cases.map(([name]) => [name, null])));
  },
  120_000,
);

test.skipIf(!canImport)(
  "SkyRL refuses a key that it does not have (needs SkyRL, RLCLI_TEST_ALL)",
  () => {
    const script = new URL("skyrl_config.py", import.meta.url).pathname;
    const input = JSON.stringify({
      fsdp: { backend: "fsdp", config: { "trainer.placement.policy_num_gpu_per_node": 8 } },
      jax: { backend: "jax", config: { max_lora_adaptors: 8 } },
    });
    const said = execFileSync(python, [script], {
      input,
      encoding: "utf8",
      env: { ...process.env, JAX_PLATFORMS: "cpu" },
    });
    const faults = JSON.parse(said.trim().split("\n").at(-1)!);
    expect(faults.fsdp).toMatch(/Error|taken as/);
    expect(faults.jax).toMatch(/max_lora_adaptors/);
  },
  120_000,
);
