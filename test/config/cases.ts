/** The cases of test/fixtures/spec: a folder each, with the expected codes written at the ends of lines. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type LoadOptions, type LoadResult, loadSpec } from "../../src/config/load.ts";

export const CASES_FOLDER = fileURLToPath(new URL("../fixtures/spec", import.meta.url));

/** `case.json`, where a case is more than one file. */
interface CaseSettings extends Partial<Omit<LoadOptions, "cwd">> {
  /** Codes of diagnostics that have no place in a file. */
  readonly unplaced?: readonly string[];
}

export interface Case {
  readonly name: string;
  readonly folder: string;
  readonly options: LoadOptions;
  /** `file:line code`, sorted. */
  readonly expected: readonly string[];
}

/** Codes at the end of a line: `# RL1101, RL1106`. */
function expectedOf(file: string, text: string): string[] {
  return text.split("\n").flatMap((line, i) => {
    const codes = /# (RL\d{4}(?:, RL\d{4})*)\s*$/.exec(line)?.[1]?.split(", ") ?? [];
    return codes.map((code) => `${file}:${i + 1} ${code}`);
  });
}

export function readCases(): readonly Case[] {
  return readdirSync(CASES_FOLDER)
    .sort()
    .map((name) => {
      const folder = join(CASES_FOLDER, name);
      const settingsPath = join(folder, "case.json");
      const settings: CaseSettings = existsSync(settingsPath) ? JSON.parse(readFileSync(settingsPath, "utf8")) : {};
      const { unplaced = [], ...given } = settings;
      const options = { files: ["rlcli.yaml"], variables: {}, variableFiles: [], env: {}, ...given, cwd: folder };
      const placed = [...options.files, ...options.variableFiles]
        .filter((file) => existsSync(join(folder, file)) && file !== ".")
        .flatMap((file) => expectedOf(file, readFileSync(join(folder, file), "utf8")));
      return { name, folder, options, expected: [...placed, ...unplaced.map((code) => `- ${code}`)].sort() };
    });
}

/** What came of loading, in the form of `Case.expected`. */
export function placesOf({ diagnostics }: LoadResult): readonly string[] {
  return diagnostics.map((d) => (d.range ? `${d.range.file}:${d.range.start.line} ${d.code}` : `- ${d.code}`)).sort();
}

export function loadCase(testCase: Case): Promise<LoadResult> {
  return loadSpec(testCase.options);
}
