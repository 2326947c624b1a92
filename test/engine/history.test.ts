import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { recordEvents } from "../../src/engine/history.ts";

const AT = "2026-01-01T00:00:00.000Z";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-history-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("an apply has a file with its events, but not those of its runs", () => {
  const folder = newFolder();
  const history = recordEvents(folder);
  history.append({ type: "change.start", at: AT, address: "run.a", action: "create" });
  history.append({ type: "change.run", at: AT, address: "run.a", event: { t: "phase", phase: "training", at: AT } });
  history.close();
  const [name] = readdirSync(join(folder, "applies"));
  const lines = readFileSync(join(folder, "applies", name!), "utf8")
    .trim()
    .split("\n");
  expect(lines.map((line) => JSON.parse(line).type)).toEqual([undefined, "change.start"]);
});

test("a history that cannot be written does not keep an apply from its work", () => {
  const folder = newFolder();
  writeFileSync(join(folder, "applies"), "");
  const history = recordEvents(folder);
  for (let i = 0; i < 2; i++) history.append({ type: "change.start", at: AT, address: "run.a", action: "create" });
  history.close();
});
