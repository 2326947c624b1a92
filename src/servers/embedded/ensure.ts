/** The embedded server as a program to supervise. */
import { existsSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { fail } from "../../diagnostic.ts";
import { ensureBuiltinModel, isBuiltinModel } from "../builtin.ts";
import { type EnsureControl, ensureServer } from "../ensure.ts";
import type { ServerOrder } from "../launch.ts";
import type { ServerRuntime } from "../runtime.ts";

export interface EnsureOptions extends EnsureControl {
  readonly folder: string;
  /** `builtin:tiny` or a Hugging Face folder. */
  readonly model: string;
  /** Where a relative model folder starts; the working directory by default. */
  readonly baseFolder?: string;
  /** Where built-in models are written. */
  readonly cacheFolder: string;
  /** A free one by default. */
  readonly port?: number;
  readonly host?: string;
  readonly idleTimeoutSeconds?: number;
  readonly slots?: number;
}

const DEFAULTS = { host: "127.0.0.1", idleTimeoutSeconds: 300, slots: 8 } as const;
const WHAT = "embedded server";

/** The running embedded server of a folder, started if there is none. Callers may race: all get the same one. */
export async function ensureEmbedded(options: EnsureOptions): Promise<ServerRuntime> {
  const modelFolder = resolveModel(options);
  const { folder, model } = options;
  const order: ServerOrder = {
    folder: resolve(folder),
    model,
    modelFolder,
    host: options.host ?? DEFAULTS.host,
    port: options.port ?? 0,
    idleTimeoutSeconds: options.idleTimeoutSeconds ?? DEFAULTS.idleTimeoutSeconds,
    slots: options.slots ?? DEFAULTS.slots,
  };
  const program = {
    what: WHAT,
    folder,
    healthTimeoutMs: 0,
    differs: (found: ServerRuntime) => difference(found, options, modelFolder),
    prepare: async () => ({ entry: "embedded-server", what: WHAT, folder, order }) as const,
  };
  return ensureServer(program, options);
}

function resolveModel({ model, baseFolder, cacheFolder }: EnsureOptions): string {
  if (isBuiltinModel(model)) return ensureBuiltinModel(model, cacheFolder);
  const folder = isAbsolute(model) ? model : resolve(baseFolder ?? ".", model);
  if (!existsSync(join(folder, "config.json")))
    fail("RL5002", `${folder} is not a Hugging Face model folder: it has no config.json.`);
  return folder;
}

function difference(found: ServerRuntime, { port, host }: EnsureOptions, modelFolder: string): string | undefined {
  const foundPort = Number(new URL(found.url).port);
  if (found.modelFolder !== modelFolder) return `with the model ${found.model} (${found.modelFolder})`;
  if (port !== undefined && port !== 0 && port !== foundPort) return `on port ${foundPort}`;
  return host !== undefined && host !== found.host ? `on ${found.host}` : undefined;
}
