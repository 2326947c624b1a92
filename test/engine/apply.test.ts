import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Address } from "../../src/address.ts";
import { diagnostic } from "../../src/diagnostic.ts";
import { applyChanges } from "../../src/engine/apply.ts";
import { refresh } from "../../src/engine/refresh.ts";
import type { EngineEvent } from "../../src/event.ts";
import type { ProjectContext } from "../../src/kind.ts";
import { planChanges } from "../../src/plan/plan.ts";
import { type FakeBlock, type FakeWorld, fakeKinds, fakeSpec, newWorld } from "../plan/fake.ts";
import { type MemoryState, MemoryStateStore, newMemoryState } from "../state/memory.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-engine-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Blocks = Record<string, FakeBlock>;

const never = new AbortController().signal;

async function planFor(blocks: Blocks | undefined, world: FakeWorld, state: MemoryState) {
  const spec = blocks && fakeSpec(blocks);
  const kinds = fakeKinds(world);
  const project: ProjectContext = {
    project: "test",
    folder,
    dataFolder: join(folder, ".rlcli"),
    cacheFolder: folder,
    env: {},
  };
  const store = new MemoryStateStore(state);
  const { records } = await store.list();
  const seen = await refresh({ spec, kinds, records, project, signal: never });
  const plan = planChanges({ spec, kinds, records, ...seen, targets: [], replace: [] });
  return { spec, kinds, project, store, records, plan, ...seen };
}

interface Options {
  readonly stop?: AbortSignal;
  readonly parallelism?: number;
  readonly onEvent?: (event: EngineEvent) => void;
}

async function apply(blocks: Blocks | undefined, world: FakeWorld, state: MemoryState, options: Options = {}) {
  const planned = await planFor(blocks, world, state);
  const result = await applyChanges({
    ...planned,
    changes: planned.plan.changes,
    identities: planned.plan.identities,
    stop: options.stop ?? never,
    kill: never,
    detach: false,
    weights: false,
    parallelism: options.parallelism ?? 4,
    now: () => new Date(0),
    emit: options.onEvent ?? (() => {}),
  });
  return { ...result, planned };
}

const pending = async (blocks: Blocks | undefined, world: FakeWorld, state: MemoryState) =>
  (await planFor(blocks, world, state)).plan.changes
    .filter((c) => c.action !== "none")
    .map((c) => `${c.action} ${c.address}`);

const CHAIN: Blocks = {
  "server.gpu": { model: "tiny" },
  "dataset.d": { content: "a" },
  "run.a": { rate: 1, needs: ["server.gpu", "dataset.d"] },
  "run.b": { rate: 1, needs: ["server.gpu", "run.a"] },
  "run.c": { rate: 1, needs: ["server.gpu"] },
};

