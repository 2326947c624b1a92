/** Tasks as folders: the whole task.toml, what is refused, and digests that equal Harbor's own. */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { diagnostic, RlcliError } from "../../../src/diagnostic.ts";
import { taskDigest, taskFiles } from "../../../src/environments/harbor/digest.ts";
import { readTaskConfig } from "../../../src/environments/harbor/read-config.ts";
import { verifierPlace } from "../../../src/environments/harbor/separate.ts";
import { loadTask, withoutCanary } from "../../../src/environments/harbor/task.ts";
import { filterTasks, findTasks, loadTasks } from "../../../src/environments/harbor/tasks.ts";
import { maskSecrets, resolveEnv, withoutSecrets } from "../../../src/environments/harbor/templates.ts";

const FIXTURES = new URL("../../fixtures/harbor/", import.meta.url).pathname;
const scratch = mkdtempSync(join(tmpdir(), "harbor-tasks-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const read = (toml: string) => readTaskConfig(toml, "task.toml", "a-task");
/** `line:column code detail` of all that was said. */
const said = (toml: string) =>
  read(toml).diagnostics.map(
    ({ code, range, detail }) => `${range?.start.line}:${range?.start.column} ${code} ${detail}`,
  );

describe("task.toml", () => {
  test("an empty one has the format's defaults", () => {
    expect(read("")).toEqual({
      config: {
        name: "a-task",
        description: "",
        metadata: {},
        artifacts: [],
        strategy: "mean",
        agent: {},
        verifier: { timeoutSec: 600, env: {}, collect: [], isSeparate: false },
        environment: { buildTimeoutSec: 600, network: "public", env: {} },
        solution: { env: {} },
        steps: [],
      },
      diagnostics: [],
    });
  });

  test("every field is read", () => {
    const { config, diagnostics } = read(readFileSync(new URL("./every-field.toml", import.meta.url), "utf8"));
    expect(diagnostics).toEqual([]);
    expect(config).toMatchSnapshot();
  });

  test.each([
    [
      "unknown key",
      "[agent]\ntimeout_secs = 3",
      ["2:1 RL7204 `[agent]` has no field `timeout_secs`; it is ignored. Did you mean `timeout_sec`?"],
    ],
    [
      "unknown table",
      "[agents]",
      ["1:1 RL7204 A task.toml has no field `agents`; it is ignored. Did you mean `agent`?"],
    ],
    ["wrong type", "schema_version = 1.4", ["1:1 RL7202 `schema_version` must be a text, not `1.4`."]],
    [
      "old memory as a number",
      "[environment]\nmemory = 2048",
      ['2:1 RL7202 `memory` is a text with a unit, such as "2G" or "512M"; `memory_mb` is a number of MiB.'],
    ],
    ["negative", "[environment]\ncpus = -1", ["2:1 RL7202 `cpus` is -1 and must be above 0."]],
    ["fraction", "[environment]\nmemory_mb = 512.5", ["2:1 RL7202 `memory_mb` is 512.5 and must be whole."]],
    ["number in env", "[environment.env]\nA = 1", ["2:1 RL7202 `A` must be a text in quotes."]],
    [
      "both sizes",
      '[environment]\nmemory = "1G"\nmemory_mb = 512',
      ["2:1 RL7202 `memory` and `memory_mb` say different things."],
    ],
    [
      "hosts without allowlist",
      '[environment]\nallowed_hosts = ["a"]',
      ['2:1 RL7202 `allowed_hosts` goes with `network_mode = "allowlist"` only.'],
    ],
    [
      "allowlist",
      '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a"]',
      ["2:1 RL7203 A network that only reaches listed hosts is not supported: Docker alone cannot enforce it."],
    ],
    [
      "step's key",
      '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n[steps.verifier]\ntimeout_sec = 0',
      ["6:1 RL7202 `timeout_sec` is 0 and must be above 0."],
    ],
    ["equal steps", '[[steps]]\nname = "a"\n[[steps]]\nname = "A"', ["1:1 RL7202 Two steps are called `A`."]],
    [
      "step outside",
      '[[steps]]\nname = "../x"',
      ["1:1 RL7202 `../x` is no name of a step: it must be that of a folder."],
    ],
    [
      "windows",
      '[environment]\nos = "Windows"',
      ["2:1 RL7203 Windows tasks need a Windows daemon, which is not supported."],
    ],
    [
      "another service",
      '[[verifier.collect]]\ncommand = "x"\nservice = "db"',
      ["3:1 RL7203 There is only the service `main`: tasks made of several containers are not supported."],
    ],
    [
      "shared tests with a container",
      '[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1',
      ["2:1 RL7202 `shared` tests run in the agent's container and have no `environment`."],
    ],
    [
      "tests apart before the last step",
      '[verifier]\nenvironment_mode = "separate"\n[[steps]]\nname = "a"\n[[steps]]\nname = "b"',
      [
        "3:1 RL7203 Tests in a container of their own (`separate`) are supported for the last step only: the others run in the agent's.",
      ],
    ],
    ["artifact outside", 'artifacts = ["/a/../b"]', ["1:1 RL7202 The artifact `/a/../b` must not contain `..`."]],
  ])("%s is said where it stands", (_, toml, expected) => expect(said(toml)).toEqual(expected));

  test("a version that nobody knows loads; numbers may be texts; old spellings count", () => {
    const toml =
      '[environment]\nmemory = "1.5G"\nallow_internet = false\n[agent]\ntimeout_sec = "30"\n[metadata]\nx = 1';
    expect(read(`schema_version = "9.9"\n${toml}`)).toMatchObject({
      diagnostics: [],
      config: { environment: { memoryMb: 1536, network: "no-network" }, agent: { timeoutSec: 30 } },
    });
  });

  test("malformed TOML is placed at its line and column", () => {
    const { diagnostics } = loadTask(join(FIXTURES, "malformed-toml"), "malformed-toml");
    expect(diagnostics).toHaveLength(1);
    expect(diagnostics[0]).toMatchObject({
      code: "RL7202",
      range: { file: "malformed-toml/task.toml", start: { line: 12 } },
    });
  });
});

test("texts that are cut, doubled or mixed up are read or refused at a place of theirs, never an error (property)", () => {
  const lines = readFileSync(new URL("./every-field.toml", import.meta.url), "utf8").split("\n");
  const values = ["1", "-1", "nan", "true", '"x"', "[]", "{}", "[{}]", "1979-05-27", '"""', "\u0000"];
  const line = fc.oneof(
    fc.constantFrom(...lines),
    fc
      .tuple(fc.constantFrom(...lines), fc.constantFrom(...values))
      .map(([one, value]) => one.replace(/=.*/, `= ${value}`)),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 25 }), (some) => {
      const text = some.join("\n");
      const { config, diagnostics } = read(text);
      for (const { code, range } of diagnostics) {
        expect(code).toMatch(/^RL720[234]$/);
        expect(range?.start.line).toBeLessThanOrEqual(text.split("\n").length);
      }
      expect(config !== undefined || diagnostics.length > 0).toBe(true);
    }),
  );
});

