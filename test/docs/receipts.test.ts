/** Numbers in the README are those of the receipts that it links. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const root = new URL("../..", import.meta.url);
const readme = readFileSync(new URL("README.md", root), "utf8");
const receipt = (name: string) => JSON.parse(readFileSync(new URL(`benchmarks/results/${name}.json`, root), "utf8"));

/** The row of the comparison that links a receipt. */
const row = (name: string): string =>
  readme.split("\n").find((line) => line.startsWith("|") && line.includes(`benchmarks/results/${name}.json`)) ?? "";

test("a step beside tinker-cookbook", () => {
  const { batches } = receipt("client-skyrl");
  const [small] = batches.filter(({ server }: { server: string }) => server === "skyrl");
  const large = batches.at(-1);
  for (const who of ["rlcli", "cookbook"]) {
    const { seconds, clientSeconds } = small[who];
    expect(row("client-skyrl")).toContain(`${seconds.toFixed(2)} s, of it ${clientSeconds.toFixed(2)} s in the client`);
    expect(row("client-skyrl")).toContain(`; ${large[who].clientSeconds.toFixed(2)} s with the larger`);
  }
  expect(row("client-skyrl")).toContain(`${large.groups} tasks, ${large.maxTokens} tokens`);
});

test("the embedded server beside SkyRL", () => {
  const { embedded, skyrl } = receipt("skyrl");
  expect(row("skyrl")).toContain(`embedded: ${embedded.endToEnd.toFixed(2)} s`);
  expect(row("skyrl")).toContain(`jax: ${skyrl.endToEnd.toFixed(2)} s`);
});

test("the import beside the predecessor's", () => {
  const { bytes, variants } = receipt("import");
  const seconds = (name: string): string =>
    variants.find((one: { name: string }) => one.name === name).medianSeconds.toFixed(1);
  expect(row("import")).toContain(`import of ${Math.round(bytes / 1e6)} MB of logs`);
  expect(row("import")).toContain(`| ${seconds("rlcli import")} s | ${seconds("Python importer")} s`);
});

test("the size of an install", () => {
  expect(row("package")).toContain(`${Math.round(receipt("package").withoutOptional.megabytesOnDisk)} MB`);
});
