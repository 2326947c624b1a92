/** `rlcli support`: one file that tells others what happened here, without secrets and without training data. */
import { createHash } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { arch, release } from "node:os";
import { basename, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { loadSpec } from "../../config/load.ts";
import { fail, messageOf } from "../../diagnostic.ts";
import { serverFolder } from "../../kinds/connect.ts";
import { examineMachine } from "../../servers/machine.ts";
import { readRuntime } from "../../servers/runtime.ts";
import { recipeOf } from "../../servers/skyrl/recipe.ts";
import { checksOf, verdictsOf } from "../../servers/verdicts.ts";
import { shellWord } from "../../shell.ts";
import { type CommandContext, EXIT, type ExitCode, VERSION } from "../context.ts";
import { type SpecOptions, specFiles } from "../options.ts";
import { folderOf } from "../project.ts";
import { parseVariables } from "../spec.ts";
import { type BundleFile, collect, faultLines, specFile } from "../support/collect.ts";
import { Masker, secretNames, secretValues } from "../support/mask.ts";
import { renderDiagnostics } from "../views/diagnostic.ts";
import { renderDoctor } from "../views/doctor.ts";
import { createStyle } from "../views/style.ts";
import { bytes } from "../views/units.ts";

export interface SupportFlags extends Partial<SpecOptions> {
  readonly output?: string;
  readonly run?: string;
  readonly withData?: boolean;
}

export const SUPPORT_JSON_VERSION = 1;

export async function support(context: CommandContext, flags: SupportFlags): Promise<ExitCode> {
  const named = specFiles(flags.file, context.cwd);
  const dataFolder = join(folderOf(named, context.cwd), ".rlcli");
  const spec = named.map((file) => specFile(resolve(context.cwd, file), basename(file)));
  const run = flags.run?.replace(/^run\./, "");
  const collected = collect({ dataFolder, withData: flags.withData ?? false, ...(run === undefined ? {} : { run }) });
  const faults = faultLines(collected);
  const plain = [
    versionsFile(context),
    await doctorFile(context),
    ...spec,
    await diagnosticsFile(context, named, flags),
    ...collected,
    ...(faults ? [faults] : []),
  ];
  const masker = new Masker([
    ...secretValues(
      context.env,
      spec.flatMap(({ text }) => secretNames(text)),
    ),
    ...serverTokens(dataFolder),
  ]);
  const files = plain.map(({ name, text }) => ({ name: masker.maskKnown(name), text: masker.mask(text) }));
  const path = resolve(context.cwd, flags.output ?? `rlcli-support-${stamp()}.tar.gz`);
  await write(path, files);
  report(context, path, files, masker.count, flags.withData ?? false);
  return EXIT.done;
}

/** Keys of servers that run here: programs of this machine know them. */
function serverTokens(dataFolder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(join(dataFolder, "servers"));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const seen = readRuntime(serverFolder(dataFolder, `server.${name}`));
    return seen.state === "running" ? [seen.runtime.token] : [];
  });
}

/** Names of variables that change what rlcli does; of values, only that there is one. */
function versionsFile({ env }: CommandContext): BundleFile {
  const settings = Object.keys(env).filter((name) =>
    /^(RLCLI|TINKER|HF|DOCKER|NODE|CUDA|RAY|UV|XDG)_|^(CI|TERM|LANG|NO_COLOR|FORCE_COLOR)$/.test(name),
  );
  const versions = {
    formatVersion: SUPPORT_JSON_VERSION,
    at: new Date().toISOString(),
    rlcli: VERSION,
    node: process.version,
    platform: `${process.platform} ${arch()} ${release()}`,
    environmentVariables: settings.sort(),
  };
  return { name: "versions.json", text: `${JSON.stringify(versions, null, 2)}\n` };
}

async function doctorFile({ env }: CommandContext): Promise<BundleFile> {
  const machine = await examineMachine(env, recipeOf([], {}, env).python);
  return { name: "doctor.txt", text: renderDoctor(checksOf(machine), verdictsOf(machine), createStyle(false)) };
}

/** What loading the spec says; the command is for projects in which little works. */
async function diagnosticsFile(
  context: CommandContext,
  files: readonly string[],
  flags: SupportFlags,
): Promise<BundleFile> {
  const name = "diagnostics.txt";
  try {
    const { diagnostics } = await loadSpec({
      files,
      variables: parseVariables(flags.var ?? []),
      variableFiles: flags.varFile ?? [],
      env: context.env,
      cwd: context.cwd,
    });
    return { name, text: renderDiagnostics(diagnostics, { style: createStyle(false), width: 120 }) };
  } catch (error) {
    return { name, text: `the spec cannot be loaded: ${messageOf(error)}\n` };
  }
}

const stamp = (): string => new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");

async function write(path: string, files: readonly BundleFile[]): Promise<void> {
  const root = basename(path).replace(/\.(tar\.gz|tgz)$/, "");
  const archive = pack();
  for (const { name, text } of files) archive.entry({ name: `${root}/${name}`, mode: 0o600 }, text);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  try {
    writeFileSync(path, gzipSync(Buffer.concat(chunks)), { mode: 0o600, flag: "wx" });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST";
    if (isThere) fail("RL9004", `${path} is there already. Nothing was written; name another file with --output.`);
    fail("RL9007", `Cannot write ${path}: ${messageOf(error)}. Name another place with --output.`, { cause: error });
  }
}

function report(
  context: CommandContext,
  path: string,
  files: readonly BundleFile[],
  masked: number,
  withData: boolean,
): void {
  const listed = files.map(({ name, text }) => ({
    name,
    bytes: Buffer.byteLength(text),
    digest: createHash("sha256").update(text).digest("hex"),
  }));
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: SUPPORT_JSON_VERSION, path, files: listed, masked, withData })}\n`);
    return;
  }
  const total = listed.reduce((sum, file) => sum + file.bytes, 0);
  const data = withData
    ? "Answers and the first rows of datasets are in it: look at them before you send it."
    : "It holds no rows, prompts or answers but those that the spec and the logs quote.";
  context.out(`${path}\n`);
  context.err(
    `${listed.length} files, ${bytes(total)}; ${masks(masked)} ${data}\nLook through it first: \`tar -xzf ${shellWord(relative(context.cwd, path))}\`.\n`,
  );
}

function masks(places: number): string {
  if (places === 0) return "nothing in it looked like a secret.";
  return places === 1
    ? "one place that looked like a secret is masked."
    : `${places} places that looked like secrets are masked.`;
}