test("where tests run: a step's own table before the task's, an image before a Dockerfile, else a copy of the environment", () => {
  const folder = join(scratch, "places");
  const place = (toml: string, index = 0) => {
    const { config, diagnostics } = read(toml);
    expect(diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    const found = verifierPlace(folder, config!, index);
    return found && [found.image ?? found.context.slice(folder.length + 1), found.environment.cpus, found.isBundled];
  };
  const steps = '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n';
  expect(place("")).toBeUndefined();
  expect(place('[environment]\ncpus = 3\n[verifier]\nenvironment_mode = "separate"')).toEqual([
    "environment",
    3,
    false,
  ]);
  expect(place('[environment]\ndocker_image = "i"\n[verifier.environment]\ncpus = 2')).toEqual(["i", 2, false]);
  expect(place('[verifier.environment]\ndocker_image = "v"\ncpus = 2')).toEqual(["v", 2, true]);
  const last = `${steps}[steps.verifier.environment]\ndocker_image = "s"\ncpus = 4\n`;
  expect([place(last, 0), place(last, 1)]).toEqual([undefined, ["s", 4, true]]);
  mkdirSync(join(folder, "steps/b/tests"), { recursive: true });
  writeFileSync(join(folder, "steps/b/tests/Dockerfile"), "FROM x\n");
  expect(place(last.replace('docker_image = "s"\n', ""), 1)).toEqual(["steps/b/tests", 4, true]);
});

describe("folders", () => {
  test("digests equal Harbor's", () => {
    const expected = JSON.parse(readFileSync(join(FIXTURES, "digests.json"), "utf8")) as Record<
      string,
      { task: string; files: readonly string[] }
    >;
    for (const [name, { task }] of Object.entries(expected).filter(
      ([, value]) => typeof value === "object" && "task" in value,
    ))
      expect([name, taskDigest(join(FIXTURES, name))]).toEqual([name, task]);
  });

  test("ignored files are not part of a digest, modes neither", () => {
    const folder = copy("hello-file", "ignored");
    const before = taskDigest(folder);
    mkdirSync(join(folder, "tests/__pycache__"));
    writeFileSync(join(folder, "tests/__pycache__/a.pyc"), "x");
    writeFileSync(join(folder, "tests/.harborignore"), "notes/\n");
    mkdirSync(join(folder, "tests/notes"));
    writeFileSync(join(folder, "tests/notes/a.txt"), "x");
    expect(taskFiles(folder)).not.toContain("tests/notes/a.txt");
    rmSync(join(folder, "tests/.harborignore"));
    rmSync(join(folder, "tests/notes"), { recursive: true });
    chmodSync(join(folder, "tests/test.sh"), 0o600);
    expect(taskDigest(folder)).toBe(before);
  });

  test("one task that cannot be loaded is left out, with its reason; alone it is an error", () => {
    const places = filterTasks(findTasks(FIXTURES), { include: ["hello-*", "malformed-*"], exclude: [] });
    const { tasks, diagnostics } = loadTasks(places, (folder) => folder.slice(FIXTURES.length));
    expect(tasks.map(({ name }) => name)).toEqual(["hello-file"]);
    expect(diagnostics.map(({ severity, code }) => [severity, code])).toEqual([["warning", "RL7202"]]);
    const alone = loadTasks(findTasks(join(FIXTURES, "malformed-toml")), (folder) => folder);
    expect(alone.diagnostics.map(({ severity }) => severity)).toEqual(["error"]);
  });

  test("a filter that leaves nothing says what there is", () => {
    const places = findTasks(FIXTURES);
    expect(() => filterTasks(places, { include: ["nope"], exclude: [] })).toThrow(/There are `broken-dockerfile`/);
    expect(filterTasks(places, { include: [], exclude: ["[a-g]*"], first: 2 }).map(({ name }) => name)).toEqual([
      "hanging-tests",
      "hello-file",
    ]);
  });

  test("tasks are found three levels down, in the layout of an export", () => {
    cpSync(join(FIXTURES, "hello-file"), join(scratch, "export/set/inner/hello-file"), { recursive: true });
    expect(findTasks(join(scratch, "export")).map(({ name }) => name)).toEqual(["hello-file"]);
    expect(() => findTasks(join(scratch, "nowhere"))).toThrow(/RL7206/);
  });

  test.each([
    [
      "a link out of the task",
      (folder: string) => symlinkSync("/etc/hostname", join(folder, "tests/host")),
      /RL7201.*leads out of the task/,
    ],
    ["a link to nothing", (folder: string) => symlinkSync("nothing", join(folder, "tests/x")), /RL7201.*leads nowhere/],
    ["no tests", (folder: string) => rmSync(join(folder, "tests"), { recursive: true }), /RL7201.*no tests\/test\.sh/],
    [
      "compose",
      (folder: string) => writeFileSync(join(folder, "environment/docker-compose.yaml"), ""),
      /RL7203.*several containers/,
    ],
    ["a seed", (folder: string) => writeFileSync(join(folder, "trajectory.json"), "{}"), /RL7203.*conversation/],
  ])("%s is refused", (name, change, pattern) => {
    const folder = copy("hello-file", `refused-${name.replaceAll(" ", "-")}`);
    change(folder);
    const { task, diagnostics } = loadTask(folder);
    expect(task).toBeUndefined();
    expect(diagnostics.map(({ code, detail }) => `${code} ${detail}`).join("\n")).toMatch(pattern);
  });

  test("steps have their instruction, tests over the shared ones, and their own solution", () => {
    const { task } = loadTask(join(FIXTURES, "multi-step"));
    const shown = task?.steps.map(({ instruction: _, ...step }) => JSON.stringify(step).replaceAll(FIXTURES, ""));
    expect(shown).toMatchSnapshot();
  });
});

test("canary lines go from the top only", () => {
  const text = "<!-- x CANARY y -->\n# a canary\n\n\nDo it.\n<!-- canary -->\n";
  expect(withoutCanary(text)).toBe("Do it.\n<!-- canary -->\n");
  expect(withoutCanary("\nDo it.")).toBe("\nDo it.");
});

test("only whole values are templates; set but empty counts as set", () => {
  const table = { A: "${X}", B: "a${X}b", C: "$X", D: "${NO:-a}b}", E: "${EMPTY:-d}", F: "${NO}", G: "${NO:-}" };
  expect(resolveEnv(table, { X: "secret-x", EMPTY: "" })).toEqual({
    env: { A: "secret-x", B: "a${X}b", C: "$X", D: "a}b", E: "", G: "" },
    missing: ["NO"],
    secrets: ["secret-x"],
  });
  expect(maskSecrets("a secret-x b secret-xy", ["secret-x", "secret-xy", "b"])).toBe("a *** b ***");
});

test("of a secret that an output was cut through no piece is left, and a fault tells none", () => {
  const secret = "sk-0123456789";
  const cut = "\n[… 12 bytes left out …]\n";
  expect(maskSecrets(`token sk-0123${cut}6789 end ${secret}`, [secret])).toBe(`token ***${cut}*** end ***`);
  expect(maskSecrets(`token sk-${cut}789 end`, [secret])).toBe(`token sk-${cut}789 end`);
  expect(maskSecrets("token sk-0123", [secret])).toBe("token sk-0123");
  const fault = new RlcliError(diagnostic("RL7305", `They said ${secret}.`));
  expect(withoutSecrets(fault, [secret]).message).toBe("RL7305: They said ***.");
  expect(withoutSecrets(fault, ["another one"])).toBe(fault);
});

function copy(task: string, name: string): string {
  const folder = join(scratch, name);
  cpSync(join(FIXTURES, task), folder, { recursive: true });
  return folder;
}
