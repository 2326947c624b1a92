/** `rlcli apply --smoke`: the whole spec small, on the embedded server, in a folder that is thrown away. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address } from "../../address.ts";
import { rowsPath } from "../../datasets/dataset.ts";
import { type Diagnostic, fail, hasErrors, RlcliError } from "../../diagnostic.ts";
import { referenceTo } from "../../kinds/attributes.ts";
import { serverFolder } from "../../kinds/connect.ts";
import { datasetsFolder } from "../../kinds/dataset.ts";
import { environmentOrder } from "../../kinds/environment.ts";
import { localFolder } from "../../kinds/model.ts";
import { movingNames, movingSources } from "../../kinds/moving.ts";
import { leftOut, smokeSpec } from "../../kinds/smoke.ts";
import { renderPrompts, renderRows } from "../../kinds/smoke-render.ts";
import type { PlanOptions } from "../../plan/file.ts";
import { ensureBuiltinModel, isBuiltinModel } from "../../servers/builtin.ts";
import { stopServer } from "../../servers/runtime.ts";
import type { Spec, SpecNode } from "../../spec.ts";
import { LocalStateStore } from "../../state/backends/local.ts";
import { type CommandContext, EXIT, type ExitCode, reportFailure } from "../context.ts";
import { type OpenProject, openProject, planProject } from "../project.ts";
import { carryOut } from "./apply.ts";
import { type PlanFlags, planOptions } from "./plan.ts";

/** Tokens that the tiny model of a smoke test takes; the built-in one is for shorter prompts. */
const CONTEXT = 16_384;

/** Something that could not be tried here, and why. */
interface NotExercised {
  readonly what: string;
  readonly why: string;
}

