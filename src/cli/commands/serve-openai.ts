/** `rlcli serve openai`: OpenAI's chat completions in front of the spec's models, until it is interrupted. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fail } from "../../diagnostic.ts";
import { readFault } from "../../files.ts";
import { isLoopback } from "../../kinds/skyrl.ts";
import { OpenAiEndpoint, type RequestDone } from "../../servers/openai/server.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { ModelPool } from "../models.ts";
import { openPlace, type WeightFlags } from "../target.ts";

export interface ServeOpenAiFlags extends WeightFlags {
  readonly host: string;
  readonly port: number;
  readonly apiKey?: string;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly maxLoaded: number;
  readonly log?: boolean;
}

/** The key's variable: an option is seen by every user of the machine. */
const KEY_VARIABLE = "RLCLI_OPENAI_KEY";
const BODY_LIMIT_BYTES = 64 * 2 ** 20;

export async function serveOpenAi(context: CommandContext, flags: ServeOpenAiFlags): Promise<ExitCode> {
  const { host, port } = flags;
  const open = await openPlace(context, flags);
  const isLocal = isLoopback(host);
  const given = flags.apiKey ?? (context.env[KEY_VARIABLE] || undefined);
  const key = given ?? (isLocal ? undefined : `rlcli-${randomBytes(24).toString("hex")}`);
  const pool = new ModelPool(context, open, flags, flags.maxLoaded);
  const endpoint = new OpenAiEndpoint(pool, {
    host,
    port,
    isLoopback: isLocal,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    ...(key === undefined ? {} : { key }),
    ...tlsOf(context, flags),
    ...(flags.log ? { onDone: (done) => context.err(`${doneText(done)}\n`) } : {}),
    onFault: (error) => context.err(`${error instanceof Error ? error.stack : String(error)}\n`),
  });
  const { stop } = context.interruption();
  const url = await endpoint.open();
  try {
    const models = (await pool.list()).map(({ id }) => id);
    // Printed where it was made here: there is no other way to learn it.
    const made = given === undefined ? key : undefined;
    if (context.isJson)
      context.out(`${JSON.stringify({ formatVersion: 1, url, models, ...(made ? { key: made } : {}) })}\n`);
    else context.out(startedText(context, { url, models, made, isGuarded: key !== undefined }));
    await new Promise<void>((done) => {
      if (stop.aborted) done();
      stop.addEventListener("abort", () => done(), { once: true });
    });
    return EXIT.done;
  } finally {
    await endpoint.close();
    await pool.close();
  }
}

function tlsOf({ cwd }: CommandContext, { tlsCertificate, tlsKey }: ServeOpenAiFlags) {
  if ((tlsCertificate === undefined) !== (tlsKey === undefined))
    fail("RL9003", "--tls-certificate and --tls-key go together: a certificate is of no use without its key.");
  if (tlsCertificate === undefined || tlsKey === undefined) return {};
  const read = (path: string): string => {
    try {
      return readFileSync(resolve(cwd, path), "utf8");
    } catch (error) {
      return fail("RL9009", `${path} ${readFault(error)}.`, { cause: error });
    }
  };
  return { tls: { cert: read(tlsCertificate), key: read(tlsKey) } };
}

interface Started {
  readonly url: string;
  readonly models: readonly string[];
  readonly made: string | undefined;
  readonly isGuarded: boolean;
}

function startedText({ style }: CommandContext, { url, models, made, isGuarded }: Started): string {
  const key = made ?? (isGuarded ? "<its key>" : "none");
  return [
    `Serving ${models.join(", ")} at ${style.bold(url)}`,
    `  export OPENAI_BASE_URL=${url} OPENAI_API_KEY=${key}${isGuarded ? "" : "   # any text: it is not checked on loopback"}`,
    "Also by name: a run's step (agent@40, agent@best, agent@last) and tinker://… checkpoints. Ctrl-C ends it.",
    "",
  ].join("\n");
}

const doneText = ({ method, path, status, model, ms }: RequestDone): string =>
  `${new Date().toISOString().slice(11, 19)} ${method} ${path} ${status}${model === undefined ? "" : ` ${model}`} ${Math.round(ms)} ms`;
