/** The normalised form: complete, frozen, and itself a spec that means the same. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { BLOCK_KEYS } from "../../src/address.ts";
import { escapeInterpolation } from "../../src/config/interpolate.ts";
import { loadSpec } from "../../src/config/load.ts";
import type { Spec } from "../../src/spec.ts";
import { isSecret } from "../../src/value.ts";
import { loadCase, readCases } from "./cases.ts";

const folder = mkdtempSync(join(tmpdir(), "rlcli-normalise-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function load(text: string): Promise<Spec> {
  writeFileSync(join(folder, "rlcli.yaml"), text);
  const { spec, diagnostics } = await loadSpec({
    files: ["rlcli.yaml"],
    variables: {},
    variableFiles: [],
    env: {},
    cwd: folder,
  });
  expect(diagnostics).toEqual([]);
  return spec!;
}

/** The bodies as a spec; a text that looks like a reference is escaped. */
function written(spec: Spec): string {
  const file: Record<string, any> = { rlcli: 1, project: spec.project };
  for (const { kind, name, body } of spec.nodes.values()) {
    file[BLOCK_KEYS[kind]] ??= {};
    file[BLOCK_KEYS[kind]][name] = JSON.parse(JSON.stringify(body), (_, value) =>
      isSecret(value) ? `\${secret.${value.$secret}}` : typeof value === "string" ? escapeInterpolation(value) : value,
    );
  }
  return stringify(file);
}

const valid = readCases().filter((c) => c.name.startsWith("valid-"));

describe.each(valid)("$name", (testCase) => {
  test("written out and read again, every block is the same", async () => {
    const { spec } = await loadCase(testCase);
    const again = await load(written(spec!));
    expect([...again.nodes.keys()].sort()).toEqual([...spec!.nodes.keys()].sort());
    for (const [address, node] of spec!.nodes) {
      const other = again.nodes.get(address)!;
      expect(JSON.parse(JSON.stringify(other.body))).toEqual(JSON.parse(JSON.stringify(node.body)));
      expect([...other.attributes]).toEqual([...node.attributes]);
      expect(other.references).toEqual(node.references);
    }
  });
});

const SPEC = `rlcli: 1
project: demo
servers:
  tiny: { backend: embedded, model: builtin:tiny }
  big: { backend: jax, model: Qwen/Qwen3-4B }
datasets:
  rows: { source: rows.jsonl }
runs:
  a: { type: sl, server: tiny, dataset: rows }
  b: { type: sl, server: big, dataset: rows, steps: 5, template_kwargs: { a: { b: [1, 2], c: null } } }
`;

test("defaults that depend on something else", async () => {
  const { nodes } = await load(SPEC);
  expect(nodes.get("run.a")?.body).toMatchObject({ lora_rank: 0, epochs: 1 });
  expect(nodes.get("run.b")?.body).toMatchObject({ lora_rank: 32, steps: 5 });
  expect(nodes.get("run.b")?.body).not.toHaveProperty("epochs");
  expect(nodes.get("server.tiny")?.body).toMatchObject({ port: 0, slots: 8 });
  expect(nodes.get("server.big")?.body).toMatchObject({ port: 8000, slots: 31, nodes: 1 });
  expect(nodes.get("server.big")?.body).not.toHaveProperty("gpus");
});

test("leaves of free maps are attributes; lists are leaves", async () => {
  const { nodes } = await load(SPEC);
  const attributes = nodes.get("run.b")!.attributes;
  expect(attributes.get("template_kwargs.a.b")).toEqual({ value: [1, 2], change: "replace", isDefault: false });
  expect(attributes.get("template_kwargs.a.c")).toEqual({ value: null, change: "replace", isDefault: false });
  expect(attributes.has("template_kwargs")).toBe(false);
});

test("a spec is frozen to its depths", async () => {
  const { nodes } = await load(SPEC);
  const node = nodes.get("run.b")!;
  const { body } = node as unknown as { body: any };
  for (const value of [
    node,
    body,
    body.schedule,
    body.template_kwargs,
    body.template_kwargs.a,
    body.template_kwargs.a.b,
  ])
    expect(Object.isFrozen(value)).toBe(true);
});

test("a node knows where its values stand", async () => {
  const node = (await load(SPEC)).nodes.get("run.b")!;
  const at = (path: string): string => {
    const { start, end } = node.rangeOf(path);
    return node.lineOf(node.rangeOf(path)).slice(start.column - 1, end.column - 1);
  };
  expect(at("steps")).toBe("5");
  expect(at("template_kwargs.a.b.1")).toBe("2");
  expect(at("template_kwargs.a.b")).toBe("[1, 2]");
  expect(at("template_kwargs")).toBe("template_kwargs");
  // Not written: the nearest that is.
  expect(at("learning_rate")).toBe("b");
  expect(at("")).toBe("b");
  expect(node.range).toEqual(node.rangeOf(""));
});

test("escaped text is read as it was", async () => {
  const text = fc.string({ unit: fc.constantFrom("$", "{", "}", "var.x", "a"), minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(text, async (value) => {
      const source = JSON.stringify(escapeInterpolation(`x${value}`));
      const { nodes } = await load(`rlcli: 1\nproject: demo\ndatasets: { rows: { source: ${source} } }\n`);
      expect(nodes.get("dataset.rows")?.body.source).toBe(`x${value}`);
    }),
  );
});
