/**
 * Every command block of README and guides, run in the order of its page in a folder of its own; what a page shows is held against what is
 * printed. blocks.ts says which comments steer it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { findDocker, makeExampleImage } from "../support/docker.ts";
import { type Block, blocksOf, consoleSteps, isTested, matcherOf } from "./blocks.ts";
import { Shell } from "./shell.ts";

const root = new URL("../..", import.meta.url).pathname;
const isAll = Boolean(process.env.RLCLI_TEST_ALL);
// What the pages about sandboxes make first: other tests need it at the same time.
const hasDocker = (await findDocker()) !== undefined && (await makeExampleImage());

const markdown = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map(({ name }) => relative(root, join(root, folder, name)));

const pages = [
  "README.md",
  ...markdown("docs"),
  ...markdown("docs/guide"),
  ...readdirSync(join(root, "examples")).flatMap((name) => markdown(`examples/${name}`)),
  ...markdown("action"),
]
  .map((name) => ({ name, blocks: blocksOf(readFileSync(join(root, name), "utf8")).filter(isTested) }))
  .filter(({ blocks }) => blocks.length > 0);

function isLeftOut({ skip, isSlow, needs }: Block): boolean {
  return skip !== undefined || (isSlow && !isAll) || (needs === "docker" && !hasDocker);
}

/** Runs one block, and gives what it printed; outputs are held against what was printed before. */
function perform(shell: Shell, block: Block, printed: string): string {
  const { file, text, language, exit, setup, isOutput } = block;
  for (const command of setup) {
    const { code, out } = shell.run(command);
    expect(code, `${command}\n${out}`).toBe(0);
  }
  if (isOutput) expect(printed).toMatch(matcherOf(text));
  else if (file !== undefined) shell.write(file, text);
  else if (language === "sh") {
    const { code, out } = shell.run(text);
    expect(code, `${text}\n${out}`).toBe(exit);
    return out;
  } else
    for (const { command, output } of consoleSteps(text)) {
      const { out } = shell.run(`${command} || true`);
      expect(out, command).toMatch(matcherOf(output));
    }
  return printed;
}

describe.each(pages)("$name", ({ name, blocks }) => {
  test("blocks that are left out say why", () => {
    for (const { skip, line, needs } of blocks) {
      expect(skip, `${name}:${line}`).not.toBe("");
      if (needs !== undefined) expect(needs, `${name}:${line}`).toBe("docker");
    }
  });

  const done = blocks.filter((block) => !isLeftOut(block));
  test.runIf(done.length > 0)(
    `${done.length} of ${blocks.length} blocks`,
    () => {
      const shell = new Shell();
      try {
        let printed = "";
        for (const block of done) {
          try {
            printed = perform(shell, block, printed);
          } catch (error) {
            throw new Error(`${name}:${block.line}: ${(error as Error).message}`, { cause: error });
          }
        }
      } finally {
        shell.close();
      }
    },
    isAll ? 1_800_000 : 300_000,
  );
});
