/** What a new project is to be: from flags, from answers on a terminal, and from what the machine has. */
import { basename } from "node:path";
import { fail } from "../../diagnostic.ts";
import { countGpus } from "../../servers/skyrl/gpus.ts";
import { didYouMean, listNames } from "../../suggest.ts";
import { refuseCredentials } from "../adhoc.ts";
import { type Choice, Questions } from "../ask.ts";
import { type FoundLogs, findLogs, formatOf } from "./detect.ts";
import { DEFAULT_TEMPLATE, TEMPLATE_NAMES, TEMPLATES, type Template } from "./templates.ts";

export interface InitFlags {
  readonly template?: string;
  readonly name?: string;
  readonly model?: string;
  readonly backend?: string;
  readonly baseUrl?: string;
  readonly logs?: readonly string[];
  readonly format?: string;
  /** Ask nothing, take what is found. */
  readonly yes?: boolean;
}

export interface Chosen {
  readonly template: Template;
  readonly isFull: boolean;
  readonly project: string;
  /** Undefined keeps the template's own. */
  readonly server?: Readonly<Record<string, string | number>>;
  readonly logs?: Pick<FoundLogs, "format" | "from">;
  /** What was found and taken without a question, a sentence each. */
  readonly notes: readonly string[];
}

const SMALL_MODEL = "builtin:tiny";
const FULL_MODEL = "Qwen/Qwen3-4B-Instruct-2507";
const PROJECT = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
const projectFault = (name: string): string | undefined =>
  PROJECT.test(name) ? undefined : "A project's name is a letter, then letters, digits, `_` or `-`, at most 63 in all.";

export async function choose(folder: string, flags: InitFlags, isAsking: boolean): Promise<Chosen> {
  const questions = isAsking ? new Questions() : undefined;
  try {
    const template = await chooseTemplate(folder, flags, questions);
    const project = await chooseName(folder, template, flags, questions);
    const { server, isFull, notes } = await chooseServer(template, flags, questions);
    const logs = await chooseLogs(folder, template, flags, questions);
    const isFound = logs !== undefined && flags.logs === undefined;
    return {
      template,
      isFull,
      project,
      ...(server ? { server } : {}),
      ...(logs ? { logs } : {}),
      notes: [
        ...notes,
        ...(isFound
          ? [`Found ${logs.files} file${logs.files === 1 ? "" : "s"} of ${logs.format} logs: ${logs.from.join(", ")}.`]
          : []),
      ],
    };
  } finally {
    questions?.close();
  }
}

/** A folder that has a template's name is meant to hold that template: `rlcli init gsm8k-gspo`. */
async function chooseTemplate(folder: string, flags: InitFlags, questions: Questions | undefined): Promise<Template> {
  const choices = TEMPLATES.map(({ name, about }): Choice => ({ value: name, about }));
  const preset = choices.find(({ value }) => value === basename(folder))?.value ?? DEFAULT_TEMPLATE;
  const asked = flags.template ?? (await questions?.choice("What is it to start from?", choices, preset));
  const name = asked ?? preset;
  const template = TEMPLATES.find((t) => t.name === name);
  if (template) return template;
  const hint = didYouMean(name, TEMPLATE_NAMES) || ` There is ${listNames(TEMPLATE_NAMES)}.`;
  return fail("RL9003", `There is no template \`${name}\`.${hint}`);
}

async function chooseName(folder: string, template: Template, flags: InitFlags, questions: Questions | undefined) {
  if (flags.name !== undefined) {
    const fault = projectFault(flags.name);
    return fault === undefined ? flags.name : fail("RL9003", `--name ${flags.name}: ${fault}`);
  }
  const guess = basename(folder)
    // Letters without their accents.
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^[^A-Za-z]+/, "")
    .slice(0, 63)
    .replace(/-+$/, "");
  const preset = PROJECT.test(guess) ? guess : template.name;
  return questions ? questions.text("Name of the project", preset, projectFault) : preset;
}

interface ServerChoice {
  readonly server?: Readonly<Record<string, string | number>>;
  readonly isFull: boolean;
  readonly notes: readonly string[];
}

const SMALL: ServerChoice = { isFull: false, notes: [] };

