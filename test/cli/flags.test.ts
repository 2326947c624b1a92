/**
 * docs/reference/flags.md is true: every row is a command line whose `--emit-spec` has the field, every flag of these verbs has a row, and
 * every flag of the Python predecessor is among them.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { CommandContext } from "../../src/cli/context.ts";
import { createProgram } from "../../src/cli/program.ts";
import { kindOfKey } from "../../src/config/blocks.ts";
import { type BlockName, fieldAt } from "../../src/config/fields.ts";
import { loadSpec } from "../../src/config/load.ts";
import { RlcliError } from "../../src/diagnostic.ts";
import { LOSSES } from "../../src/losses/registry.ts";

const page = readFileSync(new URL("../../docs/reference/flags.md", import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "rlcli-flags-"));
const FILES = { "rows.jsonl": "{}\n", "schema.json": '{"type":"object"}', "grade.mjs": "", "names.txt": "Ada\n" };
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The least that each verb needs beside the flag of a row; an option of a row replaces one of the same name here. */
const NEEDED: Readonly<Record<string, string>> = {
  "serve start": "--base-model Qwen/Qwen3-0.6B --backend jax",
  "train sl": "--dataset rows.jsonl --model builtin:tiny",
  "train rl": "--dataset rows.jsonl --model builtin:tiny",
  "train harbor": "--dataset hello@1.0 --model builtin:tiny",
  import: "rows.jsonl",
};

interface Row {
  readonly verb: string;
  readonly flags: string;
  /** `path: value`, or words where there is no such field. */
  readonly field: string;
}

