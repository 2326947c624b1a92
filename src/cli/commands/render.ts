/** `rlcli render`: what a model is really trained on: a conversation, or a row of a run, as tokens and loss weights. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { convertRows } from "../../datasets/convert.ts";
import { sourceFiles } from "../../datasets/identity.ts";
import { formatNamed } from "../../datasets/registry.ts";
import { isRecord } from "../../datasets/row.ts";
import { openSource } from "../../datasets/sources.ts";
import { Tally } from "../../datasets/tally.ts";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { readFault } from "../../files.ts";
import type { ProjectContext } from "../../kind.ts";
import { referenceTo, stringAt } from "../../kinds/attributes.ts";
import { readyRequest } from "../../kinds/dataset.ts";
import { modelFolder } from "../../kinds/model.ts";
import { settingsOf } from "../../kinds/run/settings.ts";
import type { TrainOn } from "../../run-record.ts";
import type { Spec, SpecNode } from "../../spec.ts";
import { didYouMean } from "../../suggest.ts";
import type { Conversation, Message } from "../../tokens/conversation.ts";
import { loadRenderer } from "../../tokens/load.ts";
import type { Rendering, RenderOptions } from "../../tokens/renderer.ts";
import { absoluteModel } from "../adhoc.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import { openFolder } from "../project.ts";
import { datumsJson, renderDatums } from "../views/render.ts";

export interface RenderFlags extends Partial<SpecOptions> {
  readonly row?: number;
  readonly model?: string;
  readonly messages?: string;
  readonly tools?: string;
  readonly templateKwargs?: string;
  readonly generationPrompt?: boolean;
  readonly trainOn?: TrainOn;
  readonly maxLength?: number;
}

interface Subject {
  readonly modelFolder: string;
  readonly conversations: readonly Conversation[];
  readonly options: RenderOptions;
}

export async function render(context: CommandContext, run: string | undefined, flags: RenderFlags): Promise<ExitCode> {
  const {
    modelFolder: folder,
    conversations,
    options,
  } = await (run === undefined ? fromFiles(context, flags) : fromRun(context, run, flags));
  const renderer = await loadRenderer(folder);
  for (const conversation of conversations) {
    const rendering = renderer.render(conversation, options);
    if (context.isJson) context.out(datumsJson(rendering.datums));
    else context.out(renderDatums(rendering.datums, renderer.tokenizer, context.style));
    noteOddities(context, rendering);
  }
  return EXIT.done;
}

function noteOddities(context: CommandContext, { truncated, inexactTurns, skippedTurns }: Rendering): void {
  const note = (count: number, text: string) => {
    if (count > 0) context.err(`${count} ${text}\n`);
  };
  note(truncated, "datums were cut at the longest length.");
  note(inexactTurns, "turns are written differently by the template than the prompt that asks for them begins them.");
  note(skippedTurns, "turns are not trained: the template refuses the prompt before them.");
}

async function fromFiles(context: CommandContext, flags: RenderFlags): Promise<Subject> {
  if (flags.model === undefined || flags.messages === undefined) {
    fail(
      "RL9003",
      "Name a run of the spec with --row N, or give --model FOLDER and --messages FILE (or - for standard input).",
    );
  }
  const project = openFolder(context).context;
  const conversations = readConversations(context, flags.messages);
  return {
    modelFolder: await modelFolder(absoluteModel(context, flags.model), project),
    conversations,
    options: { train_on: flags.trainOn ?? "all_assistant", ...givenOptions(context, flags) },
  };
}

async function fromRun(context: CommandContext, name: string, flags: RenderFlags): Promise<Subject> {
  if (flags.row === undefined) fail("RL9003", `Say which row of the dataset of ${name} to render: --row N, from 1.`);
  const { spec, context: project } = await openWith(context, flags);
  const node = runNode(spec as Spec, name);
  const target = (path: string): SpecNode | undefined => {
    const to = referenceTo(node, path);
    return to && (spec as Spec).nodes.get(to);
  };
  const [server, dataset] = [target("server"), target("dataset")] as [SpecNode, SpecNode];
  const settings = settingsOf(node, target("loss"));
  if (settings.type !== "sl") {
    const detail = `${name} trains on what it samples, not on rows of a dataset. See its answers with \`rlcli rollouts ${name}\`.`;
    fail("RL9003", detail);
  }
  const { train_on, max_length, template_kwargs } = settings;
  return {
    modelFolder: await modelFolder(stringAt(server, "model") as string, project),
    conversations: [await rowOf(context, dataset, project, flags.row)],
    options: { train_on, max_length, template_kwargs, ...givenOptions(context, flags) },
  };
}

function runNode(spec: Spec, text: string): SpecNode {
  const name = text.replace(/^run\./, "");
  const node = spec.nodes.get(`run.${name}`);
  const names = [...spec.nodes.values()].filter((n) => n.kind === "run").map((n) => n.name);
  return node ?? fail("RL9009", `The spec has no run \`${name}\`.${didYouMean(name, names)}`);
}

/** Row `number` (from 1) as an import gives it; nothing is written. */
async function rowOf(
  context: CommandContext,
  dataset: SpecNode,
  project: ProjectContext,
  number: number,
): Promise<Conversation> {
  const ready = await readyRequest(dataset, project, context.outputClosed, (text) => context.err(`${text}\n`));
  const { format, from, baseFolder, pinned, ...request } = ready;
  const sources = (await sourceFiles(ready)).map((file) => openSource(file));
  const read = { ...request, format: format === "auto" ? undefined : formatNamed(format), threads: 0 };
  let count = 0;
  for await (const row of convertRows(sources, read, new Tally())) {
    count += 1;
    if (count === number) return JSON.parse(row) as Conversation;
  }
  return fail("RL9009", `${dataset.address} has ${count} rows; there is no row ${number}.`, {
    address: dataset.address,
  });
}

