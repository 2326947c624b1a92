/** Specs that are programs: the same spec as in YAML, and what is said where a program gives none. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { loadSpec } from "../../src/config/load.ts";
import { defineSpec, type SpecSource } from "../../src/index.ts";
import { TestProject } from "../e2e/project.ts";
import { CASES_FOLDER, loadCase, readCases } from "./cases.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "rlcli-program-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
/** Each in a file of its own: a module is run once. */
function put(code: string, ending = "mjs"): string {
  const name = `spec-${count++}.${ending}`;
  writeFileSync(join(folder, name), code);
  return name;
}

const load = (file: string, env: Record<string, string> = {}) =>
  loadSpec({ files: [file], variables: {}, variableFiles: [], env, cwd: folder });

const faultOf = async (code: string): Promise<string> => {
  const { spec, diagnostics } = await load(put(code));
  expect(spec).toBeUndefined();
  return `${diagnostics[0]?.code}: ${diagnostics[0]?.detail}`;
};

describe("a program", () => {
  // Whose variables come from elsewhere, and overlays, are not one value.
  const valid = readCases().filter(({ name }) => /^valid-(minimal|quick|rl|shorthands|defaults-written)$/.test(name));

  test.each(valid)("says the same as $name in YAML", async (testCase) => {
    const text = readFileSync(join(CASES_FOLDER, testCase.name, "rlcli.yaml"), "utf8");
    const value = parse(text, { merge: true });
    const written = await load(put(`export default ${JSON.stringify(value)};`), { TEAM: "x" });
    const { spec } = await loadCase(testCase);
    const bodies = (of: typeof spec) => [...(of?.nodes.values() ?? [])].map(({ address, body }) => [address, body]);
    expect(bodies(written.spec)).toEqual(bodies(spec));
    expect(valid.length).toBeGreaterThan(3);
  });

  test("may be a function, asynchronous, of the environment; undefined fields are not there", async () => {
    const code = `export default async ({ env }) => ({ rlcli: 1, project: env.TEAM, datasets: { a: { source: "a.jsonl", rows: undefined } } });`;
    const { spec } = await load(put(code), { TEAM: "blue" });
    expect(spec?.project).toBe("blue");
    expect(spec?.nodes.get("dataset.a")?.body).toMatchObject({ source: "a.jsonl" });
  });

  test.each([
    ["exports nothing", "export const spec = 1;", "exports no spec"],
    ["throws", "\nthrow new Error('no data today');", "no data today. It was at line 2."],
    ["does not parse", "export default {", "failed: "],
    ["lacks rlcli", "import 'rlcli';", "npm install -D rlcli"],
    [
      "gives a function inside",
      "export default { rlcli: 1, project: () => 1 };",
      "a value of type function at `project`",
    ],
    ["gives no number", "export default { rlcli: NaN };", "NaN at `rlcli`"],
    ["gives a date", "export default { rlcli: 1, project: new Date() };", "a Date object at `project`"],
    ["gives a circle", "const a = {}; a.a = a; export default a;", "holds itself"],
  ])("that %s is a fault", async (_, code, words) => {
    const fault = await faultOf(code);
    expect(fault).toContain("RL1013");
    expect(fault).toContain(words);
  });

  test("what a spec refuses is shown in the YAML that it stands for", async () => {
    const file = put(`export default { rlcli: 1, project: "p", runs: { a: { type: "sl", epoks: 2 } } };`);
    const { diagnostics } = await load(file);
    const unknown = diagnostics.find(({ code }) => code === "RL1101");
    expect(unknown?.sourceLine).toBe("    epoks: 2");
    expect(unknown?.range?.file).toBe(`${file} (as YAML)`);
  });

  test("in TypeScript: run where Node can, else the fault says how", async () => {
    const file = put(`const p: string = "typed"; export default { rlcli: 1, project: p };`, "ts");
    const { spec, diagnostics } = await load(file);
    const canRun = Boolean((process.features as { typescript?: unknown }).typescript);
    if (canRun) expect(spec?.project).toBe("typed");
    else expect(diagnostics[0]?.detail).toMatch(/22\.18 or later.*\.mjs/);
  });
});

test("a project moves from YAML to a program, and nothing is planned anew", () => {
  const project = new TestProject({});
  try {
    const spec: SpecSource = {
      rlcli: 1,
      project: "moved",
      server: { backend: "embedded", model: "builtin:tiny" },
      datasets: { rows: { source: "rows.jsonl" } },
      runs: { a: { type: "sl", dataset: "rows", epochs: 2, schedule: "linear" } },
    };
    project.write(
      "rows.jsonl",
      `${JSON.stringify({
        messages: [
          { role: "user", content: "a" },
          { role: "assistant", content: "b" },
        ],
      })}\n`,
    );
    project.write("rlcli.yaml", stringify(spec));
    const hashes = () => {
      const { changes } = JSON.parse(project.ok("plan", "--json")) as {
        changes: { address: string; after: { hash: string } }[];
      };
      return changes.map(({ address, after }) => [address, after.hash]);
    };
    const before = hashes();
    rmSync(join(project.folder, "rlcli.yaml"));
    // As an installation would lay it.
    mkdirSync(join(project.folder, "node_modules"));
    symlinkSync(root, join(project.folder, "node_modules/rlcli"));
    project.write(
      "rlcli.config.mjs",
      `import { defineSpec } from "rlcli";\nexport default defineSpec(${JSON.stringify(spec)});\n`,
    );
    expect(hashes()).toEqual(before);
    expect(before).toHaveLength(3);
  } finally {
    rmSync(project.folder, { recursive: true, force: true });
  }
});

test("types refuse what a spec cannot say, and take shorthands and variables", () => {
  const base = { rlcli: 1, project: "p" } as const;
  defineSpec({ ...base, runs: { a: { type: "sl", schedule: "cosine", steps: "${var.steps}", stop: "x" } } });
  defineSpec(({ env }) => ({ ...base, project: env.TEAM ?? "p" }));
  // @ts-expect-error: a misspelt field
  defineSpec({ ...base, runs: { a: { type: "sl", learning_rat: 1 } } });
  // @ts-expect-error: an unknown backend
  defineSpec({ ...base, server: { backend: "gpu", model: "m" } });
  // @ts-expect-error: a text for a number
  defineSpec({ ...base, runs: { a: { type: "sl", steps: "many" } } });
  // @ts-expect-error: no version
  expect(defineSpec({ project: "p" })).toEqual({ project: "p" });
});
