/**
 * `servers:` — a training server. Desired is "startable", not "running": a clean idle stop is no change, a death without one is
 * drift, and whoever needs the server starts it. Its checkpoints belong to (project, address) and survive replace and destroy.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Drift } from "../change.ts";
import type { DiagnosticCode } from "../codes.ts";
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import { digestJson } from "../digest.ts";
import type { ActContext, Identity, Kind, Outcome, ProjectContext, ReadContext, Resolved } from "../kind.ts";
import { isAlive, signalProcess } from "../process.ts";
import { isBuiltinModel } from "../servers/builtin.ts";
import { TINY_MODEL } from "../servers/embedded/tiny.ts";
import { listUsers, readRuntime, stopServer } from "../servers/runtime.ts";
import { knownConfig } from "../servers/skyrl/config.ts";
import { isSkyrl } from "../servers/skyrl/settings.ts";
import type { SpecNode } from "../spec.ts";
import { plainIdentity, ruleOf, stringAt } from "./attributes.ts";
import { connect, isManaged, serverFolder, serverSettings } from "./connect.ts";
import { modelRevision } from "./model.ts";
import { probeServer } from "./probe.ts";
import { skyrlFaults } from "./skyrl.ts";

export interface ServerFacts {
  readonly model: string;
  /** What the model's name resolved to; null for a name that only its server knows. */
  readonly revision: string | null;
}

const PAUSE_POLL_MS = 100;

/** How long a stop waits for a running request before it gives up. */
const STOP_TIMEOUT_MS = 60_000;

async function resolve(node: SpecNode, project: ProjectContext, signal: AbortSignal): Promise<Resolved<ServerFacts>> {
  const settings = serverSettings(node);
  const { revision, inputs } = await modelRevision(settings.model, project, signal);
  const { backend, model } = settings;
  const fault = (field: string, code: DiagnosticCode, detail: string): readonly Diagnostic[] => {
    const range = node.rangeOf(field);
    return [diagnostic(code, detail, { address: node.address, range, sourceLine: node.lineOf(range) })];
  };
  let diagnostics: readonly Diagnostic[] = [];
  if (settings.skyrl)
    diagnostics = skyrlFaults(settings).flatMap(({ field, detail }) => fault(field, "RL5020", detail));
  else if (isBuiltinModel(model) && model !== TINY_MODEL)
    diagnostics = fault("model", "RL5001", `There is no built-in model ${model}. Did you mean \`${TINY_MODEL}\`?`);
  else if (backend === "embedded" && revision === null)
    diagnostics = fault(
      "model",
      "RL5010",
      `${model} is not a folder on this machine, and the embedded server loads its weights from one. Download the model and give its folder as \`model\`, or use ${TINY_MODEL} for a first try.`,
    );
  return { facts: { model, revision }, inputs, diagnostics };
}

async function read(context: ReadContext) {
  const { project, address, node, signal } = context;
  if (node && stringAt(node, "backend") === "external") return probeServer(serverSettings(node), project, signal);
  const seen = readRuntime(serverFolder(project.dataFolder, address));
  const drift: Drift[] = [];
  if (seen.state === "died") {
    const last = seen.logTail.trimEnd().split("\n").at(-1) ?? "";
    const words = node && isSkyrl(stringAt(node, "backend") ?? "") && last !== "" ? `; its last words: ${last}` : "";
    drift.push({ message: `its process (pid ${seen.pid}) died without a clean stop${words}`, mend: "restart" });
  }
  return { status: "present" as const, seen: undefined, drift };
}

function identify({ node, facts }: { node: SpecNode; facts: ServerFacts }): Identity {
  const plain = withConfig(plainIdentity(node), node);
  if (facts.revision === null) return plain;
  const attributes = new Map(plain.attributes);
  attributes.set("model.revision", { value: facts.revision, change: "replace", isDefault: false });
  return { ...plain, attributes, hash: digestJson({ settings: plain.hash, revision: facts.revision }) };
}

/** What the backend is started with, of which the block says only a part: shown in the plan, key by key. */
function withConfig(plain: Identity, node: SpecNode): Identity {
  const { skyrl } = serverSettings(node);
  if (!skyrl) return plain;
  const attributes = new Map(plain.attributes);
  for (const [key, value] of Object.entries(knownConfig(skyrl.settings)))
    attributes.set(`backend_config.${key}`, { value, change: "restart", isDefault: false });
  return { ...plain, attributes };
}

async function act(context: ActContext<ServerFacts, undefined>): Promise<Outcome> {
  const { node, project, change, address } = context;
  const folder = serverFolder(project.dataFolder, address);
  const isOurs = readRuntime(folder).state !== "never";
  if (isOurs && ["restart", "replace", "destroy"].includes(change.action)) {
    context.phase("stopping");
    await pauseUsers(folder, context);
    await stopServer(folder, { force: false, timeoutMs: STOP_TIMEOUT_MS });
  }
  if (change.action === "destroy" || !node) return { status: "done", record: "removed" };
  const settings = serverSettings(node);
  if (!isManaged(settings)) return { status: "done", record: { status: "ready", results: {} } };
  if (change.action === "update") {
    return { status: "done", record: { status: "ready", results: {} } };
  }
  const { url } = await connect(settings, project, { signal: context.stop, onPhase: context.phase });
  return { status: "done", record: { status: "ready", results: {} }, summary: `running at ${url}` };
}

/** Asks the runs on a server to stop at the end of their step, and waits for them; others than runs are left to say no. */
async function pauseUsers(folder: string, { phase, stop }: ActContext<ServerFacts, undefined>): Promise<void> {
  const runs = listUsers(folder).filter((user) => user.address.startsWith("run."));
  for (const { process } of runs) signalProcess(process, "SIGTERM");
  for (const { address, process } of runs) {
    phase(`waiting for ${address} to reach the end of its step`);
    while (isAlive(process) && !stop.aborted) await sleep(PAUSE_POLL_MS);
  }
}

export const serverKind: Kind<ServerFacts, undefined> = {
  name: "server",
  removal: "destroy",
  slots: (node) => {
    // fsdp holds one model and has no such setting.
    return serverSettings(node).slots ?? 1;
  },
  ruleOf: (path) => ruleOf("server", path),
  resolve,
  read,
  identify,
  act,
};
