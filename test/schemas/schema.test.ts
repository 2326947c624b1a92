/** The schema that editors get, and what is generated from it. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Ajv2020 from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { diagnosticsJson } from "../../src/cli/views/diagnostic.ts";
import { changeRule, changeWords, fieldOf } from "../../src/config/changes.ts";
import { type BlockName, blockInfo, fieldAt } from "../../src/config/fields.ts";
import { CASES_FOLDER, loadCase, readCases } from "../config/cases.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const schema = JSON.parse(readFileSync(join(root, "schemas/rlcli.schema.json"), "utf8"));

const ajv = new Ajv2020.default({ strict: false, allErrors: true });
const validate = ajv.compile(schema);

/** As an editor reads a file: YAML with merge keys, nothing resolved. */
function readSpec(path: string): unknown {
  return parse(readFileSync(path, "utf8"), { merge: true });
}

describe("the schema for editors", () => {
  const valid = readCases().filter((c) => c.name.startsWith("valid-"));

  // Of overlays, only the first file is a spec by itself.
  test.each(valid)("takes $name with its shorthands and interpolation", ({ name }) => {
    validate(readSpec(join(CASES_FOLDER, name, "rlcli.yaml")));
    expect(validate.errors ?? []).toEqual([]);
  });

  test("takes the quickstart", () => {
    validate(readSpec(join(root, "examples/quickstart/rlcli.yaml")));
    expect(validate.errors ?? []).toEqual([]);
  });

  const refused = readCases().filter((c) => /^shape-(?!later)/.test(c.name));

  test.each(refused)("refuses $name", ({ name }) => {
    expect(validate(readSpec(join(CASES_FOLDER, name, "rlcli.yaml")))).toBe(false);
  });
});

describe("the schema of diagnostics", () => {
  const output = JSON.parse(readFileSync(join(root, "schemas/diagnostics.schema.json"), "utf8"));
  const check = ajv.compile(output);

  test.each(readCases())("takes those of $name", async (testCase) => {
    const { diagnostics } = await loadCase(testCase);
    check(JSON.parse(diagnosticsJson(diagnostics, { valid: diagnostics.length === 0 })));
    expect(check.errors ?? []).toEqual([]);
  });

  test("refuses another version", () => {
    expect(check({ formatVersion: 2, diagnostics: [] })).toBe(false);
    expect(check({ formatVersion: 1, diagnostics: [{ severity: "fatal" }] })).toBe(false);
  });
});

describe("the field table", () => {
  const blocks: readonly BlockName[] = ["server", "dataset", "loss", "run"];

  test("every default is a value that the schema takes", () => {
    for (const name of blocks)
      for (const field of blockInfo(name).fields) {
        if (field.default === undefined) continue;
        if (field.values) expect(field.values).toContain(field.default);
        const type = field.type === "map" ? "object" : field.type;
        expect(ajv.validate({ type }, field.default)).toBe(true);
      }
  });

  test("every example is one that the schema takes", () => {
    const kinds = { server: "servers", dataset: "datasets", loss: "losses", run: "runs" } as const;
    for (const name of blocks)
      for (const field of blockInfo(name).fields)
        for (const example of field.examples ?? []) {
          const body = field.path.split(".").reduceRight<unknown>((value, key) => ({ [key]: value }), example);
          const spec = { rlcli: 1, project: "p", [kinds[name as keyof typeof kinds]]: { x: body } };
          validate(spec);
          // What else the block needs is missing here.
          const errors = (validate.errors ?? []).filter(
            (e) => !["required", "oneOf", "dependentRequired"].includes(e.keyword),
          );
          expect({ field: field.path, errors }).toEqual({ field: field.path, errors: [] });
        }
  });

  test("paths below free maps and lists are governed by them", () => {
    expect(fieldAt("run", "template_kwargs.a.b")?.path).toBe("template_kwargs");
    expect(fieldAt("dataset", "import.from.0")?.path).toBe("import.from");
    expect(fieldAt("run", "learning_rate.x")).toBeUndefined();
    expect(fieldAt("run", "nothing")).toBeUndefined();
  });

  test("change rules by kind and path", () => {
    expect(changeRule("run", "learning_rate")).toBe("replace");
    expect(changeRule("run", "steps")).toBe("rule");
    expect(changeRule("server", "port")).toBe("restart");
    expect(changeRule("server", "backend_config.x.y")).toBe("restart");
    expect(changeRule("eval", "x")).toBe("none");
    expect(fieldOf("run", "learning_rate")?.default).toBe(0.0001);
  });

  test("every leaf says in words what a change does", () => {
    for (const name of ["server", "dataset", "loss", "run"] as const)
      for (const field of blockInfo(name).fields)
        if (field.type !== "group") expect(changeWords(name, field)).toMatch(/\.$/);
  });
});

test("generated files are fresh", () => {
  execFileSync(process.execPath, ["schemas/generate.mjs", "--check"], { cwd: root, stdio: "pipe" });
});
