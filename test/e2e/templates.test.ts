/** Each template of `rlcli init` to a green apply on the embedded server, as a new user would. Those that learn from rewards take minutes. */
import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, test } from "vitest";
import { findDocker } from "../support/docker.ts";
import { TestProject } from "./project.ts";

const isAll = Boolean(process.env.RLCLI_TEST_ALL);
const docker = isAll ? await findDocker() : undefined;
const SLOW_MS = 1_800_000;

let project: TestProject | undefined;
afterEach(async () => {
  await project?.close();
});

function started(template: string): TestProject {
  project = new TestProject({});
  project.ok("init", ".", "--template", template);
  return project;
}

describe.each(["quickstart", "sft-from-traces"])("%s", (template) => {
  test("applies, and the model answers", () => {
    const made = started(template);
    const out = made.ok("apply", "--auto-approve");
    expect(out).toContain("Apply complete:");
    expect(made.actions()).toEqual({});
    expect(made.record("run.assistant").results).toMatchObject({ step: expect.any(Number) });
    expect(made.ok("sample", "assistant", "--prompt", "hello", "--max-tokens", "4")).not.toBe("");
  }, 300_000);
});

test.runIf(isAll)(
  "gsm8k-gspo: rewards rise, the eval passes, the deployment moves",
  () => {
    const made = started("gsm8k-gspo");
    const out = made.ok("apply", "--auto-approve");
    expect(out).toContain("Apply complete: 7 done.");
    expect(made.record("eval.problems").results).toMatchObject({ passed: true });
    expect(made.record("deployment.best").results).toMatchObject({ run: "run.agent", step: 10 });
  },
  SLOW_MS,
);

test.runIf(docker !== undefined)(
  "harbor-agent: tasks are checked, and tests in containers train it",
  () => {
    const made = started("harbor-agent");
    expect(spawnSync("bash", ["make-image"], { cwd: made.folder }).status).toBe(0);
    made.ok("env", "check");
    expect(made.ok("apply", "--auto-approve")).toContain("Apply complete:");
    expect(made.record("run.agent").results).toMatchObject({ step: 8 });
  },
  SLOW_MS,
);
