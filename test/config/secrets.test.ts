import { expect, test } from "vitest";
import { loadCase, readCases } from "./cases.ts";

test("nor is one in an address of a line that is no YAML", async () => {
  const { diagnostics } = await loadCase(readCases().find((c) => c.name === "secret-syntax")!);
  expect(diagnostics[0]?.sourceLine).toContain('"https://*');
  expect(JSON.stringify(diagnostics)).not.toContain("hunter2");
});

test("a secret in the open is in no diagnostic", async () => {
  const { diagnostics } = await loadCase(readCases().find((c) => c.name === "secret-masked")!);
  expect(diagnostics.length).toBeGreaterThan(5);
  expect(JSON.stringify(diagnostics)).not.toMatch(/hunter2|31337/);
});
