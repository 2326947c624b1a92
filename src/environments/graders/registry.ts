/** All graders by the type that a spec names; each is loaded when it is first needed. */
import { availableParallelism } from "node:os";
import { isAbsolute, join } from "node:path";
import { fail } from "../../diagnostic.ts";
import type { GraderOrder } from "../../environment-order.ts";
import type { JsonObject } from "../../value.ts";
import type { Grader } from "../grader.ts";

/** What a grader may use of its surroundings. */
export interface GraderContext {
  /** Where relative paths start. Absolute. */
  readonly folder: string;
  /** For answers of judges. Absolute. */
  readonly cacheFolder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told in words when one of several hosts of sandboxes is lost, and when it is back. */
  readonly onHost?: (text: string) => void;
}

/** Requests in flight to a service, where nothing else is said. */
const REQUESTS_AT_ONCE = 64;
/** Tries of one request; whole grades are tried again besides. */
const TRIES = 3;

type Open = (order: GraderOrder, context: GraderContext) => Promise<Grader>;

const GRADERS: Readonly<Record<string, Open>> = {
  math: async ({ options }) => (await import("./math.ts")).mathGrader(options as never),
  match: async ({ options }) => (await import("./match.ts")).matchGrader(options as never),
  json_schema: async ({ options }) => (await import("./json-schema.ts")).jsonSchemaGrader(options as never),
  command: async (order, { folder, env }) =>
    (await import("./command.ts")).commandGrader({
      command: (order.options as { command: readonly string[] }).command,
      cwd: folder,
      env,
      concurrency: order.concurrency ?? availableParallelism(),
      timeoutMs: order.timeoutMs,
    }),
  http: async (order, context) => {
    const key = secretOf(order, context);
    return (await import("./http.ts")).httpGrader({
      url: textOf(order.options, "url"),
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      timeoutMs: order.timeoutMs,
      tries: TRIES,
    });
  },
  module: async (order, { folder }) => {
    const path = textOf(order.options, "module");
    return (await import("./module.ts")).moduleGrader({
      path: isAbsolute(path) ? path : join(folder, path),
      concurrency: order.concurrency ?? availableParallelism(),
      timeoutMs: order.timeoutMs,
    });
  },
  judge: async (order, context) => {
    const { scale_min = 0, scale_max = 10 } = order.options as { scale_min?: number; scale_max?: number };
    return (await import("./judge.ts")).judgeGrader({
      url: textOf(order.options, "url"),
      model: textOf(order.options, "model"),
      apiKey: secretOf(order, context),
      rubric: textOf(order.options, "rubric"),
      scale: { min: scale_min, max: scale_max },
      timeoutMs: order.timeoutMs,
      tries: TRIES,
      cacheFolder: join(context.cacheFolder, "judge"),
    });
  },
};

/** Types whose grades cost no waiting, so that no bound on them is needed. */
const UNBOUNDED: ReadonlySet<string> = new Set(["math", "match", "json_schema"]);

/** Opens a grader. Fails with RL7102 where it cannot be what its options say. */
export async function openGrader(order: GraderOrder, context: GraderContext): Promise<Grader> {
  const open = GRADERS[order.type];
  if (!open) throw new RangeError(`no grader ${order.type}`);
  return open(order, context);
}

/** How many answers a grader judges at once. */
export function gradesAtOnce({ type, concurrency }: GraderOrder): number {
  if (concurrency !== undefined) return concurrency;
  if (UNBOUNDED.has(type)) return Number.POSITIVE_INFINITY;
  return type === "command" || type === "module" ? availableParallelism() : REQUESTS_AT_ONCE;
}

const textOf = (options: JsonObject, key: string): string => String(options[key]);

function secretOf({ apiKey }: GraderOrder, { env }: GraderContext): string | undefined {
  if (apiKey === undefined) return undefined;
  const value = env[apiKey];
  if (!value) fail("RL5012", `The secret ${apiKey} is not set. Give it as the environment variable ${apiKey}.`);
  return value;
}
