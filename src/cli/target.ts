/** From what a user names (a run, a checkpoint, a model, a URL) to a connected server and weights on it. */
import { type Address, parseAddress } from "../address.ts";
import { diagnostic, fail, RlcliError } from "../diagnostic.ts";
import { type Connection, connect, type ServerSettings, serverSettings } from "../kinds/connect.ts";
import { deploymentResults } from "../kinds/deployment-record.ts";
import { findCheckpoint } from "../kinds/run/find.ts";
import { resultsOf } from "../kinds/run/identity.ts";
import { runFolder } from "../kinds/run/observe.ts";
import type { SpecNode } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { didYouMean, didYouMeanOf } from "../suggest.ts";
import { parseCheckpointPath } from "../tinker/paths.ts";
import { readRunSummary } from "../training/progress.ts";
import { type ServerFlags, serverSpec } from "./adhoc/server.ts";
import type { CommandContext } from "./context.ts";
import { openWith } from "./open.ts";
import type { SpecOptions } from "./options.ts";
import { type OpenProject, openProject } from "./project.ts";
import { serverNodes } from "./servers.ts";

export interface TargetFlags extends Partial<SpecOptions>, ServerFlags {
  readonly server?: string;
  readonly model?: string;
  readonly baseUrl?: string;
}

export interface Target {
  readonly open: OpenProject;
  readonly settings: ServerSettings;
  /** Starts an embedded server on need. */
  connect(): Promise<Connection>;
}

/**
 * The project whose spec the flags name; an ad-hoc one where a model or a URL is given instead. `asked` names the run or deployment that is
 * asked for, on whose server it then is.
 */
export async function openTarget(context: CommandContext, flags: TargetFlags, asked?: string): Promise<Target> {
  return targetIn(context, await openPlace(context, flags), flags, asked);
}

/** The project alone. */
export async function openPlace(context: CommandContext, flags: TargetFlags): Promise<OpenProject> {
  const isAdhoc = flags.model !== undefined || flags.baseUrl !== undefined;
  return isAdhoc ? openAdhocServer(context, flags) : openWith(context, flags);
}

/** The server of a project that is open. */
export function targetIn(context: CommandContext, open: OpenProject, flags: TargetFlags, asked?: string): Target {
  const settings = serverSettings(serverNode(open, flags.server ?? serverNamedBy(open, asked)));
  return {
    open,
    settings,
    connect: () => connect(settings, open.context, { onPhase: (text) => context.err(`${text}\n`) }),
  };
}

async function openAdhocServer(context: CommandContext, flags: TargetFlags): Promise<OpenProject> {
  const { file } = await serverSpec(context, flags.model, flags.baseUrl, flags);
  const open = await openProject({
    files: [file],
    variables: {},
    variableFiles: [],
    cwd: context.cwd,
    env: context.env,
  });
  if (!open.spec) throw new RlcliError(open.diagnostics);
  return open;
}

function serverNamedBy({ spec }: OpenProject, asked: string | undefined): string | undefined {
  const referenced = (from: string, path: string) =>
    spec?.nodes.get(from as Address)?.references.find((reference) => reference.path === path)?.to;
  const name = asked?.split("@")[0] ?? "";
  const run = name.startsWith("deployment.") ? referenced(name, "checkpoint") : `run.${name.replace(/^run\./, "")}`;
  return run === undefined ? undefined : referenced(run, "server");
}

function serverNode(open: OpenProject, name: string | undefined): SpecNode {
  const servers = serverNodes(open);
  const names = servers.map((node) => node.name);
  if (name === undefined && servers.length === 1) return servers[0] as SpecNode;
  const found = servers.find((node) => node.name === name || node.address === name);
  if (found) return found;
  if (name === undefined)
    fail("RL9003", `The spec has ${names.length} servers (${names.join(", ")}): say which with --server.`);
  return fail("RL9009", `The spec has no server \`${name}\`.${didYouMean(name, names)}`);
}

export interface WeightFlags extends TargetFlags {
  readonly checkpoint?: string;
  readonly base?: boolean;
}

/** Weights that a user asks for. */
export interface AskedWeights {
  /** For people. */
  readonly name: string;
  /** Where that is known. */
  readonly step?: number;
  readonly weights: { readonly training?: string; readonly sampler?: string };
}

const isCheckpointPath = (text: string): boolean => /^tinker:\/\//.test(text);

/** The base model's name, where no run has it. */
export const BASE = "base";

/** Where the weights are that were asked for; undefined for the base model. Known before a server is started for them. */
export async function askedWeights(
  target: Pick<Target, "open">,
  asked: string | undefined,
  flags: WeightFlags,
): Promise<AskedWeights | undefined> {
  const path = flags.checkpoint ?? (asked !== undefined && isCheckpointPath(asked) ? asked : undefined);
  if (path !== undefined) return checkpointAt(path, flags.checkpoint === undefined);
  if (asked === undefined && (flags.base || flags.model !== undefined || flags.baseUrl !== undefined)) return undefined;
  if (asked === BASE && !(await isKnownRun(target.open, BASE))) return undefined;
  const weights = await weightsOf(target.open, asked ?? onlyRun(target));
  return { name: `${weights.address} at step ${weights.step}`, step: weights.step, weights };
}