/** What the flags set over the defaults or the run's settings. */
function givenOptions(context: CommandContext, flags: RenderFlags): Partial<RenderOptions> {
  return {
    ...(flags.trainOn === undefined ? {} : { train_on: flags.trainOn }),
    ...(flags.maxLength === undefined ? {} : { max_length: flags.maxLength }),
    ...(flags.tools === undefined ? {} : { tools: readTools(context, flags.tools) }),
    ...(flags.templateKwargs === undefined ? {} : { template_kwargs: readKwargs(flags.templateKwargs) }),
    ...(flags.generationPrompt ? { add_generation_prompt: true } : {}),
  };
}

function readTools(context: CommandContext, file: string): readonly unknown[] {
  const tools = parseJson(readText(context, file), file);
  return Array.isArray(tools) ? tools : fail("RL9003", `${file} does not hold a JSON list of tools.`);
}

function readKwargs(text: string): Readonly<Record<string, unknown>> {
  const kwargs = parseJson(text, "--template-kwargs");
  return isRecord(kwargs)
    ? kwargs
    : fail("RL9003", '--template-kwargs takes a JSON object, e.g. {"enable_thinking": false}.');
}

const EXPECTED = '[{"role": "user", "content": "…"}, …], {"messages": […]}, or one of these a line';

/** A JSON value, or one a line. */
function readConversations(context: CommandContext, file: string): readonly Conversation[] {
  const text = readText(context, file).replace(/^\uFEFF/, "");
  const name = file === "-" ? "standard input" : file;
  try {
    return [conversationOf(JSON.parse(text), name)];
  } catch (error) {
    if (error instanceof RlcliError) throw error;
  }
  const lines = text.split("\n").map((line, i) => ({ line, place: `${name}:${i + 1}` }));
  const rows = lines.filter(({ line }) => line.trim() !== "");
  if (rows.length === 0) fail("RL9003", `${name} is empty. Expected ${EXPECTED}.`);
  return rows.map(({ line, place }) => conversationOf(parseJson(line, place), place));
}

function conversationOf(value: unknown, place: string): Conversation {
  const messages = Array.isArray(value) ? value : isRecord(value) ? value.messages : undefined;
  const isConversation = Array.isArray(messages) && messages.every((m) => isRecord(m) && typeof m.role === "string");
  if (!isConversation) fail("RL9003", `${place} holds no conversation. Expected ${EXPECTED}.`);
  const tools = isRecord(value) && Array.isArray(value.tools) ? { tools: value.tools } : {};
  return { messages: messages as readonly Message[], ...tools };
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return fail("RL9003", `${place} is not valid JSON: ${messageOf(error)}.`, { cause: error });
  }
}

function readText(context: CommandContext, file: string): string {
  if (file === "-" && process.stdin.isTTY) fail("RL9003", "`-` reads from standard input, and nothing is piped in.");
  try {
    return readFileSync(file === "-" ? 0 : resolve(context.cwd, file), "utf8");
  } catch (error) {
    return fail("RL1001", `${file} ${readFault(error)}.`, { cause: error });
  }
}
