/**
 * The life of a SkyRL server's supervisor: one process per server, started by whoever needs the server and outliving it. It holds the
 * front door, starts SkyRL behind it, starts it again after a crash, and ends with it when it is idle or told to.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { withDeadline } from "../../abort.ts";
import { fail, messageOf } from "../../diagnostic.ts";
import { writeFileWhole } from "../../files.ts";
import { ownIdentity } from "../../process.ts";
import { Door } from "../door/door.ts";
import type { ProcessHooks } from "../embedded/main.ts";
import { RotatingLog } from "../log.ts";
import { freePort } from "../ports.ts";
import {
  crashPath,
  RUNTIME_VERSION,
  type ServerCrash,
  type ServerRuntime,
  writeRuntime,
  writeStopped,
} from "../runtime.ts";
import { clusterFault } from "./cluster.ts";
import { launchCommand } from "./command.ts";
import { finishSaves } from "./drain.ts";
import { Engine, type EngineEnd } from "./engine.ts";
import type { SkyrlOrder } from "./order.ts";
import { waitUntilServing } from "./ready.ts";
import { Restarts } from "./restarts.ts";
import { usesRay } from "./settings.ts";

export interface SupervisorHooks extends ProcessHooks {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Settles when whoever started it is gone. Until it serves, nobody else knows of it. */
  readonly orphaned: Promise<void>;
}

/** Loading a large model may mean downloading it. */
const START_LIMIT_MS = 3_600_000;
const WATCH_MS = 1000;
/** A jax engine dies after about 150 models, whose compiled code it never frees: it is started anew before, when nobody uses it. */
const MOST_MODELS = 120;

type Why = "idle" | "signal" | "worn";

/** Serves until idle or signalled. Throws RlcliError where it cannot start, or has crashed and is not to be started again. */
export async function superviseSkyrl(order: SkyrlOrder, hooks: SupervisorHooks): Promise<void> {
  const supervisor = new Supervisor(order, hooks);
  await supervisor.run();
}

class Supervisor {
  readonly #order: SkyrlOrder;
  readonly #hooks: SupervisorHooks;
  readonly #log: RotatingLog;
  readonly #door: Door;
  readonly #restarts = new Restarts();
  readonly #token = `tml-${randomBytes(24).toString("base64url")}`;
  readonly #startedAt = new Date().toISOString();
  #serverRun = "";
  #state: "starting" | "serving" | "stopping" = "starting";
  #crash: ServerCrash | undefined;

