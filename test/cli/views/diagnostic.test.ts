import { describe, expect, test } from "vitest";
import {
  countDiagnostics,
  diagnosticsJson,
  renderDiagnostic,
  renderDiagnostics,
} from "../../../src/cli/views/diagnostic.ts";
import { createStyle } from "../../../src/cli/views/style.ts";
import { diagnostic, type SourceRange } from "../../../src/diagnostic.ts";

const plain = { style: createStyle(false), width: 60 };

function range(line: number, from: number, to: number, endLine = line): SourceRange {
  return {
    file: "rlcli.yaml",
    start: { line, column: from, offset: 0 },
    end: { line: endLine, column: to, offset: 0 },
  };
}

const placed = diagnostic("RL1104", "`seed` must be at least 0; here it is `-1`, which is less than that by one.", {
  address: "run.a",
  range: range(120, 9, 11),
  sourceLine: "  seed: -1",
});

describe("renderDiagnostic", () => {
  test("with a place", () => {
    expect(renderDiagnostic(placed, plain).split("\n")).toEqual([
      "error[RL1104]: Value out of range",
      "   --> rlcli.yaml:120:9 (run.a)",
      "    |",
      "120 |   seed: -1",
      "    |         ^^",
      "    |",
      "  `seed` must be at least 0; here it is `-1`, which is less",
      "  than that by one.",
    ]);
  });

  test("in colour", async () => {
    const text = renderDiagnostic(placed, { style: createStyle(true), width: 60 });
    await expect(`${text}\n`).toMatchFileSnapshot("../../golden/views/diagnostic-color.txt");
  });

  test("without a place, but of a block", () => {
    const d = diagnostic("RL1305", "Nothing uses it.", { address: "run.a" });
    expect(renderDiagnostic(d, plain)).toBe("warning[RL1305]: Variable is not used\n --> run.a\n  Nothing uses it.");
  });

  test("a range over several lines is marked to the end of its first", () => {
    const d = diagnostic("RL1003", "Wrong.", { range: range(1, 4, 2, 3), sourceLine: "a: [x," });
    expect(renderDiagnostic(d, plain)).toContain("1 | a: [x,\n  |    ^^^\n");
  });
});

describe("renderDiagnostics", () => {
  test("shows errors first where there are too many", () => {
    const warnings = Array.from({ length: 60 }, () => diagnostic("RL1305", "Unused."));
    const text = renderDiagnostics([...warnings, placed], plain);
    expect(text.match(/^(error|warning)\[/gm)?.length).toBe(50);
    expect(text).toContain("error[RL1104]");
    expect(text).toContain("… and 11 more; `--json` lists all.");
  });
});

test("countDiagnostics", () => {
  const warning = diagnostic("RL1305", "Unused.");
  expect(countDiagnostics([placed])).toBe("1 error");
  expect(countDiagnostics([placed, placed, warning])).toBe("2 errors and 1 warning");
  expect(countDiagnostics([])).toBe("no faults");
});

test("the JSON form is versioned and whole", () => {
  expect(JSON.parse(diagnosticsJson([placed], { valid: false }))).toEqual({
    formatVersion: 1,
    valid: false,
    diagnostics: [
      {
        severity: "error",
        code: "RL1104",
        summary: "Value out of range",
        detail: placed.detail,
        address: "run.a",
        range: range(120, 9, 11),
        sourceLine: "  seed: -1",
      },
    ],
  });
});
