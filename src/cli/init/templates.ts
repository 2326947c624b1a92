/** The templates of `rlcli init`: files of the package, and what can be chosen about them. */

/** A file or a folder of the package, and its name in the new project. */
export interface TemplateFile {
  readonly from: string;
  readonly to: string;
}

export interface Template {
  readonly name: string;
  /** One line for menus and help. */
  readonly about: string;
  /** For the embedded server and its tiny model; green within minutes on a laptop. */
  readonly small: { readonly spec: string; readonly files: readonly TemplateFile[] };
  /** For a server with a real model; absent where the template is only for a first try. */
  readonly full?: { readonly spec: string; readonly files: readonly TemplateFile[] };
  /** The dataset of the spec that imports logs, where the user may have some. */
  readonly logs?: string;
  readonly needsDocker?: boolean;
  /** Commands between `init` and `rlcli plan`, of the small form. */
  readonly before?: readonly string[];
}

const TRACES: TemplateFile = { from: "examples/quickstart/traces.jsonl", to: "traces.jsonl" };

export const TEMPLATES: readonly Template[] = [
  {
    name: "quickstart",
    about: "a chat log, the embedded server and one supervised run",
    small: { spec: "examples/quickstart/rlcli.yaml", files: [TRACES] },
  },
  {
    name: "sft-from-traces",
    about: "supervised fine-tuning on logs of your own, redacted",
    logs: "traces",
    small: { spec: "templates/sft-from-traces/rlcli.yaml", files: [TRACES] },
    full: { spec: "templates/sft-from-traces/rlcli.full.yaml", files: [TRACES] },
  },
  {
    name: "gsm8k-gspo",
    about: "reinforcement learning on word problems with GSPO, an eval and a deployment",
    small: {
      spec: "templates/gsm8k-gspo/rlcli.yaml",
      files: [
        { from: "examples/gsm8k/sample.jsonl", to: "problems.jsonl" },
        { from: "templates/gsm8k-gspo/warmup.jsonl", to: "warmup.jsonl" },
      ],
    },
    full: { spec: "templates/gsm8k-gspo/rlcli.full.yaml", files: [] },
  },
  {
    name: "harbor-agent",
    about: "an agent with a bash tool, on tasks in Docker containers",
    needsDocker: true,
    before: ["bash make-image", "rlcli env check"],
    small: {
      spec: "templates/harbor-agent/rlcli.yaml",
      files: [
        { from: "examples/harbor/tasks", to: "tasks" },
        { from: "examples/harbor/warmup.jsonl", to: "warmup.jsonl" },
        { from: "examples/harbor/make-image", to: "make-image" },
      ],
    },
    full: { spec: "templates/harbor-agent/rlcli.full.yaml", files: [] },
  },
];

export const TEMPLATE_NAMES: readonly string[] = TEMPLATES.map(({ name }) => name);
export const DEFAULT_TEMPLATE = "quickstart";
