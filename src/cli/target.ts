/** From what a user names (a run, a checkpoint, a model, a URL) to a connected server and weights on it. */
import { type Address, parseAddress } from "../address.ts";
import { diagnostic, fail, RlcliError } from "../diagnostic.ts";
import { type Connection, connect, type ServerSettings, serverSettings } from "../kinds/connect.ts";
import { findCheckpoint } from "../kinds/run/find.ts";
import { resultsOf } from "../kinds/run/identity.ts";
import { runFolder } from "../kinds/run/observe.ts";
import type { SpecNode } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { didYouMean } from "../suggest.ts";
import { type ServerFlags, serverSpec } from "./adhoc/server.ts";
import type { CommandContext } from "./context.ts";
import { openWith } from "./open.ts";
import type { SpecOptions } from "./options.ts";
import { type OpenProject, openProject } from "./project.ts";

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
 * The project whose spec the flags name; an ad-hoc one where a model or a URL is given instead. `run` is the run that is asked for, on whose
 * server it then is.
 */
export async function openTarget(context: CommandContext, flags: TargetFlags, run?: string): Promise<Target> {
  const isAdhoc = flags.model !== undefined || flags.baseUrl !== undefined;
  const open = isAdhoc ? await openAdhocServer(context, flags) : await openWith(context, flags);
  const settings = serverSettings(serverNode(open, flags.server ?? serverNamedBy(open, run)));
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

function serverNamedBy({ spec }: OpenProject, run: string | undefined): string | undefined {
  const name = run?.replace(/^run\./, "").split("@")[0];
  return spec?.nodes.get(`run.${name}`)?.references.find(({ path }) => path === "server")?.to;
}

function serverNode({ spec }: OpenProject, name: string | undefined): SpecNode {
  const servers = [...(spec?.nodes.values() ?? [])].filter((node) => node.kind === "server");
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

/** Where the weights are that were asked for; undefined for the base model. Known before a server is started for them. */
export async function askedWeights(
  target: Target,
  run: string | undefined,
  flags: WeightFlags,
): Promise<AskedWeights | undefined> {
  const { checkpoint } = flags;
  if (checkpoint !== undefined) {
    if (!/^tinker:\/\/[^/]+\/(sampler_)?weights\/[^/]+$/.test(checkpoint))
      fail("RL9003", `--checkpoint takes a path as \`rlcli checkpoint list\` prints it, not \`${checkpoint}\`.`);
    const isTraining = /^tinker:\/\/[^/]+\/weights\//.test(checkpoint);
    return { name: checkpoint, weights: isTraining ? { training: checkpoint } : { sampler: checkpoint } };
  }
  if (run === undefined && (flags.base || flags.model !== undefined || flags.baseUrl !== undefined)) return undefined;
  const weights = await weightsOf(target.open, run ?? onlyRun(target));
  return { name: `${weights.address} at step ${weights.step}`, step: weights.step, weights };
}

function onlyRun({ open }: Target): string {
  const runs = [...(open.spec?.nodes.values() ?? [])].filter((node) => node.kind === "run").map((node) => node.name);
  if (runs.length === 1) return runs[0] as string;
  return fail(
    "RL9003",
    `Say what to take: a run (${runs.join(", ") || "the spec has none"}), --checkpoint tinker://…, or --model for a base model.`,
  );
}

export interface Weights {
  readonly address: Address;
  readonly step: number;
  readonly training: string;
  readonly sampler?: string;
}

/** The weights of a run: `assistant`, `run.assistant`, `assistant@40`, `assistant@best`. */
export async function weightsOf(open: OpenProject, text: string): Promise<Weights> {
  const [name, selector] = text.replace(/^run\./, "").split("@") as [string, string | undefined];
  const address = `run.${name}` as const;
  if (!parseAddress(address)) fail("RL9003", `\`${text}\` does not name a run.`);
  const record = await open.store.read(address);
  if (!record) {
    const known = [...(await open.store.list()).records.keys()].filter((key) => key.startsWith("run."));
    fail(
      "RL9009",
      `${address} has not been trained.${didYouMean(address, known)} \`rlcli apply\` trains what the spec says.`,
    );
  }
  const found = selector === undefined ? finalOf(record) : selected(open, record, name, selector);
  if (!found) {
    const hint =
      selector === undefined
        ? "Its training has not reached a checkpoint yet; `rlcli status` shows how far it is."
        : "`rlcli checkpoint list` shows what is kept.";
    throw new RlcliError(diagnostic("RL9009", `${text} has no checkpoint. ${hint}`, { address }));
  }
  return { address, ...found };
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
  return findCheckpoint(folder, selector === "best" ? { best: true } : { steps: Number(selector) });
}
