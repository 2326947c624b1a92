import { expect, test } from "vitest";
import { loadCase, readCases } from "./cases.ts";

test("a secret in the open is in no diagnostic", async () => {
  const { diagnostics } = await loadCase(readCases().find((c) => c.name === "secret-masked")!);
  expect(diagnostics.length).toBeGreaterThan(5);
  expect(JSON.stringify(diagnostics)).not.toMatch(/hunter2|31337/);
});