const rows: readonly Row[] = page.split(/^## rlcli /m).flatMap((section) => {
  const verb = section.slice(0, section.indexOf("\n"));
  const lines = section.matchAll(/^\| `(-[^`]*)` \| (.*?) \|/gm);
  return Object.hasOwn(NEEDED, verb) ? [...lines].map(([, flags = "", field = ""]) => ({ verb, flags, field })) : [];
});

function argv({ verb, flags }: Row): string[] {
  const words = flags.split(" ");
  const needed = NEEDED[verb]!.split(" ");
  const kept = needed.flatMap((word, at) => {
    if (!word.startsWith("--")) return needed[at - 1]?.startsWith("--") ? [] : [word];
    return words.includes(word) ? [] : [word, needed[at + 1] as string];
  });
  return [...verb.split(" "), ...kept, ...words, "--emit-spec"];
}

async function emitted(row: Row): Promise<unknown> {
  let out = "";
  const context = { cwd: folder, env: {}, out: (text: string) => (out += text), err: () => {} };
  const program = createProgram(async (body) => void (await body(context as unknown as CommandContext)));
  await program.parseAsync(argv(row), { from: "user" });
  return parse(out);
}

function commandOf(verb: string): Command {
  let command: Command | undefined = createProgram(async () => {});
  for (const word of verb.split(" ")) command = command?.commands.find((one) => one.name() === word);
  return command as Command;
}

/** Flags that take fewer than their field, and why. */
const NARROWER: Readonly<Record<string, string>> = {
  "serve start --backend": "an external server is not started",
  "train sl --format": "other forms are imported first",
  "train rl --env": "tasks in sandboxes are another verb",
};

const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);

describe.each(Object.keys(NEEDED))("rlcli %s", (verb) => {
  const own = rows.filter((row) => row.verb === verb);

  test.each(own.filter(({ field }) => field.startsWith("`")))("$flags is $field", async (row) => {
    const [, path = "", text = ""] = /^`([^:]+): (.*)`$/.exec(row.field) ?? [];
    const spec = (await emitted(row)) as Record<string, unknown>;
    // A single server is written in the short form.
    const whole = spec.server ? { ...spec, servers: { default: spec.server } } : spec;
    expect(at(whole, path)).toEqual(parse(text.replace("$PWD", folder)));
  });

  test.each(own.filter(({ field }) => !field.startsWith("`")))("$flags is $field", async (row) => {
    if (row.flags.startsWith("--checkpoints-base")) await expect(emitted(row)).rejects.toThrow(RlcliError);
    else expect(await emitted(row)).toMatchObject({ rlcli: 1 });
  });

  test("a flag with choices offers the values of its field", () => {
    const command = commandOf(verb);
    const offered = own.flatMap(({ flags, field }) => {
      const [, path = ""] = /^`([^:]+): /.exec(field) ?? [];
      const [key = "", ...steps] = path.replace(/^server\./, "servers.default.").split(".");
      const kind = kindOfKey(key);
      const values = kind && fieldAt(kind as BlockName, steps.slice(1).join("."))?.values;
      // Others before it are what it needs.
      const long = flags.split(" ").findLast((word) => word.startsWith("--"));
      const choices = command.options.find((option) => option.long === long)?.argChoices;
      return choices && values ? [{ long, choices, values }] : [];
    });
    expect(offered.length).toBeGreaterThan(0);
    for (const { long, choices, values } of offered)
      if (NARROWER[`${verb} ${long}`]) expect(values, long).toEqual(expect.arrayContaining(choices));
      else expect([...choices].sort(), long).toEqual([...values].sort());
  });

  test("every flag has a row", () => {
    const inherited = verb === "train harbor" ? rows.filter((row) => row.verb === "train rl") : [];
    const named = [...own, ...inherited].flatMap(({ flags }) =>
      flags.split(" ").filter((word) => word.startsWith("-")),
    );
    const general = ["--file", "--var", "--var-file", "--emit-spec"];
    for (const { short, long } of commandOf(verb).options) {
      const names = [short, long].filter((name) => name !== undefined);
      expect(
        names.some((name) => [...named, ...general].includes(name)),
        `${names} has no row`,
      ).toBe(true);
    }
  });
});

/** Version 0.1.0 of the predecessor. */
const PREDECESSOR: Readonly<Record<string, string>> = {
  "serve start":
    "--base-model --backend --port --gpus --nodes --tp --checkpoints-base --max-model-len --backend-config --wait",
  "train sl":
    "--dataset --model --base-url --renderer --batch-size --lr --max-length --epochs --lora-rank --save-every --test-size --log-path --dry-run",
  "train rl":
    "--model --base-url --loss --loss-config --backend --dataset --renderer --batch-size --group-size --lr --max-tokens --lora-rank --save-every --eval-every --max-steps --log-path --dry-run",
  "train harbor":
    "--dataset --sandbox --task-filter --limit --group-size --groups-per-batch --lr --max-tokens --max-turns --save-every --sandbox-timeout --command-timeout",
  import: "-f -o --min-messages --limit",
};

/** `--loss` names them again, so that start-up loads none; so do the rules of a spec. */
test("--loss offers every loss that a run of reinforcement learning can have", async () => {
  const usable: string[] = [];
  for (const { name } of LOSSES) {
    const file = join(folder, `${name}.yaml`);
    const spec = {
      rlcli: 1,
      project: "p",
      runs: { r: { type: "rl", server: "s", environment: "e", steps: 1, loss: name } },
    };
    const rest = {
      servers: { s: { backend: "embedded", model: "builtin:tiny" } },
      datasets: { d: { source: "rows.jsonl" } },
      environments: { e: { type: "math", dataset: "d" } },
    };
    writeFileSync(file, JSON.stringify({ ...spec, ...rest }));
    const loaded = await loadSpec({ files: [file], variables: {}, variableFiles: [], env: {}, cwd: folder });
    if (loaded.spec) usable.push(name);
    else expect(loaded.diagnostics.map(({ code }) => code)).toEqual(["RL1204"]);
  }
  for (const verb of ["train rl", "train harbor"]) {
    const option = commandOf(verb).options.find(({ long }) => long === "--loss");
    expect(option?.argChoices, verb).toEqual(usable);
  }
});

test.each(Object.entries(PREDECESSOR))("the predecessor's flags of %s have a row", (verb, flags) => {
  const named = rows.filter((row) => row.verb === verb).flatMap((row) => row.flags.split(" "));
  expect(flags.split(" ").filter((flag) => !named.includes(flag))).toEqual([]);
});

test("the predecessor's other verbs and flags are there", () => {
  const options = (...words: readonly string[]): readonly string[] =>
    commandOf(words.join(" "))
      .options.flatMap(({ short, long }) => [short, long])
      .filter((name) => name !== undefined);
  expect(options("sample")).toEqual(
    expect.arrayContaining("--prompt --model --checkpoint --base-url --max-tokens --temperature".split(" ")),
  );
  expect(options("serve", "logs")).toContain("-n");
  for (const verb of ["stop", "status"]) expect(options("serve", verb)).toContain("--base-model");
});