export async function smoke(
  context: CommandContext,
  planFile: string | undefined,
  flags: PlanFlags,
): Promise<ExitCode> {
  if (planFile !== undefined) fail("RL9003", "--smoke tries a spec out, not a saved plan. Leave one of them out.");
  const options = planOptions(context, flags);
  const { files, variables, variableFiles } = options;
  const open = await openProject({ files, variables, variableFiles, cwd: context.cwd, env: context.env });
  if (!open.spec) throw new RlcliError(open.diagnostics);
  const folder = mkdtempSync(join(tmpdir(), "rlcli-smoke-"));
  let isKept = false;
  try {
    const code = await trySmall(context, open as OpenProject & { spec: Spec }, folder, options);
    isKept = code === EXIT.failed;
    return code;
  } finally {
    for (const { address } of serversOf(open.spec))
      await stopServer(serverFolder(join(folder, ".rlcli"), address), { force: true, timeoutMs: 5000 }).catch(() => {});
    if (isKept) context.err(`Its records are kept in ${folder}\n`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

const serversOf = (spec: Spec): readonly SpecNode[] => [...spec.nodes.values()].filter(({ kind }) => kind === "server");

async function trySmall(
  context: CommandContext,
  open: OpenProject & { spec: Spec },
  folder: string,
  { targets, replace }: PlanOptions,
): Promise<ExitCode> {
  const dataFolder = join(folder, ".rlcli");
  // What is not here already is not fetched: this is to take a minute, on any machine.
  const env = { ...open.context.env, HF_HUB_OFFLINE: "1" };
  const project = { ...open.context, dataFolder, env, isSmoke: true };
  const missing = await unreachable(open, project);
  const spec = smokeSpec(open.spec, smokeModel(project.cacheFolder, folder), new Set(missing.keys()));
  const small: OpenProject = { ...open, spec, context: project, store: new LocalStateStore(join(dataFolder, "state")) };
  const left = [...leftOut(open.spec, new Set(missing.keys()))];
  const notExercised: NotExercised[] = left.map((address) => ({
    what: address,
    why: missing.get(address) ?? "it needs one of these",
  }));

  const planned = await planProject(small, { targets, replace, destroy: false, signal: context.outputClosed });
  if (!planned.isValid) {
    reportFailure(context, planned.diagnostics);
    return EXIT.failed;
  }
  context.report(planned.diagnostics);
  const code = await carryOut(context, small, planned, planned.plan, {});
  const faults = await renderFaults(open.spec, small, notExercised);
  context.report(faults);
  sayNotExercised(context, notExercised);
  if (code !== EXIT.done) return code;
  if (hasErrors(faults)) return EXIT.failed;
  if (!context.isJson && notExercised.length === 0) context.out("Everything was tried out.\n");
  return notExercised.length > 0 ? EXIT.incomplete : EXIT.done;
}

/** Datasets whose files are elsewhere, and out of reach. */
async function unreachable(
  { spec }: OpenProject & { spec: Spec },
  project: OpenProject["context"],
): Promise<ReadonlyMap<Address, string>> {
  const missing = new Map<Address, string>();
  for (const node of spec.nodes.values()) {
    const names = node.kind === "dataset" ? movingNames(node) : [];
    if (names.length === 0) continue;
    try {
      const moving = await movingSources(node, project, AbortSignal.timeout(RESOLVE_TIMEOUT_MS));
      await moving?.requireReachable();
    } catch (error) {
      if (!(error instanceof RlcliError) && (error as Error).name !== "TimeoutError") throw error;
      missing.set(node.address, `${names.join(", ")} is not in the cache`);
    }
  }
  return missing;
}

const RESOLVE_TIMEOUT_MS = 10_000;

/** The built-in model with room for long prompts. */
function smokeModel(cacheFolder: string, folder: string): string {
  const model = join(folder, "model");
  cpSync(ensureBuiltinModel("builtin:tiny", cacheFolder), model, { recursive: true });
  const edit = (file: string, change: object): void => {
    const path = join(model, file);
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
  };
  edit("config.json", { max_position_embeddings: CONTEXT });
  edit("tokenizer_config.json", { model_max_length: CONTEXT });
  return model;
}

/** What the real models' templates say to what is trained on and asked. */
async function renderFaults(
  spec: Spec,
  small: OpenProject,
  notExercised: NotExercised[],
): Promise<readonly Diagnostic[]> {
  const faults: Diagnostic[] = [];
  const unknown = new Set<string>();
  for (const node of spec.nodes.values()) {
    if ((node.kind !== "run" && node.kind !== "eval") || !small.spec?.nodes.has(node.address)) continue;
    const server = referenceTo(node, "server") as Address;
    const model = String(spec.nodes.get(server)?.attributes.get("model")?.value);
    const folder = isBuiltinModel(model)
      ? ensureBuiltinModel(model, small.context.cacheFolder)
      : localFolder(model, small.context);
    if (folder) faults.push(...(await renderWith(folder, node, small)));
    else unknown.add(model);
  }
  for (const model of unknown) {
    notExercised.push({ what: `tokenizer of ${model}`, why: "the model is not a folder on this machine" });
  }
  return faults;
}

/** The rows or prompts of a block under the template of its real model. */
async function renderWith(modelFolder: string, node: SpecNode, small: OpenProject): Promise<readonly Diagnostic[]> {
  const { spec, store, context: project } = small;
  const environment = referenceTo(node, "environment");
  const block = environment && spec?.nodes.get(environment);
  const dataset = referenceTo(block ?? node, "dataset");
  const record = dataset && (await store.read(dataset));
  if (!record) return [];
  if (!block) return renderRows(node, rowsPath(datasetsFolder(project.dataFolder), record.hash), modelFolder);
  const kwargs = (node.body.template_kwargs as Record<string, unknown> | undefined) ?? {};
  return renderPrompts(environmentOrder(block, record.hash, project), modelFolder, kwargs);
}

function sayNotExercised(context: CommandContext, list: readonly NotExercised[]): void {
  if (list.length === 0) return;
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: 1, notExercised: list })}\n`);
    return;
  }
  context.out(`Not exercised:\n${list.map(({ what, why }) => `  ${what}: ${why}\n`).join("")}`);
}