describe("applyChanges", () => {
  test("does what the plan lists, each after what it needs, and leaves nothing to do", async () => {
    const [world, state] = [newWorld(), newMemoryState()];
    const { counts } = await apply(CHAIN, world, state);
    expect(counts.done).toBe(5);
    expect(world.log.indexOf("create run.a")).toBeGreaterThan(world.log.indexOf("create dataset.d"));
    expect(world.log.indexOf("create run.b")).toBeGreaterThan(world.log.indexOf("create run.a"));
    expect(await pending(CHAIN, world, state)).toEqual([]);
  });

  test("a failure keeps what needs it from starting; the rest goes on; the next apply does the rest", async () => {
    const [world, state] = [newWorld(), newMemoryState()];
    world.before = async (address) =>
      address === "run.a" ? { status: "failed", diagnostics: [diagnostic("RL4003", "It broke.")] } : undefined;
    const { counts, results, diagnostics } = await apply(CHAIN, world, state);
    expect(counts).toMatchObject({ done: 3, failed: 1, skipped: 1 });
    expect(results.get("run.b")?.status).toBe("skipped");
    expect(diagnostics.map((d) => d.code)).toEqual(["RL4003"]);
    delete world.before;
    expect(await pending(CHAIN, world, state)).toEqual(["create run.a", "create run.b"]);
    await apply(CHAIN, world, state);
    expect(await pending(CHAIN, world, state)).toEqual([]);
  });

  test("a stop starts nothing new and finishes what runs", async () => {
    const [world, state, stop] = [newWorld(), newMemoryState(), new AbortController()];
    world.before = async (address) => {
      if (address === "dataset.d") stop.abort();
      return undefined;
    };
    const { counts } = await apply(CHAIN, world, state, { stop: stop.signal, parallelism: 1 });
    expect(world.log).toEqual(["create server.gpu", "create dataset.d"]);
    expect(counts).toMatchObject({ done: 2, skipped: 3 });
  });

  test("work that a stop cuts off is interrupted, not a bug of ours", async () => {
    const [world, state, stop] = [newWorld(), newMemoryState(), new AbortController()];
    world.before = async (address) => {
      if (address !== "dataset.d") return undefined;
      stop.abort();
      throw stop.signal.reason;
    };
    const { counts, results } = await apply(CHAIN, world, state, { stop: stop.signal, parallelism: 1 });
    expect(results.get("dataset.d")).toEqual({ status: "interrupted", diagnostics: [] });
    expect(counts).toMatchObject({ done: 1, interrupted: 1, skipped: 3 });
  });

  test("never more at once than parallelism and the server's slots allow", async () => {
    const [world, state] = [newWorld(), newMemoryState()];
    const blocks: Blocks = { "server.gpu": { slots: 3 }, "server.cpu": { slots: 1 } };
    for (let at = 0; at < 12; at++) blocks[`run.r${at}`] = { needs: [at % 3 === 0 ? "server.cpu" : "server.gpu"] };
    const running = new Map<string, number>();
    let highest = { gpu: 0, cpu: 0 };
    world.before = async (address) => {
      if (!address.startsWith("run.")) return undefined;
      const server = (blocks[address]!.needs as string[])[0] === "server.cpu" ? "cpu" : "gpu";
      running.set(server, (running.get(server) ?? 0) + 1);
      highest = { ...highest, [server]: Math.max(highest[server], running.get(server) ?? 0) };
      await new Promise((resolve) => setTimeout(resolve, 2));
      running.set(server, (running.get(server) ?? 0) - 1);
      return undefined;
    };
    await apply(blocks, world, state, { parallelism: 10 });
    expect(highest).toEqual({ gpu: 3, cpu: 1 });
  });

  test("two applies of one spec at once: each waits for the other where it must, and all is done once", async () => {
    const [world, state] = [newWorld(), newMemoryState()];
    world.before = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return undefined;
    };
    const [one, two] = await Promise.all([apply(CHAIN, world, state), apply(CHAIN, world, state)]);
    expect([one.diagnostics, two.diagnostics]).toEqual([[], []]);
    expect([one.counts.done, two.counts.done]).toEqual([5, 5]);
    expect([...world.log].sort()).toEqual(
      Object.keys(CHAIN)
        .map((address) => `create ${address}`)
        .sort(),
    );
    expect(await pending(CHAIN, world, state)).toEqual([]);
  });

  test("two applies of different specs at once: what the other made otherwise is not overwritten", async () => {
    const [world, state] = [newWorld(), newMemoryState()];
    world.before = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return undefined;
    };
    const ends = await Promise.all([
      apply({ "dataset.d": { content: "a" } }, world, state),
      apply({ "dataset.d": { content: "b" } }, world, state),
    ]);
    expect(ends.flatMap((end) => end.diagnostics.map((d) => d.code))).toEqual(["RL3002"]);
    expect(world.log).toEqual(["create dataset.d"]);
  });

  test("a record that changed since the plan is not overwritten", async () => {
    const [world, state] = [newWorld(), newMemoryState()];
    world.before = async (address) => {
      if (address === "server.gpu") await apply({ "dataset.d": { content: "b" } }, newWorld(), state);
      return undefined;
    };
    const { diagnostics } = await apply(
      { "server.gpu": { model: "tiny" }, "dataset.d": { content: "a", needs: ["server.gpu"] } },
      world,
      state,
    );
    expect(diagnostics.map((d) => d.code)).toEqual(["RL3002"]);
  });

  test("an unwritable state keeps the record in a file that state push takes", async () => {
    const [world, state] = [newWorld(), newMemoryState()];
    state.failAfter = 0;
    const { diagnostics } = await apply({ "dataset.d": { content: "a" } }, world, state);
    expect(diagnostics.map((d) => d.code)).toEqual(["RL3004"]);
    const saved = JSON.parse(readFileSync(join(folder, "rlcli-recovery-dataset.d.json"), "utf8"));
    expect(saved).toMatchObject({ expect: 0, draft: { address: "dataset.d", status: "ready" } });
  });
});

