/**
 * The package as a user has it: packed, installed into an empty folder without a network and without optional packages. What it imports must
 * be in it, and what it says of optional packages must be true.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TEMPLATE_NAMES } from "../../src/cli/init/templates.ts";
import { OPTIONAL_PACKAGES } from "../../src/optional.ts";
import { TestProject } from "./project.ts";

const root = new URL("../..", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "rlcli-package-"));
const installed = join(folder, "node_modules/rlcli");
const project = new TestProject({});

function run(cwd: string, command: string, ...args: readonly string[]): string {
  const env = { ...project.env } as NodeJS.ProcessEnv;
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}\n${stdout}\n${stderr}`);
  return stdout;
}

const rlcli = (cwd: string, ...args: readonly string[]) => run(cwd, join(folder, "node_modules/.bin/rlcli"), ...args);

beforeAll(() => {
  if (!existsSync(join(root, "dist/types"))) run(root, "npx", "tsc", "-p", "src/tsconfig.json");
  const [packed] = JSON.parse(
    run(root, "npm", "pack", "--silent", "--json", "--ignore-scripts", "--pack-destination", folder),
  );
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  const quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"];
  run(folder, "npm", "install", "--offline", "--omit=optional", ...quiet, join(folder, packed.filename));
});

afterAll(async () => {
  await project.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the package, installed into an empty folder", () => {
  test("brings no other package, and is small", () => {
    expect(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["rlcli"]);
    let bytes = 0;
    for (const name of readdirSync(installed, { recursive: true })) bytes += statSync(join(installed, `${name}`)).size;
    // Measured with optional packages by benchmarks/package.bench.mjs; this catches a fat one early.
    expect(bytes).toBeLessThan(25e6);
  });

  test("trains the quickstart", () => {
    rlcli(folder, "init", "quickstart");
    const there = join(folder, "quickstart");
    const spec = join(there, "rlcli.yaml");
    writeFileSync(spec, readFileSync(spec, "utf8").replace("epochs: 4", "steps: 3"));
    try {
      expect(rlcli(there, "apply", "--auto-approve")).toContain("Apply complete");
      expect(rlcli(there, "plan", "--detailed-exitcode")).toContain("No changes.");
    } finally {
      rlcli(there, "destroy", "--auto-approve");
    }
  });

  test.each(TEMPLATE_NAMES)("has all of the template %s", (name) => {
    rlcli(folder, "init", `from-${name}`, "--template", name, "--backend", "embedded", "--yes");
    expect(rlcli(join(folder, `from-${name}`), "validate")).toContain("Valid");
  });

  test("brings the action that pipelines call", () => {
    expect(existsSync(join(installed, "action/action.yml")) && existsSync(join(installed, "action/main.mjs"))).toBe(
      true,
    );
  });

  test("gives programs a client with types that need nothing else", () => {
    writeFileSync(
      join(folder, "program.ts"),
      `import { parseAddress } from "rlcli";
import { TinkerClient, type SampleResult } from "rlcli/tinker";
const client: TinkerClient = new TinkerClient({ baseUrl: "http://127.0.0.1:1" });
export const texts = (result: SampleResult): number => result.sequences.length;
console.log(parseAddress("run.agent") !== undefined, typeof client.createSession);
await client.close();
`,
    );
    const options = ["--module", "nodenext", "--target", "es2023", "--lib", "es2023,esnext.disposable", "--strict"];
    const typeRoots = ["--typeRoots", join(root, "node_modules/@types"), "--types", "node"];
    run(folder, join(root, "node_modules/.bin/tsc"), ...options, ...typeRoots, "program.ts");
    expect(run(folder, process.execPath, "program.js")).toBe("true function\n");
  });

  test("says what to install where an optional package is missing", () => {
    const { status, stderr } = spawnSync(join(folder, "node_modules/.bin/rlcli"), ["env", "gc", "--dry-run"], {
      cwd: folder,
      env: project.env as NodeJS.ProcessEnv,
      encoding: "utf8",
    });
    expect(status).toBe(1);
    expect(stderr).toContain("RL9011");
    expect(stderr).toContain(`npm install dockerode@${OPTIONAL_PACKAGES.dockerode}`);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("carries the licenses of what is bundled", () => {
    expect(readFileSync(join(installed, "dist/licenses.txt"), "utf8")).toMatch(/^undici \d/m);
  });
});

test("messages name the versions of optional packages that package.json pins", () => {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  expect(OPTIONAL_PACKAGES).toEqual(optionalDependencies);
});
