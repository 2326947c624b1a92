/** What an apply looks like: on terminals of several kinds and widths, in a pipeline, through a pipe. A real terminal, by Python's pty. */
import { afterEach, describe, expect, test } from "vitest";
import { widthOf } from "../../src/cli/views/text.ts";
import { hasTerminal, program, typeAt } from "../support/terminal.ts";
import { rows, SPEC, TestProject } from "./project.ts";

const isAll = Boolean(process.env.RLCLI_TEST_ALL);
const ESCAPE = "\u001b";
/** Colours and weights. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is looked for.
const PAINT = /\u001b\[[0-9;]*m/g;
/** The cursor up and the rest cleared. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is looked for.
const REDRAW = /\u001b\[\d+A\u001b\[0J/g;

let project: TestProject | undefined;
afterEach(() => project?.close());

function made(): TestProject {
  project = new TestProject({ "rlcli.yaml": SPEC, "numbers.jsonl": rows() });
  return project;
}

async function applyOn(env: NodeJS.ProcessEnv, columns = 80): Promise<string> {
  const { folder, env: base } = made();
  // A line of progress is drawn ten times a second at the most: it must be there for longer than a busy machine looks away.
  project?.edit("rlcli.yaml", "steps: 6", "steps: 40");
  const clean = { ...base, NO_COLOR: undefined, FORCE_COLOR: undefined, LANG: "C.UTF-8", LC_ALL: undefined };
  const command = [process.execPath, program, "apply", "-y"];
  const { code, shown } = await typeAt(command, [], {
    cwd: folder,
    env: { ...clean, ...env } as NodeJS.ProcessEnv,
    columns,
  });
  expect([code, shown.slice(-300)]).toEqual([0, expect.stringContaining("Apply complete:")]);
  return shown;
}

/** What stood on a terminal's lines, wrapped or drawn over. */
const linesOf = (shown: string): string[] => shown.replaceAll(PAINT, "").replaceAll(REDRAW, "").split("\r\n");

describe.skipIf(!hasTerminal)("an apply on a terminal", () => {
  test.each(isAll ? ["xterm-256color", "tmux-256color", "screen"] : ["tmux-256color"])(
    "%s: colours, and lines drawn over",
    async (term) => {
      const shown = await applyOn({ TERM: term });
      expect(shown).toMatch(PAINT);
      expect(shown).toMatch(REDRAW);
      expect(shown).toContain("✓");
      expect(linesOf(shown).some((line) => /run\.count [█░]{20} step \d+\/40 {2}loss/.test(line))).toBe(true);
    },
  );

  test.each(isAll ? [30, 50, 200] : [30])("%d columns: no drawn line wraps", async (columns) => {
    const shown = await applyOn({ TERM: "xterm" }, columns);
    const drawn = linesOf(shown).filter((line) => /[█░]|^[+]? ?(server|dataset|run)\.[a-z]+:/.test(line));
    expect(drawn.length).toBeGreaterThan(3);
    // What is printed once is not cut: ends of changes, and the curve.
    for (const line of drawn.filter((one) => !/^✓| │/.test(one))) expect(widthOf(line)).toBeLessThan(columns);
  });

  test("NO_COLOR: no colours, still drawn over", async () => {
    const shown = await applyOn({ TERM: "xterm", NO_COLOR: "1" });
    expect(shown).not.toMatch(PAINT);
    expect(shown).toMatch(REDRAW);
  });

  test("a dumb terminal: no escape codes at all, nothing but ASCII, all that happened in lines", async () => {
    const shown = await applyOn({ TERM: "dumb" });
    expect(shown).not.toContain(ESCAPE);
    expect(shown).toMatch(/ok run\.count: done/);
  });

  test("CI with a terminal: colours, nothing drawn over", async () => {
    const shown = await applyOn({ TERM: "xterm", CI: "true" });
    expect(shown).toMatch(PAINT);
    expect(shown).not.toMatch(REDRAW);
  });
});

describe("an apply through a pipe", () => {
  test("has no escape codes, and the loss's curve at the end", () => {
    const { out, err } = made().run(["apply", "-y"]);
    expect(out + err).not.toContain(ESCAPE);
    expect(err).toMatch(/✓ run\.count: done, step 6/);
    expect(out).toMatch(/loss of run\.count\n +\d\.\d{3} │/);
  });

  test("FORCE_COLOR paints, and moves no cursor", () => {
    const project = made();
    project.env.NO_COLOR = undefined;
    project.env.FORCE_COLOR = "1";
    const { out, err } = project.run(["apply", "-y"]);
    expect(out).toMatch(PAINT);
    expect(err).not.toMatch(REDRAW);
  });

  test("ASCII where the locale has no more", () => {
    const project = made();
    project.env.LC_ALL = "C";
    const { out, err } = project.run(["apply", "-y"]);
    expect(err).toMatch(/ok run\.count: done/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII begins there.
    expect(err).toMatch(/^[\x00-\x7f]*$/);
    expect(out).toMatch(/loss of run\.count\n +\d\.\d{3} \|/);
  });
});
