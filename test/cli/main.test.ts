/** The command line as a user meets it: the bundle in a process of its own. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const RLCLI = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

const folder = mkdtempSync(join(tmpdir(), "rlcli-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SPEC = `rlcli: 1
project: demo
variables:
  steps: { type: integer, default: 3 }
server: { backend: embedded, model: builtin:tiny }
datasets:
  rows: { source: rows.jsonl }
runs:
  a: { type: sl, dataset: rows, steps: "\${var.steps}" }
`;

beforeAll(() => {
  writeFileSync(join(folder, "rlcli.yaml"), SPEC);
  writeFileSync(join(folder, "broken.yaml"), SPEC.replace("dataset: rows", "dataset: row"));
  mkdirSync(join(folder, "sub"));
});

interface Ran {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

async function rlcli(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const options = { cwd: folder, reject: false, env: { NO_COLOR: undefined, FORCE_COLOR: undefined, ...env } } as const;
  const { exitCode, stdout, stderr } = await execa(process.execPath, [RLCLI, ...args], options);
  return { exitCode, stdout, stderr };
}

describe("version and help", () => {
  test.each([[["--version"]], [["-V"]], [["--no-color", "--version"]]])("%j", async (args) => {
    expect(await rlcli(args)).toEqual({ exitCode: 0, stdout: version, stderr: "" });
  });

  test.each([[[]], [["--help"]], [["-h"]]])("%j prints the commands", async (args) => {
    const { exitCode, stdout, stderr } = await rlcli(args);
    expect(exitCode).toBe(0);
    expect(stderr).toBe("");
    for (const command of ["init", "validate", "explain"]) expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, "m"));
  });

  test("a command's help names its options and the global ones", async () => {
    const { exitCode, stdout } = await rlcli(["validate", "--help"]);
    expect(exitCode).toBe(0);
    for (const option of ["--file", "--var ", "--var-file", "--json", "--chdir"]) expect(stdout).toContain(option);
  });
});

describe("validate", () => {
  test("a sound spec", async () => {
    expect(await rlcli(["validate"])).toEqual({
      exitCode: 0,
      stdout: "Valid: 3 blocks (1 server, 1 dataset, 1 run) in project demo.",
      stderr: "",
    });
  });

  test("a faulty spec: diagnostics on stderr, exit code 1", async () => {
    const { exitCode, stdout, stderr } = await rlcli(["validate", "-f", "broken.yaml"]);
    expect(exitCode).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain("error[RL1201]: Unknown reference\n --> broken.yaml:9:27 (run.a)");
    expect(stderr).toContain("Did you mean `rows`?");
    expect(stderr).toMatch(/\n1 error; `rlcli explain RL1201` says more$/);
  });

  test("--json puts all of it on stdout", async () => {
    const { exitCode, stdout, stderr } = await rlcli(["validate", "-f", "broken.yaml", "--json"]);
    expect(exitCode).toBe(1);
    expect(stderr).toBe("");
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ formatVersion: 1, valid: false });
    expect(result.diagnostics[0]).toMatchObject({ code: "RL1201", range: { file: "broken.yaml", start: { line: 9 } } });
  });

  test("variables, from the command line over the environment", async () => {
    const bad = await rlcli(["validate"], { RLCLI_VAR_steps: "many" });
    expect(bad.exitCode).toBe(1);
    expect(bad.stderr).toContain("RLCLI_VAR_steps sets it to `many`");
    const good = await rlcli(["validate", "--var", "steps=4"], { RLCLI_VAR_steps: "many" });
    expect(good.exitCode).toBe(0);
  });

  test("--chdir", async () => {
    expect((await rlcli(["-C", "sub", "validate", "-f", "../rlcli.yaml"])).exitCode).toBe(0);
    const nowhere = await rlcli(["-C", "nowhere", "validate"]);
    expect(nowhere.exitCode).toBe(1);
    expect(nowhere.stderr).toContain("error[RL9006]");
  });

  test("colour follows FORCE_COLOR, NO_COLOR and --no-color", async () => {
    const args = ["validate", "-f", "broken.yaml"];
    expect((await rlcli(args)).stderr).not.toContain("\u001b[");
    expect((await rlcli(args, { FORCE_COLOR: "1" })).stderr).toContain("\u001b[31m");
    expect((await rlcli([...args, "--no-color"], { FORCE_COLOR: "1" })).stderr).not.toContain("\u001b[");
  });
});

describe("wrong use", () => {
  test.each<[string, string[], string, string]>([
    ["a misspelt command", ["valdate"], "RL9001", "Did you mean `validate`?"],
    ["a misspelt option", ["validate", "--fille", "x"], "RL9002", "Did you mean `--file`?"],
    [
      "an option of another command",
      ["train", "harbor", "--tasks", "x"],
      "RL9002",
      "`rlcli train harbor` has no option",
    ],
    ["an option before its command", ["-f", "x", "validate"], "RL9002", "write it after `validate`"],
    ["an option without its value", ["validate", "--var"], "RL9003", "argument missing"],
    ["a group of commands alone", ["serve"], "RL9003", "needs a command after it"],
    ["a misspelt command of a group", ["serve", "stat"], "RL9001", "`rlcli serve` has no command `stat`"],
    ["an argument too many", ["validate", "x"], "RL9003", "takes no arguments"],
    ["a variable without a value", ["validate", "--var", "steps"], "RL9003", "NAME=VALUE"],
    ["an unknown topic", ["explain", "run.lerning_rate"], "RL9005", "Did you mean"],
    ["an unknown code", ["explain", "RL1999"], "RL9005", "diagnostic code"],
    ["a number out of range", ["apply", "--parallelism", "0"], "RL9003", "at least 1. `rlcli apply --help`"],
    ["no port", ["serve", "openai", "--port", "99999"], "RL9003", "from 0 to 65535"],
    ["a share above 1", ["sample", "a", "--prompt", "x", "--top-p", "2"], "RL9003", "at most 1"],
    ["steps and epochs", ["train", "sl", "--dataset", "x", "--steps", "1", "--epochs", "1"], "RL9003", "--epochs"],
    ["a run and the base model", ["sample", "a", "--base", "--prompt", "x"], "RL9003", "--base"],
    ["no path of a checkpoint", ["sample", "--checkpoint", "x", "--prompt", "x"], "RL9003", "checkpoint list"],
    ["a run not started", ["sample", "a", "--prompt", "x"], "RL9009", "has not been trained"],
    ["a command as a topic", ["explain", "plan"], "RL9005", "It is a command: `rlcli plan --help`"],
    ["help for a misspelt command", ["help", "paln"], "RL9005", "Did you mean `plan`?"],
    [
      "a model that is not there",
      ["sample", "agent", "--prompt", "x"],
      "RL9009",
      "There is no run.agent. There is `run.a`.",
    ],
    ["a deployment that is not there", ["rollback", "x"], "RL9009", "There is no deployment.x."],
    ["questions that are not there", ["sample", "a", "--input", "nope.jsonl"], "RL9009", "nope.jsonl does not exist."],
    ["questions in a folder", ["sample", "a", "--input", "sub"], "RL9009", "sub is a folder."],
    ["a run that is not there", ["logs", "agent"], "RL9009", "There is no run `agent`. There is `run.a`."],
    ["logs of a run not started", ["logs", "a"], "RL9009", "has not been started"],
    ["checkpoints of a run that is not there", ["checkpoint", "list", "b"], "RL9009", "There is no run `b`"],
    ["options of a plan that was made", ["apply", "plan.bin", "--target", "run.a"], "RL9003", "was decided when"],
    ["a replacement and the end", ["plan", "--destroy", "--replace", "run.a"], "RL9003", "--replace"],
    ["an unknown template", ["init", "new", "--template", "quikstart"], "RL9003", "Did you mean `quickstart`?"],
  ])("%s", async (_, args, code, words) => {
    const { exitCode, stdout, stderr } = await rlcli(args);
    expect(exitCode).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain(`error[${code}]`);
    expect(stderr.replace(/\s+/g, " ")).toContain(words);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("as JSON", async () => {
    const { exitCode, stdout } = await rlcli(["--json", "validate", "--fille"]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout).diagnostics[0].code).toBe("RL9002");
  });
});

describe("explain", () => {
  test.each([["run.learning_rate"], ["run"], ["spec"], ["RL1101"], ["server.port"], ["loss.beta"], ["run.schedule"]])(
    "%s",
    async (topic) => {
      const { exitCode, stdout } = await rlcli(["explain", topic]);
      expect(exitCode).toBe(0);
      await expect(`${stdout}\n`).toMatchFileSnapshot(`../golden/explain/${topic}.txt`);
    },
  );

  test("plurals, addresses and case lead to the same", async () => {
    const field = (await rlcli(["explain", "run.learning_rate"])).stdout;
    expect((await rlcli(["explain", "runs.learning_rate"])).stdout).toBe(field);
    expect((await rlcli(["explain", "run.agent.learning_rate"])).stdout).toBe(field);
    expect((await rlcli(["explain", "rl1101"])).stdout).toBe((await rlcli(["explain", "RL1101"])).stdout);
  });

  test("as JSON", async () => {
    const { stdout } = await rlcli(["explain", "run.learning_rate", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      formatVersion: 1,
      block: "run",
      path: "learning_rate",
      default: 0.0001,
      change: "replace",
    });
  });
});

describe("the frame", () => {
  test("a reader that goes away is no fault", async () => {
    const { exitCode, stderr } = await execa(
      "sh",
      [
        "-c",
        '"$0" "$1" explain run | true; "$0" "$1" validate --json -f broken.yaml | head -c 1 >&2',
        process.execPath,
        RLCLI,
      ],
      { cwd: folder, reject: false },
    );
    expect(exitCode).toBe(0);
    expect(stderr).toBe("{");
  });

  test.runIf(existsSync("/dev/full"))("a result that cannot be written is a fault", async () => {
    const { exitCode, stderr } = await execa("sh", ["-c", '"$0" "$1" validate > /dev/full', process.execPath, RLCLI], {
      cwd: folder,
      reject: false,
    });
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error[RL9007]");
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("a current folder that is gone", async () => {
    mkdirSync(join(folder, "gone"));
    const { exitCode, stderr } = await execa(
      "sh",
      ["-c", 'cd gone && rmdir ../gone && "$0" "$1" validate', process.execPath, RLCLI],
      { cwd: folder, reject: false },
    );
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error[RL9006]");
  });
});

describe("where there is no spec, a command that can do without says how", () => {
  test.each([
    [["sample", "--prompt", "x"], "Without a spec, give --model builtin:tiny or --base-url URL."],
    [["serve", "start"], "Without a spec, give --base-model builtin:tiny."],
    [["env", "check"], "Without a spec, give the tasks: `rlcli env check ./tasks`."],
  ])("%j", async (args, words) => {
    const { exitCode, stderr } = await rlcli(["-C", "/", ...args]);
    expect([exitCode, stderr.replaceAll(/\s+/g, " ")]).toEqual([1, expect.stringContaining(words)]);
  });

  test("one that cannot does not", async () => {
    const { stderr } = await rlcli(["-C", "/", "plan"]);
    expect(stderr).toContain("RL1001");
    expect(stderr).not.toContain("Without a spec");
  });

  test.each([
    [["state", "push", "nowhere.json"], "There is no file nowhere.json."],
    [["apply", "nowhere.bin"], "The plan nowhere.bin does not exist."],
  ])("a file that is missing is said to be: %j", async (args, words) => {
    const { stderr } = await rlcli(["-C", "/", ...args]);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain("ENOENT");
  });
});
