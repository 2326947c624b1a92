/** What commands load before they do anything: the heavy parts only where they are needed. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { TestProject } from "./project.ts";

const folder = mkdtempSync(join(tmpdir(), "rlcli-startup-"));
const project = new TestProject();
afterAll(async () => {
  await project.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Chunks of the bundle by what they hold, as the bundler names them: after their largest module. */
const HEAVY = ["undici", "compute-engine", "execa"];

/** Names of the chunks that a command loads. */
function chunksLoaded(...args: string[]): readonly string[] {
  const list = join(folder, "loaded.txt");
  writeFileSync(list, "");
  const hook = `import { appendFileSync } from "node:fs";
export async function load(url, context, next) {
  appendFileSync(${JSON.stringify(list)}, url + "\\n");
  return next(url, context);
}`;
  writeFileSync(join(folder, "hook.mjs"), hook);
  const register = `import { register } from "node:module"; register("./hook.mjs", import.meta.url);`;
  writeFileSync(join(folder, "register.mjs"), register);
  project.env.NODE_OPTIONS = `--import ${join(folder, "register.mjs")}`;
  project.ok(...args);
  project.env.NODE_OPTIONS = undefined;
  return readFileSync(list, "utf8")
    .split("\n")
    .flatMap((url) => /\/dist\/chunks\/(.*)-.{8}\.js$/.exec(url)?.[1] ?? []);
}

test("there are chunks of these names", () => {
  const names = readdirSync(new URL("../../dist/chunks", import.meta.url));
  for (const heavy of HEAVY) expect(names.some((name) => name.startsWith(`${heavy}-`))).toBe(true);
});

test.each([[["validate"]], [["plan"]], [["explain", "run.loss"]]])("%s needs none of them", (args) => {
  const loaded = chunksLoaded(...args);
  expect(loaded).not.toEqual([]);
  expect(loaded.filter((name) => HEAVY.includes(name))).toEqual([]);
});