/** Random blocks: servers and datasets first, runs over earlier ones, so that there is no cycle. */
const someBlocks: fc.Arbitrary<Blocks> = fc
  .array(
    fc.record({
      kind: fc.constantFrom("server", "dataset", "run"),
      needs: fc.array(fc.nat(20), { maxLength: 3 }),
      content: fc.integer({ min: 0, max: 2 }),
      steps: fc.integer({ min: 1, max: 3 }),
      port: fc.integer({ min: 1, max: 2 }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((items) => {
    const blocks: Blocks = {};
    const names: string[] = [];
    for (const [at, item] of items.entries()) {
      const name = `${item.kind}.n${at}`;
      const needs =
        item.kind === "run"
          ? [...new Set(item.needs.map((n) => names[n % Math.max(1, names.length)]))].filter((n) => n !== undefined)
          : [];
      blocks[name] =
        item.kind === "server"
          ? { port: item.port, slots: 2 }
          : item.kind === "dataset"
            ? { content: item.content }
            : { rate: item.content, steps: item.steps, needs: needs as string[] };
      names.push(name);
    }
    return blocks;
  });

class Crash extends Error {}

describe("properties", () => {
  test("apply, then plan, is empty; also after any sequence of edits", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(someBlocks, { minLength: 1, maxLength: 4 }), async (specs) => {
        const [world, state] = [newWorld(), newMemoryState()];
        for (const blocks of specs) {
          await apply(blocks, world, state);
          expect(await pending(blocks, world, state)).toEqual([]);
          expect([...world.things.keys()].sort()).toEqual(Object.keys(blocks).sort());
        }
      }),
      { numRuns: 150 },
    );
  });

  test("an apply that crashes at any event, then apply, reaches the same state", async () => {
    await fc.assert(
      fc.asyncProperty(
        someBlocks,
        someBlocks,
        fc.nat(30),
        fc.integer({ min: 1, max: 4 }),
        async (first, second, cut, parallelism) => {
          const whole = { world: newWorld(), state: newMemoryState() };
          const torn = { world: newWorld(), state: newMemoryState() };
          for (const { world, state } of [whole, torn]) await apply(first, world, state);
          await apply(second, whole.world, whole.state);

          let left = cut;
          const dieAtEvent = () => {
            if (left-- <= 0) throw new Crash();
          };
          try {
            await apply(second, torn.world, torn.state, { parallelism, onEvent: dieAtEvent });
          } catch (error) {
            if (!(error instanceof Crash)) throw error;
          }
          torn.state.leases.clear();
          const again = await apply(second, torn.world, torn.state);
          expect(again.diagnostics).toEqual([]);
          expect(await pending(second, torn.world, torn.state)).toEqual([]);
          expect(summary(torn)).toEqual(summary(whole));
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** What exists and what is recorded, apart from versions, times and leases. */
function summary({ world, state }: { world: FakeWorld; state: MemoryState }) {
  const things = [...world.things].sort(([a], [b]) => (a < b ? -1 : 1));
  const records = [...state.records.values()]
    .flatMap(({ record }) =>
      record ? [[record.address, record.hash, record.incarnation, record.attributes] as const] : [],
    )
    .sort(([a]: readonly [Address, ...unknown[]], [b]: readonly [Address, ...unknown[]]) => (a < b ? -1 : 1));
  return { things, records };
}
