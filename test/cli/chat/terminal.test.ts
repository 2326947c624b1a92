/** The real program on a real terminal. Needs a Python 3 for its pseudo-terminal; skipped by name where there is none. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { cacheFolder } from "../../servers/embedded/server.ts";
import { startPolicyServer } from "../../support/policy-server.ts";
import { hasTerminal, type Keys, program, typeAt } from "../../support/terminal.ts";

async function onTerminal(args: readonly string[], keys: readonly Keys[]) {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-chat-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const env = { RLCLI_CACHE: cacheFolder, NO_COLOR: "1", CI: undefined };
  return typeAt([process.execPath, program, ...args], keys, { cwd: folder, env });
}

test.skipIf(!hasTerminal)(
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
      ["> ", '"""taken back\\r'],
      ["… ", "of course\\x03"],
      ["> ", "three\\r"],
      ["third", ""],
      ["> ", "\\x03"],
      ["Ctrl-D", ""],
      ["> ", "\\x04"],
    ]);
    expect(shown).not.toContain("never shown");
    expect(shown).not.toContain("never ends");
    expect(policy.prompts.join()).not.toContain("taken back");
    expect(code, shown).toBe(0);
  },
);
