import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { askYes } from "../../src/cli/confirm.ts";

async function ask(answer: string): Promise<{ isAgreed: boolean; shown: string }> {
  const stdin = new PassThrough();
  const stderr = new PassThrough();
  const asked = askYes("Go on? ", { stdin, stderr });
  stdin.end(answer);
  const isAgreed = await asked;
  return { isAgreed, shown: String(stderr.read()) };
}

test.each([
  ["yes\n", true],
  [" yes \r\n", true],
  ["y\n", false],
  ["YES\n", false],
  ["\n", false],
  // Without an end of line nothing was confirmed.
  ["", false],
])("%j is %s", async (answer, expected) => {
  const { isAgreed, shown } = await ask(answer);
  expect(isAgreed).toBe(expected);
  expect(shown).toMatch(/^Go on\? /);
});

test("a prompt that is interrupted is a no", async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} });
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  const asked = askYes("Go on? ", { stdin, stderr });
  stdin.write("\u0003");
  expect(await asked).toBe(false);
});
