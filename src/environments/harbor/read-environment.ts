/** `[environment]` of a task.toml: the container, its limits and its network. */
import type { EnvironmentConfig, HealthcheckConfig, Network } from "./config.ts";
import type { Fields } from "./fields.ts";

const BUILD_TIMEOUT_SEC = 600;

export function readEnvironment(fields: Fields): EnvironmentConfig {
  const image = fields.string("docker_image");
  const cpus = fields.number("cpus");
  const memoryMb = sizeMb(fields, "memory_mb", "memory");
  const gpus = fields.number("gpus", { isWhole: true, isPositive: false });
  const workdir = fields.string("workdir");
  refuseOthers(fields);
  if (sizeMb(fields, "storage_mb", "storage") !== undefined)
    fields.warn(
      fields.has("storage_mb") ? "storage_mb" : "storage",
      "Docker limits storage on few file systems only; the size is not enforced.",
    );
  const healthcheck = fields.has("healthcheck") ? readHealthcheck(fields.table("healthcheck")) : undefined;
  const environment: EnvironmentConfig = {
    ...(image === undefined ? {} : { image }),
    buildTimeoutSec: fields.number("build_timeout_sec") ?? BUILD_TIMEOUT_SEC,
    ...(cpus === undefined ? {} : { cpus }),
    ...(memoryMb === undefined ? {} : { memoryMb }),
    ...(gpus ? { gpus } : {}),
    network: networkOf(fields) ?? "public",
    env: fields.texts("env"),
    ...(workdir === undefined ? {} : { workdir }),
    ...(healthcheck === undefined ? {} : { healthcheck }),
  };
  fields.done();
  return environment;
}

function refuseOthers(fields: Fields): void {
  if (fields.oneOf("os", ["linux", "windows"] as const) === "windows")
    fields.refuse("os", "Windows tasks need a Windows daemon, which is not supported.");
  if (fields.raw("tpu") !== undefined) fields.refuse("tpu", "Docker has no TPUs to give.");
  if (fields.raw("gpu_types") !== undefined)
    fields.warn("gpu_types", "Docker gives any GPU of the host; `gpu_types` is not looked at.");
  if (fields.raw("skills_dir") !== undefined)
    fields.refuse("skills_dir", "Skills for the agent are not supported: it has one tool, bash.");
  const servers = fields.raw("mcp_servers");
  if (servers !== undefined && !(Array.isArray(servers) && servers.length === 0))
    fields.refuse("mcp_servers", "MCP servers are not supported: the agent has one tool, bash.");
}

/** The policy that a table asks for; `allow_internet` is its old spelling. An allowlist is refused, never taken for another. */
export function networkOf(fields: Fields): Network | undefined {
  const mode = fields.oneOf("network_mode", ["public", "no-network", "allowlist"] as const);
  const hosts = fields.strings("allowed_hosts");
  const isAllowed = fields.boolean("allow_internet");
  if (mode === "allowlist") {
    fields.refuse(
      "network_mode",
      "A network that only reaches listed hosts is not supported: Docker alone cannot enforce it.",
    );
    return undefined;
  }
  if (hosts !== undefined) {
    fields.fault("allowed_hosts", '`allowed_hosts` goes with `network_mode = "allowlist"` only.');
    return undefined;
  }
  if (mode !== undefined) return mode;
  return isAllowed === undefined ? undefined : isAllowed ? "public" : "no-network";
}

const UNITS = { k: 1 / 1024, m: 1, g: 1024 } as const;

/** MiB, in today's spelling or as a text with a unit. */
function sizeMb(fields: Fields, key: string, oldKey: string): number | undefined {
  const size = fields.number(key, { isWhole: true });
  const old = fields.raw(oldKey);
  if (old === undefined) return size;
  const [, number, unit] = (typeof old === "string" && /^\s*(\d+(?:\.\d+)?)\s*([kmg])\s*$/i.exec(old)) || [];
  if (number === undefined || unit === undefined)
    return fields.fault(
      oldKey,
      `\`${oldKey}\` is a text with a unit, such as "2G" or "512M"; \`${key}\` is a number of MiB.`,
    );
  const mb = Math.floor(Number(number) * UNITS[unit.toLowerCase() as keyof typeof UNITS]);
  if (mb <= 0) return fields.fault(oldKey, `\`${oldKey}\` is less than 1 MiB.`);
  if (size !== undefined && size !== mb)
    return fields.fault(oldKey, `\`${oldKey}\` and \`${key}\` say different things.`);
  return mb;
}

export function readHealthcheck(fields: Fields): HealthcheckConfig {
  const read = {
    command: fields.string("command") ?? fields.fault("command", "A health check needs its `command`.") ?? "true",
    intervalSec: fields.number("interval_sec") ?? 5,
    timeoutSec: fields.number("timeout_sec") ?? 30,
    startPeriodSec: fields.number("start_period_sec", { isPositive: false }) ?? 0,
    startIntervalSec: fields.number("start_interval_sec") ?? 5,
    retries: fields.number("retries", { isWhole: true }) ?? 3,
  };
  fields.done();
  return read;
}
