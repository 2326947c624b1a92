/** `rlcli explain [TOPIC]`: the schema, the losses, the metrics and the table of codes, for a terminal. */
import { BLOCK_KEYS, KINDS, type KindName } from "../../address.ts";
import { CODES, type DiagnosticCode } from "../../codes.ts";
import { changeWords } from "../../config/changes.ts";
import {
  type BlockInfo,
  type BlockName,
  blockInfo,
  blockOfKind,
  type FieldInfo,
  fieldAt,
} from "../../config/fields.ts";
import { fail } from "../../diagnostic.ts";
import type { LossDefinition } from "../../losses/loss.ts";
import { LOSSES, lossNamed } from "../../losses/registry.ts";
import { didYouMean, listNames } from "../../suggest.ts";
import { METRICS, type MetricInfo, metricNamed } from "../../training/rl/metrics.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { PAGES, type Page, pageNamed } from "../pages.ts";
import { COMMAND_NAMES } from "../teach.ts";
import {
  renderBlock,
  renderCode,
  renderField,
  renderLoss,
  renderLosses,
  renderMetric,
  renderMetrics,
  renderPage,
} from "../views/explain.ts";

type Topic =
  | { readonly type: "page"; readonly page: Page }
  | { readonly type: "code"; readonly code: DiagnosticCode }
  | { readonly type: "metric"; readonly metric: MetricInfo }
  | { readonly type: "metrics" }
  | { readonly type: "loss"; readonly loss: LossDefinition }
  | { readonly type: "losses" }
  | { readonly type: "block"; readonly block: BlockInfo }
  | { readonly type: "field"; readonly block: BlockInfo; readonly field: FieldInfo };

const BLOCK_NAMES: readonly BlockName[] = [...KINDS, "variable"];

/** `runs`, `run` and `variables` name blocks; anything else is a path from the top of the spec. */
function blockNamed(word: string): BlockName | undefined {
  if (word === "variables") return "variable";
  const kind = KINDS.find((k) => BLOCK_KEYS[k] === word);
  return BLOCK_NAMES.find((name) => name === (kind ?? word));
}

function findTopic(text: string): Topic | undefined {
  const code = text.toUpperCase();
  if (Object.hasOwn(CODES, code)) return { type: "code", code: code as DiagnosticCode };
  const page = pageNamed(text);
  if (page) return { type: "page", page };
  if (text === "metric" || text === "metrics") return { type: "metrics" };
  const metric = metricNamed(text.replace(/^metrics? /, ""));
  if (metric) return { type: "metric", metric };
  if (text === "losses" || text === "loss types") return { type: "losses" };
  const loss = lossNamed(text.replace(/^loss(es)? /, "").replace(/^loss\.type\.?/, ""));
  if (loss) return { type: "loss", loss };
  if (text === "spec") return { type: "block", block: blockInfo("spec") };
  const [word = "", ...rest] = text.split(".");
  const name = blockNamed(word);
  if (name === undefined) {
    const field = fieldAt("spec", text);
    return field && { type: "field", block: blockInfo("spec"), field };
  }
  const block = blockInfo(name);
  if (rest.length === 0) return { type: "block", block };
  // `run.agent.learning_rate` is the address of a field: the block's own name is not the schema's.
  const field = fieldAt(name, rest.join(".")) ?? fieldAt(name, rest.slice(1).join("."));
  return field && { type: "field", block, field };
}

/** Where a text is no topic but what a field may be set to: `judge`, `environment.judge`. */
function asValue(text: string): string | undefined {
  const [block = "", value = block] = text.toLowerCase().split(".");
  const places = BLOCK_NAMES.filter((name) => block === value || name === block).flatMap((name) =>
    blockInfo(name)
      .fields.filter(({ values }) => values?.includes(value))
      .map(({ path }) => `${name}.${path}`),
  );
  return places.length === 0 ? undefined : ` It is a value of ${listNames(places)}: \`rlcli explain ${places[0]}\`.`;
}

/** Where a text is a command, which has help of its own. */
function asCommand(text: string): string | undefined {
  const [word = ""] = text.split(" ");
  return COMMAND_NAMES.includes(word) ? ` It is a command: \`rlcli ${text} --help\`.` : undefined;
}

function noTopic(text: string): never {
  const isCode = /^rl\d/i.test(text);
  const name = blockNamed(text.split(".")[0] ?? "");
  const fields = name === undefined ? [] : blockInfo(name).fields.map((f) => `${name}.${f.path}`);
  const candidates = isCode
    ? Object.keys(CODES)
    : [
        ...BLOCK_NAMES,
        ...PAGES.map(({ name: page }) => page),
        ...METRICS.map(({ name: metric }) => metric),
        ...LOSSES.map(({ name: loss }) => loss),
        ...fields,
        ...COMMAND_NAMES,
        ...blockInfo("spec").fields.map((f) => f.path),
      ];
  const hint =
    asCommand(text) ??
    asValue(text) ??
    (didYouMean(text, candidates) ||
      ` Blocks are ${listNames(BLOCK_NAMES)}, pages ${listNames(PAGES.map(({ name: page }) => page))}.`);
  return fail(
    "RL9005",
    `There is no ${isCode ? "diagnostic code" : "block, field, loss, metric or page"} \`${text}\`.${hint}`,
  );
}

function toJson(topic: Topic): unknown {
  switch (topic.type) {
    case "page":
      return topic.page;
    case "code":
      return { code: topic.code, severity: "error", ...CODES[topic.code] };
    case "metrics":
      return { metrics: METRICS };
    case "metric":
      return topic.metric;
    case "losses":
      return { losses: LOSSES.map(lossJson) };
    case "loss":
      return lossJson(topic.loss);
    case "block":
      return topic.block;
    case "field": {
      const isKind = blockOfKind(topic.block.name as KindName) !== undefined;
      const change = isKind ? changeWords(topic.block.name as KindName, topic.field) : undefined;
      return { block: topic.block.name, ...topic.field, ...(change === undefined ? {} : { changeWords: change }) };
    }
    default:
      return topic satisfies never;
  }
}

/** Without what only the program uses. */
function lossJson({ name, description, text, options, backends, runs, of }: LossDefinition) {
  return { name, description, formula: text, of, runs, backends, options };
}

export async function explain(context: CommandContext, text: string | undefined): Promise<ExitCode> {
  const topic = findTopic(text ?? "spec") ?? noTopic(text ?? "");
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: 1, ...(toJson(topic) as object) }, null, 2)}\n`);
    return EXIT.done;
  }
  switch (topic.type) {
    case "page":
      context.out(renderPage(topic.page, context));
      break;
    case "code":
      context.out(renderCode(topic.code, context));
      break;
    case "metrics":
      context.out(renderMetrics(METRICS, context));
      break;
    case "metric":
      context.out(renderMetric(topic.metric, context));
      break;
    case "losses":
      context.out(renderLosses(LOSSES, context));
      break;
    case "loss":
      context.out(renderLoss(topic.loss, context));
      break;
    case "block":
      context.out(renderBlock(topic.block, context));
      break;
    case "field":
      context.out(renderField(topic.block, topic.field, context));
      break;
    default:
      topic satisfies never;
  }
  return EXIT.done;
}
