/** `rlcli checkpoint push-hf`: weights of a run, a deployment or a checkpoint to a Hugging Face hub, with their card. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, isAbsolute, join } from "node:path";
import { type Address, nameOf } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import { shortDigest } from "../../digest.ts";
import { type CardFacts, modelCard } from "../../hub/card.ts";
import { hubSettings } from "../../hub/settings.ts";
import { folderFiles, HubUpload, type UploadFile } from "../../hub/upload.ts";
import { keptResults } from "../../kinds/eval/results.ts";
import { observedRuns } from "../../kinds/run/observe.ts";
import { type CommandContext, EXIT, type ExitCode, VERSION } from "../context.ts";
import type { OpenProject } from "../project.ts";
import { type RemoteFlags, withServer } from "../remote.ts";
import { downloadFolder } from "./checkpoint-download.ts";
import { modelOf, pathsNamed } from "./checkpoint-server.ts";

export interface PushFlags extends RemoteFlags {
  readonly repo: string;
  readonly public?: boolean;
  readonly revision: string;
  readonly message?: string;
  readonly createPr?: boolean;
  /** False for --no-card. */
  readonly card: boolean;
}

/** Of this project's server, and about its machine. */
const PRIVATE_FILES: ReadonlySet<string> = new Set(["checkpoint.json"]);

export async function pushHf(context: CommandContext, name: string, flags: PushFlags): Promise<ExitCode> {
  if (!/^[\w.-]+\/[\w.-]+$/.test(flags.repo)) fail("RL9003", `--repo takes ORG/NAME, not \`${flags.repo}\`.`);
  const { stop } = context.interruption();
  const upload = new HubUpload(hubSettings(context.env), stop);
  const temporary = mkdtempSync(join(tmpdir(), "rlcli-push-"));
  try {
    const pushed = await withServer(context, flags, name, async (client, { open, settings }) => {
      const { training, sampler } = await pathsNamed({ open }, name);
      const path = sampler ?? training;
      if (path === undefined) return fail("RL9009", `\`${name}\` has no checkpoint.`);
      if (sampler === undefined)
        context.err("There are no weights to sample of this step, so its training state goes, with its optimizer.\n");
      const folder = join(temporary, "weights");
      await downloadFolder(client, path, folder);
      const { baseModel = settings.model, loraRank } = await modelOf(client, path);
      const publicName = hubName(settings.model) ?? hubName(baseModel) ?? basename(baseModel);
      const facts: CardFacts = {
        name: flags.repo.split("/")[1] as string,
        baseModel: publicName,
        loraRank,
        version: VERSION,
        ...factsOf(open, new Set([training, sampler].filter((one) => one !== undefined))),
      };
      const files = [...filesOf(folder, publicName), ...(flags.card ? [cardFile(facts)] : [])];
      const order = {
        repository: flags.repo,
        revision: flags.revision,
        files,
        message:
          flags.message ??
          `Upload ${facts.run ?? "weights"}${facts.step === undefined ? "" : ` at step ${facts.step}`}`,
        isPrivate: !flags.public,
        asPullRequest: flags.createPr ?? false,
      };
      return { path, files, ...(await upload.push(order, (text) => context.err(`${text}\n`))) };
    });
    const { path, url, commit, sentBytes, files } = pushed;
    const names = files.map((file) => file.path);
    if (context.isJson)
      context.out(
        `${JSON.stringify({ formatVersion: 1, path, repository: flags.repo, url, commit, files: names, sentBytes })}\n`,
      );
    else context.out(flags.quiet ? `${url}\n` : `${names.length} files of ${path} are at ${url}\n`);
    return EXIT.done;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
    await upload.close();
  }
}

const hubName = (model: string): string | undefined => (/^[\w.-]+\/[\w.-]+$/.test(model) ? model : undefined);

const cardFile = (facts: CardFacts): UploadFile => ({ path: "README.md", source: { text: modelCard(facts) } });

/** An adapter names its base model; where that is a folder of this machine, it gets the model's public name. */
function filesOf(folder: string, publicName: string): readonly UploadFile[] {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((file) => !PRIVATE_FILES.has(file) && file !== "README.md");
  return folderFiles(folder, names.sort()).map((file) => {
    if (file.path !== "adapter_config.json") return file;
    const config = JSON.parse(readFileSync(join(folder, file.path), "utf8")) as Record<string, unknown>;
    const base = config.base_model_name_or_path;
    if (typeof base !== "string" || !isAbsolute(base)) return file;
    return {
      ...file,
      source: { text: `${JSON.stringify({ ...config, base_model_name_or_path: publicName }, null, 2)}\n` },
    };
  });
}

/** What the project's own records tell of the checkpoint; nothing where it is none of theirs. */
function factsOf(open: OpenProject, paths: ReadonlySet<string>): Pick<CardFacts, "evals"> & Partial<CardFacts> {
  for (const { address, order, durable } of observedRuns(open.context.dataFolder)) {
    const found = durable.find(
      ({ training, sampler }) => paths.has(training) || (sampler !== undefined && paths.has(sampler)),
    );
    if (!found || !order) continue;
    const { settings, dataset, generation, incarnation } = order;
    return {
      project: open.context.project,
      run: address,
      step: found.step,
      generation: `${shortDigest(generation)}/${incarnation}`,
      type: settings.type,
      loss: settings.loss.type,
      learningRate: settings.learning_rate,
      dataset: { name: dataset.address, digest: dataset.digest },
      evals: evalsOf(open, address, found.step),
    };
  }
  return { evals: [] };
}

/** Results of the spec's evals of this run, at this step. */
function evalsOf({ spec, context }: OpenProject, run: Address, step: number): CardFacts["evals"] {
  const nodes = [...(spec?.nodes.values() ?? [])].filter(
    (node) => node.kind === "eval" && node.references.some(({ path, to }) => path === "checkpoint" && to === run),
  );
  return nodes.flatMap(({ address }) => {
    const kept = keptResults(context.dataFolder, nameOf(address)).find((one) => one.step === step);
    return kept ? [{ name: nameOf(address), metrics: kept.result.metrics }] : [];
  });
}