  constructor(order: SkyrlOrder, hooks: SupervisorHooks) {
    this.#order = order;
    this.#hooks = hooks;
    this.#log = new RotatingLog(order.folder);
    const { host, port, isGuarded, tls } = order;
    this.#door = new Door({
      host,
      port,
      isGuarded,
      token: this.#token,
      status: () => this.#status(),
      ...(tls ? { tls: { cert: readFileSync(tls.certificate, "utf8"), key: readFileSync(tls.key, "utf8") } } : {}),
    });
  }

  async run(): Promise<void> {
    await this.#door.open();
    try {
      for (let isFirst = true; ; isFirst = false) {
        const end = await this.#live(isFirst);
        if (end === "idle" || end === "signal") return writeStopped(this.#order.folder, this.#serverRun, end);
        if (end !== "worn") await this.#recover(end);
      }
    } finally {
      await this.#door.close();
    }
  }

  /** One life of the engine, from its start to its end, and why it ended. Throws RL5023 where the first one does not come up. */
  async #live(isFirst: boolean): Promise<Why | EngineEnd> {
    const { settings, remote } = this.#order;
    // From another machine's point of view it may be elsewhere.
    const missing = remote ? undefined : await clusterFault(settings.rayAddress);
    if (missing !== undefined) {
      const end = { code: 1, lines: [missing] };
      return isFirst ? failStart(this.#order, end) : end;
    }
    const port = await freePort();
    this.#serverRun = randomBytes(16).toString("hex");
    this.#state = "starting";
    const engine = this.#start(port);
    try {
      const failure = await this.#comesUp(engine, port, isFirst);
      if (failure === "signal") return "signal";
      if (failure !== undefined) return isFirst ? failStart(this.#order, failure) : failure;
      this.#serve(port, isFirst);
      return await this.#untilEnd(engine, port);
    } finally {
      await engine.stop();
    }
  }

  #start(port: number): Engine {
    const { folder, settings, environment, uv, servedModel: model, isLocalModel, gpus, remote } = this.#order;
    const where = `${settings.backend}, ${gpus === 0 ? "CPU" : `${gpus} GPUs`}${remote ? `, on ${remote.host}` : ""}`;
    this.#hooks.tell({ t: "phase", text: `loading ${this.#order.model} (${where})` });
    const place = remote ? { folder: remote.folder, port: remote.port } : { folder, port };
    const command = launchCommand(settings, {
      environment,
      uv,
      model,
      isLocalModel,
      gpus,
      marker: resolve(folder),
      ...place,
    });
    this.#log.line(`starting ${command.program} ${command.arguments.join(" ")}`);
    return new Engine({
      command,
      python: `${environment}/bin/python`,
      marker: resolve(folder),
      env: this.#hooks.env,
      cwd: folder,
      log: this.#log,
      hasWorkers: usesRay(settings),
      ...(remote ? { remote: { host: remote.host, port, remotePort: remote.port, folder: remote.folder } } : {}),
    });
  }

  /** Undefined once it serves; else what came between. */
  async #comesUp(engine: Engine, port: number, isFirst: boolean): Promise<EngineEnd | "signal" | undefined> {
    const { settings, servedModel } = this.#order;
    const over = new AbortController();
    const fault = (error: unknown): EngineEnd => ({ code: 1, lines: [messageOf(error)] });
    try {
      return await Promise.race([
        withDeadline(START_LIMIT_MS, over.signal, (limit) =>
          waitUntilServing(`http://127.0.0.1:${port}`, settings.backend, servedModel, limit),
        ).then(() => undefined, fault),
        engine.ended,
        this.#hooks.signalled.then(() => "signal" as const),
        ...(isFirst ? [this.#hooks.orphaned.then(() => "signal" as const)] : []),
      ]);
    } finally {
      over.abort();
    }
  }

  #serve(port: number, isFirst: boolean): void {
    this.#door.activity.engineStarted();
    this.#state = "serving";
    writeRuntime(this.#order.folder, this.#runtime());
    this.#door.lead({ port, serverRun: this.#serverRun });
    this.#log.line(`serving ${this.#order.model} at ${this.#door.publicUrl}${isFirst ? "" : " again"}`);
    this.#hooks.tell({ t: "ready" });
  }

  #runtime(): ServerRuntime {
    const { host, model, servedModel, settings, gpus, digest } = this.#order;
    return {
      formatVersion: RUNTIME_VERSION,
      process: ownIdentity(),
      url: this.#door.url,
      publicUrl: this.#door.publicUrl,
      host,
      token: this.#token,
      model,
      modelFolder: servedModel,
      startedAt: this.#startedAt,
      serverRun: this.#serverRun,
      backend: settings.backend,
      gpus: gpus * settings.nodes,
      digest,
    };
  }

  async #untilEnd(engine: Engine, port: number): Promise<Why | EngineEnd> {
    const over = new AbortController();
    try {
      const end = await Promise.race([
        engine.ended,
        this.#hooks.signalled.then(() => "signal" as const),
        this.#unused(over.signal),
      ]);
      if (typeof end !== "string") return end;
      this.#log.line(WORDS[end]);
      await this.#leave(port, end);
      return end;
    } finally {
      over.abort();
    }
  }

  /** Nothing new comes in; saves that were taken are finished. */
  async #leave(port: number, why: Why): Promise<void> {
    this.#state = "stopping";
    this.#door.lead({ waitingFor: why === "worn" ? "the server to start again" : "the server, which is stopping" });
    const { saves } = this.#door.activity;
    if (saves.size > 0) this.#log.line(`waiting for ${saves.size} saves`);
    await finishSaves(`http://127.0.0.1:${port}`, saves);
  }

  /** Resolves when nobody has used it for long, or when it should be replaced and nobody minds; never after an abort. */
  async #unused(signal: AbortSignal): Promise<Why> {
    const { idleTimeoutSeconds, settings } = this.#order;
    while (!signal.aborted) {
      const { idleMs, models, sessions, openRequests } = this.#door.activity.usage;
      if (idleTimeoutSeconds > 0 && idleMs > idleTimeoutSeconds * 1000) return "idle";
      if (settings.backend === "jax" && models >= MOST_MODELS && sessions === 0 && openRequests === 0) return "worn";
      await sleep(WATCH_MS);
    }
    return new Promise(() => {});
  }

  /** Says what happened and waits before the next start. Throws RL5024 where there is none. */
  async #recover({ code, lines }: EngineEnd): Promise<void> {
    const { folder, restarts, model } = this.#order;
    this.#state = "starting";
    this.#door.lead({ waitingFor: "the server to start again after a crash" });
    this.#crash = { serverRun: this.#serverRun, at: new Date().toISOString(), code, lines };
    writeFileWhole(crashPath(folder), `${JSON.stringify(this.#crash)}\n`);
    const pauseMs = restarts ? this.#restarts.next() : undefined;
    this.#log.line(
      `SkyRL ended with code ${code}${pauseMs === undefined ? "" : `: starting it again in ${pauseMs / 1000} s`}`,
    );
    if (pauseMs === undefined) fail("RL5024", `The server of ${model} crashed (code ${code}):\n${lines.join("\n")}`);
    await Promise.race([sleep(pauseMs), this.#hooks.signalled]);
  }

  #status(): object {
    const { model, settings, gpus } = this.#order;
    const { sessions, openRequests, idleMs, models } = this.#door.activity.usage;
    return {
      formatVersion: 1,
      state: this.#state,
      model,
      backend: settings.backend,
      gpus: gpus * settings.nodes,
      startedAt: this.#startedAt,
      sessions,
      openRequests,
      models,
      idleSeconds: Math.round(idleMs / 1000),
      restarts: this.#restarts.total,
      ...(this.#crash ? { lastCrash: this.#crash } : {}),
    };
  }
}

const WORDS: Readonly<Record<Why, string>> = {
  idle: "idle: stopping",
  signal: "told to stop: stopping",
  worn: `${MOST_MODELS} models made and nobody here: starting anew`,
};

function failStart({ folder, model }: SkyrlOrder, { code, lines }: EngineEnd): never {
  const words = lines.length > 0 ? `\n${lines.join("\n")}` : "";
  return fail(
    "RL5023",
    `The server of ${model} did not come up (code ${code}). All of its words are in ${join(folder, "log.txt")}; the last errors:${words}`,
  );
}