async function chooseServer(
  template: Template,
  flags: InitFlags,
  questions: Questions | undefined,
): Promise<ServerChoice> {
  const { backend, baseUrl, model } = flags;
  const isSaid = backend !== undefined || baseUrl !== undefined || model !== undefined;
  const isSmall = backend === "embedded" || (backend === undefined && baseUrl === undefined && isSmallModel(model));
  if (isSaid && isSmall) {
    const own = model ?? SMALL_MODEL;
    return own === SMALL_MODEL ? SMALL : { ...SMALL, server: { backend: "embedded", model: own } };
  }
  if (template.full === undefined) {
    if (isSaid)
      fail(
        "RL9003",
        `The template ${template.name} is for the embedded server alone: leave out --backend, --model and --base-url, or take another template.`,
      );
    return SMALL;
  }
  if (baseUrl !== undefined) {
    refuseCredentials(baseUrl);
    return external(baseUrl, model);
  }
  const gpus = await countGpus();
  if (isSaid) return fullServer(backend ?? "fsdp", model, gpus);
  return questions ? askServer(gpus, questions) : gpus > 0 ? fullServer("fsdp", undefined, gpus) : SMALL;
}

const isSmallModel = (model: string | undefined): boolean => model === undefined || /^(builtin:|\.{0,2}\/)/.test(model);

const external = (url: string, model = FULL_MODEL): ServerChoice => ({
  isFull: true,
  server: { backend: "external", url, model },
  notes: [],
});

function fullServer(backend: string, model = FULL_MODEL, gpus: number): ServerChoice {
  const found = `Found ${gpus} GPU${gpus === 1 ? "" : "s"}; the server takes ${gpus === 1 ? "it" : "them"}.`;
  const none = `No GPU was found here, and a ${backend} server needs one where it starts: run rlcli there, or see \`server.host\`.`;
  const isCpu = backend === "jax" && gpus === 0;
  return {
    isFull: true,
    server: { backend, model, ...(backend === "jax" || gpus <= 1 ? {} : { gpus }) },
    notes: [isCpu ? "No GPU was found: jax runs on the processor, slowly." : gpus > 0 ? found : none],
  };
}

async function askServer(gpus: number, questions: Questions): Promise<ServerChoice> {
  const embedded = { value: "embedded", about: "a tiny model inside rlcli: minutes, nothing to install" };
  const own = {
    value: "gpu",
    about:
      gpus > 0
        ? `the ${gpus === 1 ? "GPU" : `${gpus} GPUs`} of this machine, by SkyRL`
        : "a machine with GPUs, by SkyRL (none was found here)",
  };
  const running = { value: "url", about: "a Tinker server that already runs" };
  const order = gpus > 0 ? [own, embedded, running] : [embedded, own, running];
  const kind = await questions.choice("Which server trains?", order);
  if (kind === "embedded") return SMALL;
  const isUrl = (text: string) =>
    /^https?:\/\/\S+$/.test(text) ? undefined : "An address begins with http:// or https://.";
  const url = kind === "url" ? await questions.text("Its address", "http://127.0.0.1:8000", isUrl) : undefined;
  const model = await questions.text("Base model", FULL_MODEL, () => undefined);
  return url === undefined ? fullServer("fsdp", model, gpus) : external(url, model);
}

async function chooseLogs(
  folder: string,
  template: Template,
  flags: InitFlags,
  questions: Questions | undefined,
): Promise<FoundLogs | undefined> {
  if (template.logs === undefined) {
    if (flags.logs || flags.format)
      fail(
        "RL9003",
        `The template ${template.name} imports no logs; --logs and --format are for ${TEMPLATES.filter((t) => t.logs)
          .map((t) => t.name)
          .join(", ")}.`,
      );
    return undefined;
  }
  if (flags.logs) {
    const known = flags.format ?? flags.logs.map((file) => formatOf(file)).find((format) => format !== undefined);
    return { from: flags.logs, format: known ?? "auto", files: flags.logs.length };
  }
  const found = findLogs(folder);
  if (!found) return undefined;
  const format = flags.format ?? found.format;
  const question = `Found ${found.files} file${found.files === 1 ? "" : "s"} of ${format} logs (${found.from.slice(0, 3).join(", ")}). Learn from ${found.files === 1 ? "it" : "them"}?`;
  return questions && !(await questions.yes(question)) ? undefined : { ...found, format };
}
