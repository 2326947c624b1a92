/** The real program on a real terminal. Needs a Python 3 for its pseudo-terminal; skipped by name where there is none. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { cacheFolder } from "../../servers/embedded/server.ts";
import { startPolicyServer } from "../../support/policy-server.ts";

const program = fileURLToPath(new URL("../../../bin/rlcli.js", import.meta.url));
const driver = fileURLToPath(new URL("terminal.py", import.meta.url));
const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

async function onTerminal(args: readonly string[], keys: readonly (readonly [string, string])[]) {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-chat-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const child = spawn("python3", [driver, process.execPath, program, ...args], {
    cwd: folder,
    env: { ...process.env, RLCLI_CACHE: cacheFolder, NO_COLOR: "1", TERM: "xterm", CI: undefined },
  });
  child.stdin.end(keys.map(([wait, typed]) => `${wait}\t${typed}\n`).join(""));
  let shown = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, shown };
}

test.skipIf(!hasPython)(
  "a conversation: an answer, one that Ctrl-C ends, another, Ctrl-C at the prompt, Ctrl-D",
  async () => {
    const policy = await startPolicyServer({
      // A piece at a time; the second question's answer hangs after its first piece.
      answer: (prompt) => {
        const begun = prompt.slice(prompt.lastIndexOf("<|im_start|>assistant\n") + "<|im_start|>assistant\n".length);
        const said = prompt.includes("three") ? "third" : prompt.includes("two") ? "second, which never ends" : "first";
        return said.slice(begun.length);
      },
      codec: await (await import("../../chat/model.ts")).tinyCodec(),
    });
    const holds = (text: string, words: string) => text.includes([...Buffer.from(words)].join(","));
    policy.server.fault = ({ path, text }) =>
      path === "/asample" && holds(text, "second, ") && !holds(text, "three") ? { type: "hang" } : undefined;
    onTestFinished(() => policy.stop());
    const where = ["sample", "--base-url", policy.url, "--model", "builtin:tiny", "--temperature", "0"];
    const { code, shown } = await onTerminal(where, [
      ["> ", "one\\r"],
      ["first", ""],
      ["> ", "two\\r"],
      ["second, ", "\\x03"],
      ["(ended)", ""],
      ["> ", "three\\r"],
      ["third", ""],
      ["> ", "\\x03"],
      ["Ctrl-D", ""],
      ["> ", "\\x04"],
    ]);
    expect(shown).not.toContain("never shown");
    expect(shown).not.toContain("never ends");
    expect(code, shown).toBe(0);
  },
);
