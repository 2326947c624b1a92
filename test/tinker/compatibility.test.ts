// docs/compatibility.md says what the code does: its tables are compared with the description of each kind of server, and
// with the routes of the embedded one.
import { readFileSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SERVER_TRAITS, type ServerKind, type ServerTraits } from "../../src/tinker/index.ts";
import { startTestServer, type TestServer } from "../servers/embedded/server.ts";

const page = readFileSync(new URL("../../docs/compatibility.md", import.meta.url), "utf8");
const KINDS: ServerKind[] = ["embedded", "hosted", "skyrl-jax", "skyrl-fsdp", "skyrl-megatron"];

/** Rows of the table whose head begins with a word, as cells. */
function tableOf(head: string): string[][] {
  const lines = page.split("\n");
  const start = lines.findIndex((line) => line.startsWith(`| ${head} |`));
  const end = lines.findIndex((line, i) => i > start && !line.startsWith("|"));
  return lines.slice(start + 2, end).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

test("losses", () => {
  const rows = tableOf("loss");
  KINDS.forEach((kind, i) => {
    const listed = rows.filter((row) => row[i + 1] === "●").map(([name]) => name!);
    expect(listed.sort(), kind).toEqual([...SERVER_TRAITS[kind].losses].sort());
  });
});

test("traits", () => {
  const fields: Record<string, keyof ServerTraits> = {
    reduction: "reduction",
    "rl weights": "readsRlWeights",
    "any targets": "scoresAnyTargets",
    "implicit stop": "stopsAtEndOfSequence",
    samplers: "samplers",
    "clears gradients": "clearsGradients",
    "fails batches": "failsBatches",
    "full training": "trainsFully",
    "chooses layers": "choosesLayers",
  };
  const rows = tableOf("trait");
  expect(rows.map(([name]) => name).sort()).toEqual(Object.keys(fields).sort());
  for (const [name, ...cells] of rows) {
    const values = KINDS.map((kind) => SERVER_TRAITS[kind][fields[name!]!]);
    expect(cells, name).toEqual(values.map((v) => (typeof v === "boolean" ? (v ? "yes" : "no") : v)));
  }
});

test("ignored optimizer settings", () => {
  const words = KINDS.map((kind) => [kind.replace("skyrl-", ""), SERVER_TRAITS[kind].ignoredAdam.join(", ") || "none"]);
  expect(tableOf("server")).toEqual(words);
});

describe("endpoints of the embedded server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer();
  });
  afterAll(async () => {
    await server.server.close();
    rmSync(server.folder, { recursive: true, force: true });
  });
  test.each(tableOf("endpoint"))("%s: %s", async (endpoint, mark) => {
    const [method, template] = endpoint!.split(" ") as [string, string];
    const path = template.replace("{kind}", "weights").replace(/\{\w+\}/g, "none");
    const { status, body } = await server.call(method, path, method === "GET" ? undefined : {});
    const words = String(body?.detail);
    const isMissing = status === 405 || (status === 404 && /^not found/i.test(words)) || /does not support/.test(words);
    expect(isMissing, `${status} ${JSON.stringify(body)}`).toBe(mark === "—");
  });
});
