/** The card of a model on a hub: where it comes from and how it was made. Only what is listed here is told; no row of data, no path, no secret. */
import { stringify } from "yaml";

export interface CardFacts {
  /** Of the repository. */
  readonly name: string;
  /** A hub's name, or what the spec calls it. */
  readonly baseModel: string;
  /** 0 where all weights were trained; undefined where that is not known. */
  readonly loraRank: number | undefined;
  readonly project?: string;
  readonly run?: string;
  readonly step?: number;
  readonly generation?: string;
  /** `sl` or `rl`. */
  readonly type?: string;
  readonly loss?: string;
  readonly learningRate?: number;
  readonly dataset?: { readonly name: string; readonly digest: string };
  readonly evals: readonly { readonly name: string; readonly metrics: Readonly<Record<string, number>> }[];
  readonly version: string;
}

const METHODS: Readonly<Record<string, string>> = {
  sl: "supervised fine-tuning",
  rl: "reinforcement learning",
};

export function modelCard(facts: CardFacts): string {
  const isHubName = /^[\w.-]+\/[\w.-]+$/.test(facts.baseModel);
  const head = {
    ...(isHubName ? { base_model: facts.baseModel } : {}),
    ...(facts.loraRank ? { library_name: "peft" } : { library_name: "transformers" }),
    pipeline_tag: "text-generation",
    tags: [
      "rlcli",
      ...(facts.loraRank ? ["lora"] : []),
      ...(facts.type ? [facts.type === "rl" ? "reinforcement-learning" : "sft"] : []),
    ],
  };
  const { dataset, loraRank } = facts;
  const rows: readonly (readonly [string, string | number | undefined])[] = [
    ["Base model", facts.baseModel],
    [
      "Trained",
      loraRank === undefined ? undefined : loraRank === 0 ? "all weights" : `LoRA adapter of rank ${loraRank}`,
    ],
    ["Method", facts.type && (METHODS[facts.type] ?? facts.type)],
    ["Loss", facts.loss],
    ["Learning rate", facts.learningRate],
    ["Steps", facts.step],
    ["Dataset", dataset && `${dataset.name}, \`${dataset.digest}\``],
    [
      "Run",
      facts.run && `${facts.project ? `${facts.project}, ` : ""}${facts.run}, generation \`${facts.generation}\``,
    ],
  ];
  const shown = rows.flatMap(([key, value]) => (value === undefined ? [] : [`| ${key} | ${cell(value)} |`]));
  const evals = facts.evals.flatMap(({ name, metrics }) =>
    Object.entries(metrics).map(
      ([metric, value]) => `| ${cell(name)} | ${cell(metric)} | ${Number(value.toPrecision(4))} |`,
    ),
  );
  return [
    `---\n${stringify(head)}---\n`,
    `# ${facts.name}\n`,
    `Made with rlcli ${facts.version}.\n`,
    `| | |\n|---|---|\n${shown.join("\n")}\n`,
    ...(evals.length === 0
      ? []
      : [`## Evaluations\n`, `| eval | metric | value |\n|---|---|---|\n${evals.join("\n")}\n`]),
  ].join("\n");
}

const cell = (value: string | number): string => String(value).replaceAll("|", "\\|").replaceAll("\n", " ");
