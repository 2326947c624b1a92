/**
 * Each folder of test/fixtures/plans is a story: 1.yaml is applied, then 2.yaml and so on, and the plan of the last one is compared
 * with test/golden/plans/<name>.txt, so that a change of wording or of meaning is seen in review.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Address } from "../../src/address.ts";
import type { Change } from "../../src/change.ts";
import { renderPlan } from "../../src/cli/views/plan.ts";
import { createStyle } from "../../src/cli/views/style.ts";
import { World } from "./world.ts";

const fixtures = new URL("../fixtures/plans/", import.meta.url).pathname;
const golden = new URL("../golden/plans/", import.meta.url).pathname;
const stories = readdirSync(fixtures).sort();

const style = createStyle(false);
const acting = (changes: readonly Change[]) =>
  Object.fromEntries(
    changes.filter((change) => change.action !== "none").map((change) => [change.address, change.action]),
  );

describe("stories", () => {
  test.each(stories)("%s", async (name) => {
    const world = new World();
    const files = readdirSync(join(fixtures, name))
      .filter((file) => file.endsWith(".yaml"))
      .sort();
    for (const file of files.slice(0, -1)) {
      const spec = await world.load(join(fixtures, name, file));
      world.apply(spec);
      expect(acting(world.plan(spec).changes), `after applying ${file}`).toEqual({});
    }
    const spec = await world.load(join(fixtures, name, files.at(-1)!));
    const result = world.plan(spec);
    const diagnostics = result.diagnostics.map((d) => `${d.severity} ${d.code}: ${d.detail}\n`).join("");
    await expect(renderPlan(result.changes, result.queues, style) + diagnostics).toMatchFileSnapshot(
      join(golden, `${name}.txt`),
    );
    if (result.diagnostics.length > 0) return;
    world.apply(spec, result);
    expect(acting(world.plan(spec).changes), "after applying the last one").toEqual({});
  });
});

const BASE = join(fixtures, "replace-learning-rate", "1.yaml");
const AGENT: Address = "run.assistant";

async function trained(): Promise<{ world: World; plan: () => Change }> {
  const world = new World();
  const spec = await world.load(BASE);
  world.apply(spec);
  return { world, plan: () => world.plan(spec).changes.find((change) => change.address === AGENT)! };
}

describe("what is found of a run", () => {
  test("its final checkpoint gone: resumed from the last one left", async () => {
    const { world, plan } = await trained();
    world.edit(AGENT, (kept) => ({
      ...kept,
      durable: [{ step: 20, training: "tinker://s/weights/a-20" }],
      missing: kept.durable,
    }));
    expect(plan()).toMatchObject({ action: "resume", detail: { step: 20 } });
    expect(plan().reasons[0]).toContain("step 40 is gone");
  });

  test("sampler weights of its final checkpoint gone: resumed, to save them again", async () => {
    const { world, plan } = await trained();
    world.edit(AGENT, (kept) => ({
      ...kept,
      durable: kept.durable.map(({ sampler: _, ...training }) => training),
      samplersGone: [{ step: 40, path: "tinker://s/sampler_weights/a-40" }],
    }));
    expect(plan()).toMatchObject({
      action: "resume",
      detail: { step: 40 },
      reasons: ["resumed because its weights for sampling at step 40 are gone"],
    });
  });

  test("its run record gone: trained anew, and the plan does not blame what it is made of", async () => {
    const { world, plan } = await trained();
    world.observed.set(AGENT, { status: "absent", seen: { kept: [] }, drift: [] });
    expect(plan()).toMatchObject({
      action: "replace",
      after: { incarnation: 2 },
      reasons: ["replaced because its run record is gone from .rlcli/runs"],
    });
  });

  test("its server is another one: the plan says why it cannot move, unless it is trained anew", async () => {
    const { world } = await trained();
    const spec = await world.load(BASE);
    world.edit(AGENT, (kept) => ({ ...kept, server: "server.elsewhere" }));
    const [fault] = world.plan(spec).diagnostics;
    expect(fault).toMatchObject({
      code: "RL8011",
      detail: expect.stringContaining("has its checkpoints on server.elsewhere"),
    });
    expect(world.plan(spec, { replace: [AGENT] }).diagnostics).toEqual([]);
  });

  test("its server is another one that keeps checkpoints in the same form: they move", async () => {
    const { world, plan } = await trained();
    world.edit(AGENT, (kept) => ({ ...kept, server: "server.elsewhere", form: "embedded", durable: kept.durable }));
    world.edit(AGENT, (kept) => ({ ...kept, durable: [{ step: 20, training: "tinker://s/weights/a-20" }] }));
    expect(world.plan(await world.load(BASE)).diagnostics).toEqual([]);
    expect(plan().action).toBe("resume");
    expect(plan().reasons.at(-1)).toBe("its checkpoints move from server.elsewhere to server.default");
  });

  test("all of its checkpoints gone: replaced, in a new incarnation", async () => {
    const { world, plan } = await trained();
    world.edit(AGENT, (kept) => ({ ...kept, durable: [], missing: kept.durable }));
    expect(plan()).toMatchObject({ action: "replace", after: { incarnation: 2 } });
  });

  test("stopped by Ctrl-C at step 17: resumed", async () => {
    const { world, plan } = await trained();
    world.edit(AGENT, (kept) => ({
      ...kept,
      durable: [{ step: 17, training: "t" }],
      step: 17,
      end: { status: "interrupted", step: 17 },
    }));
    expect(plan()).toMatchObject({ action: "resume", reasons: ["resumed because it was interrupted at step 17"] });
  });

  test("killed without an end, before any checkpoint: resumed", async () => {
    const { world, plan } = await trained();
    world.edit(AGENT, ({ end: _end, ...kept }) => ({ ...kept, durable: [], step: 3 }));
    expect(plan()).toMatchObject({ action: "resume", detail: { step: 0 } });
  });

  test("failed: resumed, and the plan says that it failed", async () => {
    const { world, plan } = await trained();
    world.edit(AGENT, (kept) => ({ ...kept, durable: [], step: 5, end: { status: "failed", step: 5 } }));
    expect(plan().reasons).toEqual(["resumed because it failed at step 5"]);
  });

  test("a worker is on it: in progress, and no change", async () => {
    const { world, plan } = await trained();
    const { folder } = world.current(AGENT);
    world.edit(AGENT, ({ end: _end, ...kept }) => ({ ...kept, durable: [], step: 17 }));
    world.observed.set(AGENT, {
      status: "present",
      seen: { kept: world.kept.get(AGENT)!, busy: folder },
      drift: [],
      busy: { owner: "worker", step: 17 },
    });
    expect(plan()).toMatchObject({ action: "none", busy: { step: 17 } });
  });

  test("--replace trains the same generation again as a new incarnation, each time", async () => {
    const { world } = await trained();
    const spec = await world.load(BASE);
    for (const incarnation of [2, 3]) {
      const result = world.plan(spec, { replace: [AGENT] });
      expect(result.changes.find((c) => c.address === AGENT)).toMatchObject({
        action: "replace",
        after: { incarnation },
      });
      world.apply(spec, result);
    }
  });
});

describe("what is part of a generation", () => {
  const generations = async (text: (base: string) => string): Promise<[string, string]> => {
    const { mkdtempSync, readFileSync, writeFileSync } = await import("node:fs");
    const { tmpdir } = await import("node:os");
    const base = readFileSync(BASE, "utf8");
    const file = join(mkdtempSync(join(tmpdir(), "rlcli-generation-")), "rlcli.yaml");
    writeFileSync(file, text(base));
    const hashOf = async (path: string) => {
      const world = new World();
      return world.plan(await world.load(path)).changes.find((change) => change.kind === "run")!.after!.hash;
    };
    return [await hashOf(BASE), await hashOf(file)];
  };

  test.each<[string, (base: string) => string]>([
    [
      "a field written with its default",
      (base) => base.replace("type: sl", "type: sl\n    max_length: 2048\n    normalize: token"),
    ],
    ["other names", (base) => base.replaceAll("assistant", "other")],
    ["saving more often", (base) => base.replace("type: sl", "type: sl\n    save_every: 5\n    keep_last: 9")],
    ["more steps", (base) => base.replace("steps: 40", "steps: 80")],
    ["a number written another way", (base) => base.replace("3e-3", "0.003")],
    [
      "another idle timeout of the server",
      (base) => base.replace("backend: embedded", "backend: embedded\n  idle_timeout: 1h"),
    ],
  ])("not: %s", async (_, text) => {
    const [before, after] = await generations(text);
    expect(after).toBe(before);
  });

  test.each<[string, (base: string) => string]>([
    ["the seed", (base) => base.replace("type: sl", "type: sl\n    seed: 1")],
    ["what is trained on", (base) => base.replace("type: sl", "type: sl\n    train_on: last_assistant")],
    ["an optimizer setting", (base) => base.replace("type: sl", "type: sl\n    optimizer: { weight_decay: 0.1 }")],
    ["a schedule", (base) => base.replace("type: sl", "type: sl\n    schedule: cosine")],
    ["warm-up steps", (base) => base.replace("type: sl", "type: sl\n    schedule: { warmup_steps: 5 }")],
    [
      "a template's variables",
      (base) => base.replace("type: sl", "type: sl\n    template_kwargs: { enable_thinking: false }"),
    ],
  ])("%s", async (_, text) => {
    const [before, after] = await generations(text);
    expect(after).not.toBe(before);
  });

  test("the frozen value: an old file never retrains by itself", async () => {
    const [before] = await generations((base) => base);
    expect(before).toMatchInlineSnapshot(`"sha256:6133a2152af0696a7a2bf69172c9eba2ed0c7f3e53be69cacc04fca23a42e29c"`);
  });
});
