import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { loadSpec } from "../../src/config/load.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-cache-"));
  mkdirSync(join(folder, "cache"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const BASE = `rlcli: 1
project: p
server: { backend: embedded, model: builtin:tiny }
datasets: { d: { import: { format: openai, from: ["a.jsonl", b.jsonl], limit: 5 } } }
runs:
  r: { type: sl, dataset: d, learning_rate: 1e-4, template_kwargs: { deep: { list: [1, null, true, "x"] } } }
`;

async function load(text: string, { version = "1", cached = true } = {}) {
  writeFileSync(join(folder, "rlcli.yaml"), text);
  const cache = cached ? { cache: { folder: join(folder, "cache"), version } } : {};
  const { spec, diagnostics } = await loadSpec({
    files: ["rlcli.yaml"],
    variables: {},
    variableFiles: [],
    env: {},
    cwd: folder,
    ...cache,
  });
  const nodes = [...(spec?.nodes.values() ?? [])].map((node) => ({
    address: node.address,
    body: node.body,
    attributes: [...node.attributes],
    references: node.references,
    range: node.range,
    places: [...node.attributes.keys()].map((path) => node.rangeOf(path)),
  }));
  return { project: spec?.project, inputs: spec?.inputs, nodes, diagnostics };
}

const files = () => readdirSync(join(folder, "cache"));

describe("the cache of parsed files", () => {
  test("a second load is the same to the last place, and comes from the file", async () => {
    const fresh = await load(BASE, { cached: false });
    const first = await load(BASE);
    expect(files()).toHaveLength(1);
    expect(first).toEqual(fresh);
    expect(await load(BASE)).toEqual(fresh);
    // It is really read: what stands in it is what comes out.
    const [name] = files();
    const path = join(folder, "cache", name!);
    writeFileSync(path, readFileSync(path, "utf8").replace('"p"', '"other"'));
    expect((await load(BASE)).project).toBe("other");
  });

  test("another text, another version and a damaged file are parsed again", async () => {
    await load(BASE);
    expect((await load(BASE.replace("project: p", "project: q"))).project).toBe("q");
    const path = join(folder, "cache", files()[0]!);
    writeFileSync(path, "{ torn");
    expect((await load(BASE)).nodes).toHaveLength(3);
    expect((await load(BASE, { version: "2" })).nodes).toHaveLength(3);
  });

  test("a file with faults, and one with aliases, are not remembered", async () => {
    await load(`${BASE}  r: { type: sl }\n`);
    await load(
      BASE.replace("learning_rate: 1e-4", "optimizer: &o { beta1: 0.9 }")
        .replace("runs:", "runs:\n  q: { type: sl, dataset: d, optimizer: *o }")
        .replace("&o ", ""),
    );
    await load(BASE.replace("runs:\n  r:", "runs:\n  q: &r { type: sl, dataset: d }\n  s: *r\n  r:"));
    expect(files()).toEqual([]);
  });

  test("a file with a secret in the open is not remembered: there would be a copy of it", async () => {
    await load(BASE.replace("builtin:tiny }", "builtin:tiny, api_key: hunter2 }"));
    await load(`${BASE}environments: { e: { type: http, dataset: d, url: "http://h/?token=hunter2" } }\n`);
    expect(files()).toEqual([]);
  });

  test("without its folder nothing is made; old entries go", async () => {
    rmSync(join(folder, "cache"), { recursive: true });
    await load(BASE);
    expect(existsSync(join(folder, "cache"))).toBe(false);
    mkdirSync(join(folder, "cache"));
    for (let at = 0; at < 12; at++) await load(BASE.replace("limit: 5", `limit: ${at + 1}`));
    expect(files().length).toBeLessThanOrEqual(8);
  });

  test("whatever a free map holds comes back the same (property)", async () => {
    const leaf = fc.oneof(
      fc.string(),
      fc.double({ noDefaultInfinity: true, noNaN: true }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
    );
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.array(tie("node"), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie("node"), { maxKeys: 3 }),
      ),
    })).node;
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string({ minLength: 1 }), tree, { maxKeys: 4 }), async (map) => {
        const text = stringify({
          rlcli: 1,
          project: "p",
          server: { backend: "embedded", model: "builtin:tiny" },
          datasets: { d: { source: "a" } },
          runs: { r: { type: "sl", dataset: "d", template_kwargs: map } },
        });
        const fresh = await load(text, { cached: false });
        await load(text);
        expect(await load(text)).toEqual(fresh);
      }),
      { numRuns: 100 },
    );
  });
});
