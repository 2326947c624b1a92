/** Completion in the shells themselves: Tab is pressed on a terminal, and a function named rlcli says what the line became. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { hasTerminal, type Keys, program, typeAt } from "../../support/terminal.ts";

const SPEC = `rlcli: 1
project: demo
variables:
  steps: { type: integer, default: 3, description: RL steps }
server: { backend: embedded, model: builtin:tiny }
datasets:
  rows: { source: rows.jsonl }
environments:
  sums: { type: match, dataset: rows }
runs:
  agent: { type: rl, environment: sums }
evals:
  holdout: { checkpoint: agent, environment: sums }
deployments:
  best: { checkpoint: agent, requires: holdout }
`;

const folder = mkdtempSync(join(tmpdir(), "rlcli-completion-"));
writeFileSync(join(folder, "rlcli.yaml"), SPEC);
mkdirSync(join(folder, "tasks"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What is typed, and what the line is when Enter is pressed. */
const CASES: readonly (readonly [typed: string, line: string])[] = [
  ["pla\\t", "plan"],
  ["serve sto\\t", "serve stop"],
  ["plan --deta\\t", "plan --detailed-exitcode"],
  ["init --backend meg\\t", "init --backend megatron"],
  ["init --backend=meg\\t", "init --backend=megatron"],
  ["logs ag\\t", "logs agent"],
  ["plan --target eval.h\\t", "plan --target eval.holdout"],
  ["sample deployment.b\\t", "sample deployment.best"],
  ["plan --var st\\t7", "plan --var steps=7"],
  ["plan -f rlc\\t", "plan -f rlcli.yaml"],
  ["env list ta\\t", "env list tasks"],
  ["explain run.learn\\t", "explain run.learning_rate"],
  ["help environment-v\\t", "help environment-variables"],
];

interface ShellUnderTest {
  readonly name: "bash" | "zsh" | "fish";
  readonly command: readonly string[];
  /** Lines that load the script and define the function. */
  readonly setup: readonly string[];
}

const PROMPT = "READY> ";
const ask = `'${process.execPath}' '${program}' completion`;
const SHELLS: readonly ShellUnderTest[] = [
  {
    name: "bash",
    command: ["bash", "--norc", "--noprofile", "-i"],
    setup: [`PS1='${PROMPT}'`, `eval "$(${ask} bash)"`, `rlcli() { echo "GOT<$*>"; }`],
  },
  {
    name: "zsh",
    command: ["zsh", "-f", "-i"],
    setup: [
      `PS1='${PROMPT}'`,
      "autoload -U compinit && compinit -u -D",
      `eval "$(${ask} zsh)"`,
      `rlcli() { print -r -- "GOT<$*>" }`,
    ],
  },
  {
    name: "fish",
    command: ["fish", "--no-config", "-i"],
    setup: [
      `function fish_prompt; echo REA"DY> "; end`,
      `${ask} fish | source`,
      `function rlcli; echo "GOT<$argv>"; end`,
    ],
  },
];

const isThere = (name: string): boolean => spawnSync(name, ["-c", "exit 0"]).status === 0;

describe.each(SHELLS)("$name", ({ name, command, setup }) => {
  test.skipIf(!hasTerminal || !isThere(name))(
    "completes commands, options, values, files and names of the spec",
    async () => {
      // Each line ends with a mark that only its output has: what is typed while a shell is at work may be lost.
      const begin = setup.map((line, at): Keys => {
        const keys = `${line.replaceAll("\\", "\\\\")}; echo BE${at + 1}"GUN"\\r`;
        return [at === 0 ? "" : `BE${at}GUN`, keys];
      });
      const typed = CASES.flatMap(([keys], at): Keys[] => [
        [at === 0 ? `BE${setup.length}GUN` : "GOT<", ""],
        [PROMPT, `rlcli ${keys}\\r`],
      ]);
      const end: readonly Keys[] = [
        ["GOT<", ""],
        [PROMPT, "exit\\r"],
      ];
      const env = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, HISTFILE: undefined };
      const { shown } = await typeAt(command, [...begin, ...typed, ...end], { cwd: folder, env, columns: 200 });
      // The slash of a folder stays in some shells and goes at Enter in others.
      for (const [, line] of CASES) expect(shown.replaceAll("/>", ">")).toContain(`GOT<${line}>`);
    },
    120_000,
  );
});
