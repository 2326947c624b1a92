import { Command, CommanderError } from "commander";
import { afterEach, expect, test, vi } from "vitest";
import { createContext } from "../../src/cli/context.ts";
import { bugReport, handleThrown } from "../../src/cli/failure.ts";
import { diagnostic, RlcliError } from "../../src/diagnostic.ts";

const program = new Command("rlcli");
program.command("plan");
program.command("apply");

afterEach(() => vi.restoreAllMocks());

/** What is written while a thrown value is handled. */
function handle(error: unknown): { code: number; text: string } {
  let text = "";
  vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  const context = () => createContext({ color: false }, new AbortController().signal);
  return {
    code: handleThrown(error, { program, argv: ["plan", "--var=key=hunter2"], context }),
    text,
  };
}

test("a bug says that it is one, with version, command and stack, and exits with 70", () => {
  const { code, text } = handle(new TypeError("x is not a function"));
  expect(code).toBe(70);
  expect(text).toContain("This is a bug in rlcli");
  expect(text).toContain("command: rlcli plan --var\n");
  expect(text).toContain("TypeError: x is not a function\n    at ");
});

test("a report repeats no values", () => {
  const argv = ["apply", "--var", "key=hunter2", "--target=run.a", "/home/me/secret.yaml", "-f", "hunter", "-phunter2"];
  expect(bugReport(new Error("no"), argv, program)).toContain("command: rlcli apply --var … --target … -f … -p\n");
  expect(bugReport(new Error("no"), argv, program)).not.toContain("hunt");
});

test("anything may be thrown", () => {
  expect(bugReport("words", [], program)).toContain("words");
  expect(bugReport(undefined, [], program)).toContain("undefined");
});

test("a user's fault is a diagnostic without a stack", () => {
  const { code, text } = handle(new RlcliError(diagnostic("RL1001", "There is no file.")));
  expect(code).toBe(1);
  expect(text).toBe("error[RL1001]: File cannot be read\n  There is no file.\n\n`rlcli explain RL1001` says more.\n");
});

test("what the file system refuses is no bug", () => {
  const error = Object.assign(new Error("EACCES: permission denied, mkdir '/x'"), { code: "EACCES", syscall: "mkdir" });
  const { code, text } = handle(error);
  expect(code).toBe(1);
  expect(text).toContain("error[RL9010]");
  expect(text).toContain("mkdir '/x'");
  expect(handle(Object.assign(new Error("x"), { code: "EACCES" })).code).toBe(70);
});

test("help is no fault", () => {
  expect(handle(new CommanderError(0, "commander.helpDisplayed", ""))).toEqual({ code: 0, text: "" });
});
