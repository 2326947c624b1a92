/** Every case of test/fixtures/spec: its codes, line by line, and how they are rendered. */
import { describe, expect, test } from "vitest";
import { renderDiagnostics } from "../../src/cli/views/diagnostic.ts";
import { createStyle } from "../../src/cli/views/style.ts";
import { CODES } from "../../src/codes.ts";
import { canonicalJson } from "../../src/value.ts";
import { loadCase, placesOf, readCases } from "./cases.ts";

const cases = readCases();

describe.each(cases)("$name", (testCase) => {
  test("has the expected faults", async () => {
    expect(placesOf(await loadCase(testCase))).toEqual(testCase.expected);
  });

  test("renders as before", async () => {
    const { spec, diagnostics } = await loadCase(testCase);
    if (diagnostics.length > 0) {
      const text = renderDiagnostics(diagnostics, { style: createStyle(false), width: 100 });
      const golden = text.replaceAll(testCase.folder, "FOLDER");
      await expect(golden).toMatchFileSnapshot(`../golden/diagnostics/${testCase.name}.txt`);
    }
    if (testCase.name.startsWith("valid-")) {
      expect(spec).toBeDefined();
      const nodes = [...spec!.nodes.values()].map(({ address, body, attributes, references }) => ({
        address,
        body,
        attributes: [...attributes].map(
          ([path, a]) => `${path}${a.isDefault ? "*" : ""} = ${canonicalJson(a.value)} (${a.change})`,
        ),
        references,
      }));
      const inputs = spec!.inputs.map((input) =>
        input.type === "env" ? `env ${input.name}` : `file ${input.path.replace(testCase.folder, "FOLDER")}`,
      );
      const golden = `${JSON.stringify({ project: spec!.project, nodes, inputs }, null, 2)}\n`;
      await expect(golden).toMatchFileSnapshot(`../golden/spec/${testCase.name}.json`);
    }
  });
});

test("there are cases for every code of the spec family", () => {
  const covered = new Set(cases.flatMap((c) => c.expected.map((line) => line.split(" ")[1])));
  // RL1002 needs bytes that are no text (files.test.ts), RL1013 a spec that is a program (program.test.ts).
  const elsewhere = ["RL1002", "RL1013"];
  const missing = Object.keys(CODES).filter(
    (code) => code.startsWith("RL1") && !elsewhere.includes(code) && !covered.has(code),
  );
  expect(missing).toEqual([]);
});