function checkpointAt(path: string, isArgument: boolean): AskedWeights {
  const parts = parseCheckpointPath(path);
  if (!parts || parts.kind === "external_weights")
    fail(
      "RL9003",
      `${isArgument ? "A checkpoint's path is" : "--checkpoint takes a path"} as \`rlcli checkpoint list\` prints it, not \`${path}\`.`,
    );
  return { name: path, weights: parts.kind === "weights" ? { training: path } : { sampler: path } };
}

async function isKnownRun({ spec, store }: OpenProject, name: string): Promise<boolean> {
  return spec?.nodes.has(`run.${name}`) === true || (await store.read(`run.${name}`)) !== undefined;
}

function onlyRun({ open }: Pick<Target, "open">): string {
  const runs = [...(open.spec?.nodes.values() ?? [])].filter((node) => node.kind === "run").map((node) => node.name);
  if (runs.length === 1) return runs[0] as string;
  return fail(
    "RL9003",
    `Say what to take: a run (${runs.join(", ") || "the spec has none"}), a deployment, --checkpoint tinker://…, --base, or --model for a base model.`,
  );
}

export interface Weights {
  readonly address: Address;
  readonly step: number;
  readonly training: string;
  readonly sampler?: string;
}

/** The weights of a run (`assistant`, `run.assistant`, `assistant@40`, `@best`, `@last`) or of a deployment (`deployment.production`). */
async function weightsOf(open: OpenProject, text: string): Promise<Weights> {
  if (text.startsWith("deployment.")) return deployedWeights(open, text as Address);
  const [name, selector] = text.replace(/^run\./, "").split("@") as [string, string | undefined];
  const address = `run.${name}` as const;
  if (!parseAddress(address)) fail("RL9003", `\`${text}\` does not name a run.`);
  const record = await open.store.read(address);
  if (!record) return notTrained(open, address);
  const found = selector === undefined ? finalOf(record) : selected(open, record, name, selector);
  if (!found) {
    const hint =
      selector === undefined
        ? `Its training has not reached its end; \`${name}@last\` is the newest checkpoint that it has, if any, and \`rlcli status\` shows how far it is.`
        : selector === "best"
          ? notJudged(open, record, name)
          : "`rlcli checkpoint list` shows what is kept.";
    throw new RlcliError(diagnostic("RL9009", `${text} has no checkpoint. ${hint}`, { address }));
  }
  return { address, ...found };
}

/** Why no checkpoint is known to be the best. */
function notJudged(open: OpenProject, record: StateRecord, name: string): string {
  const { order, durable } = readRunSummary(runFolder(open.context.dataFolder, name, record.hash, record.incarnation));
  if (durable.length === 0) return "None is kept yet; `rlcli status` shows how far it is.";
  const [why, how] =
    order?.settings.type === "rl"
      ? ["no eval looked on", `Give an eval of it \`every\` (\`checkpoint: ${name}, every: 10\`) and train again`]
      : ["it held out no rows", "Give it `test_size` (and `eval_every`) and train again"];
  return `Nothing tells which of its ${durable.length} checkpoints is the best: ${why} while it trained. ${how}, or take \`${name}\` (its end), \`${name}@last\` or a step that \`rlcli checkpoint list\` shows.`;
}

async function notTrained({ spec, store }: OpenProject, address: Address): Promise<never> {
  const known = [...(await store.list()).records.keys(), ...(spec?.nodes.keys() ?? [])].filter((key) =>
    /^(run|deployment)\./.test(key),
  );
  const deployment = address.replace(/^run\./, "deployment.");
  const sameName = known.includes(deployment as Address) ? ` Did you mean \`${deployment}\`?` : "";
  if (spec?.nodes.has(address) === true)
    return fail("RL9009", `${address} has not been trained.${sameName} \`rlcli apply\` trains what the spec says.`);
  return fail("RL9009", `There is no ${address}.${sameName || didYouMeanOf(address, known)}`);
}

/** Where a deployment points now. */
async function deployedWeights(open: OpenProject, text: Address): Promise<Weights> {
  const [name, selector] = text.split("@");
  if (selector !== undefined) fail("RL9003", `${name} points at one checkpoint: leave out \`@${selector}\`.`);
  const results = deploymentResults(await open.store.read(text));
  if (results) {
    const { run, step, training, sampler } = results;
    return { address: run, step, training, ...(sampler ? { sampler } : {}) };
  }
  const known = [...(open.spec?.nodes.keys() ?? [])].filter((key) => key.startsWith("deployment."));
  if (known.includes(text))
    return fail("RL9009", `${text} points nowhere yet. It moves when what it requires passes; \`rlcli apply\` tries.`);
  return fail("RL9009", `There is no ${text}.${didYouMeanOf(text, known)}`);
}

function finalOf(record: StateRecord): Omit<Weights, "address"> | undefined {
  const results = resultsOf(record);
  return results?.training === undefined
    ? undefined
    : { step: results.step, training: results.training, ...(results.sampler ? { sampler: results.sampler } : {}) };
}

function selected(
  open: OpenProject,
  record: StateRecord,
  name: string,
  selector: string,
): Omit<Weights, "address"> | undefined {
  const folder = runFolder(open.context.dataFolder, name, record.hash, record.incarnation);
  if (selector === "last") return readRunSummary(folder).durable.at(-1);
  return findCheckpoint(folder, selector === "best" ? { best: true } : { steps: Number(selector) });
}
