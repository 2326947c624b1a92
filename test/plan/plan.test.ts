import { describe, expect, test } from "vitest";
import type { Address } from "../../src/address.ts";
import type { Change } from "../../src/change.ts";
import { type Observation, recordedAttributes } from "../../src/kind.ts";
import { planChanges } from "../../src/plan/plan.ts";
import type { StateRecord } from "../../src/state-record.ts";
import { type FakeBlock, fakeKinds, fakeSpec, newWorld } from "./fake.ts";

const BASE = {
  "server.gpu": { model: "tiny", port: 8000, price: 1 },
  "dataset.traces": { content: "a" },
  "loss.ce": { type: "cross_entropy" },
  "run.warmup": { rate: 0.1, steps: 40, needs: ["server.gpu", "dataset.traces", "loss.ce"] },
  "run.agent": { rate: 0.2, steps: 80, needs: ["server.gpu", "run.warmup"] },
  "run.other": { rate: 0.3, steps: 10, needs: ["server.gpu"] },
} satisfies Record<string, FakeBlock>;

type Blocks = Record<string, FakeBlock>;

interface Options {
  readonly observations?: ReadonlyMap<Address, Observation<unknown>>;
  readonly targets?: readonly Address[];
  readonly replace?: readonly Address[];
  readonly records?: ReadonlyMap<Address, StateRecord>;
}

function plan(blocks: Blocks | undefined, options: Options = {}) {
  const spec = blocks && fakeSpec(blocks);
  return planChanges({
    spec,
    kinds: fakeKinds(newWorld()),
    records: options.records ?? new Map(),
    observations: options.observations ?? new Map(),
    facts: new Map([...(spec?.nodes.keys() ?? [])].map((address) => [address, undefined])),
    targets: options.targets ?? [],
    replace: options.replace ?? [],
  });
}

/** Records as if everything in `blocks` had been applied. */
function applied(blocks: Blocks): Map<Address, StateRecord> {
  const { changes, identities } = plan(blocks);
  return new Map(
    changes.map((change) => [
      change.address,
      {
        formatVersion: 1,
        address: change.address,
        version: 1,
        status: "ready",
        hash: change.after!.hash,
        incarnation: change.after!.incarnation,
        attributes: Object.fromEntries([...identities.get(change.address)!.attributes].map(([p, a]) => [p, a.value])),
        dependsOn: (blocks[change.address]?.needs as Address[] | undefined) ?? [],
        results: {},
        updatedAt: "",
        fence: 1,
      } satisfies StateRecord,
    ]),
  );
}

const actions = (changes: readonly Change[]) =>
  Object.fromEntries(changes.filter((c) => c.action !== "none").map((c) => [c.address, c.action]));

const edited = (edits: Blocks): Blocks => {
  const blocks: Blocks = { ...BASE };
  for (const [address, fields] of Object.entries(edits)) blocks[address] = { ...blocks[address], ...fields };
  return blocks;
};

describe("planChanges", () => {
  test("creates everything once, each after what it needs, losses never", () => {
    const { changes } = plan(BASE);
    expect(changes.map((c) => `${c.action} ${c.address}`)).toEqual([
      "create server.gpu",
      "create dataset.traces",
      "create run.other",
      "create run.warmup",
      "create run.agent",
    ]);
  });

  test("is empty after apply", () => {
    expect(actions(plan(BASE, { records: applied(BASE) }).changes)).toEqual({});
  });

  const cases: Record<string, { edits: Blocks; expected: Record<string, string> }> = {
    "a learning rate replaces the run and what starts from it": {
      edits: { "run.warmup": { rate: 0.5 } },
      expected: { "run.warmup": "replace", "run.agent": "replace" },
    },
    "more steps extend the run": { edits: { "run.other": { steps: 20 } }, expected: { "run.other": "extend" } },
    "a dataset's content replaces it and what was trained on it": {
      edits: { "dataset.traces": { content: "b" } },
      expected: { "dataset.traces": "replace", "run.warmup": "replace", "run.agent": "replace" },
    },
    "a loss's option replaces the runs that use it": {
      edits: { "loss.ce": { content: "b" } },
      expected: { "run.warmup": "replace", "run.agent": "replace" },
    },
    "a port restarts the server only": { edits: { "server.gpu": { port: 9 } }, expected: { "server.gpu": "restart" } },
    "a price updates the server only": { edits: { "server.gpu": { price: 2 } }, expected: { "server.gpu": "update" } },
    "a note changes nothing": { edits: { "run.other": { note: "x" } }, expected: {} },
  };
  test.each(Object.entries(cases))("%s", (_, { edits, expected }) => {
    expect(actions(plan(edited(edits), { records: applied(BASE) }).changes)).toEqual(expected);
  });

  test("says why, through the graph", () => {
    const { changes } = plan(edited({ "dataset.traces": { content: "b" } }), { records: applied(BASE) });
    const reasonOf = (address: string) => changes.find((c) => c.address === address)?.reasons[0];
    expect(reasonOf("dataset.traces")).toBe("replaced because content changed");
    expect(reasonOf("run.warmup")).toBe("replaced because dataset.traces changed");
    expect(reasonOf("run.agent")).toBe("replaced because run.warmup changed");
  });

  test("removal takes users before what they use", () => {
    const { "run.agent": _agent, "run.warmup": _warmup, "dataset.traces": _traces, ...rest } = BASE;
    const { changes } = plan(rest, { records: applied(BASE) });
    expect(changes.filter((c) => c.action !== "none").map((c) => [c.action, c.address, c.dependsOn])).toEqual([
      ["forget", "run.agent", []],
      ["forget", "run.warmup", ["run.agent"]],
      ["destroy", "dataset.traces", ["run.warmup"]],
    ]);
  });

  test("without a spec everything goes, servers last", () => {
    const { changes } = plan(undefined, { records: applied(BASE) });
    expect(changes.at(-1)?.address).toBe("server.gpu");
    expect(changes).toHaveLength(5);
  });

  test("--target takes what the target needs and nothing else", () => {
    expect(Object.keys(actions(plan(BASE, { targets: ["run.warmup"] }).changes)).sort()).toEqual([
      "dataset.traces",
      "run.warmup",
      "server.gpu",
    ]);
  });

  test("--replace makes a new incarnation and replaces what starts from it", () => {
    const { changes } = plan(BASE, { records: applied(BASE), replace: ["run.warmup"] });
    expect(actions(changes)).toEqual({ "run.warmup": "replace", "run.agent": "replace" });
    expect(changes.find((c) => c.address === "run.warmup")?.after?.incarnation).toBe(2);
  });

  test("a tainted record is replaced as by --replace, for its own reason", () => {
    const records = new Map(applied(BASE));
    records.set("run.warmup", { ...records.get("run.warmup")!, tainted: true });
    const { changes } = plan(BASE, { records });
    expect(actions(changes)).toEqual({ "run.warmup": "replace", "run.agent": "replace" });
    const warmup = changes.find((c) => c.address === "run.warmup");
    expect(warmup).toMatchObject({ reasons: ["replaced because it is tainted"], after: { incarnation: 2 } });
  });

  test("an unknown address is an error that lists the known ones", () => {
    const outside = plan(BASE, { targets: ["dataset.traces"], replace: ["run.warmup"] });
    expect(outside.diagnostics[0]?.detail).toContain("none of the targets needs it");
    const { diagnostics } = plan(BASE, { targets: ["run.nope"] });
    expect(diagnostics.map((d) => d.code)).toEqual(["RL2003"]);
    expect(diagnostics[0]?.detail).toContain("run.warmup");
  });

  test("--replace of what is part of others, or has left the spec, is an error that says what to do", () => {
    const inline = plan(BASE, { records: applied(BASE), replace: ["loss.ce"] });
    expect(inline.diagnostics.map((d) => `${d.code} ${d.detail}`)).toEqual([
      "RL2003 loss.ce cannot be replaced: it is part of what uses it. Replace what uses it: run.warmup.",
    ]);
    const { "run.other": _, ...rest } = BASE;
    const gone = plan(rest, { records: applied(BASE), replace: ["run.other"] });
    expect(gone.diagnostics.map((d) => d.code)).toEqual(["RL2003"]);
    expect(gone.diagnostics[0]?.detail).toContain("the spec does not have it any more");
  });

  test("a cycle is an error that shows the circle; the rest is still planned", () => {
    const { diagnostics, changes } = plan({
      "run.a": { needs: ["run.b"] },
      "run.b": { needs: ["run.c"] },
      "run.c": { needs: ["run.a"] },
      "run.d": { needs: ["run.c"] },
      "run.e": {},
    });
    expect(diagnostics.map((d) => d.code)).toEqual(["RL2001"]);
    expect(diagnostics[0]?.detail).toMatch(
      /run\.a → run\.b → run\.c → run\.a|run\.b → run\.c → run\.a → run\.b|run\.c → run\.a → run\.b → run\.c/,
    );
    expect(changes.map((c) => c.address)).toEqual(["run.e"]);
  });

  test("what is gone is created again, what could not be asked is left alone", () => {
    const observations = new Map<Address, Observation<unknown>>([
      ["server.gpu", { status: "unknown", seen: undefined, drift: [] }],
      ["dataset.traces", { status: "absent", seen: undefined, drift: [] }],
    ]);
    expect(actions(plan(BASE, { records: applied(BASE), observations }).changes)).toEqual({
      "dataset.traces": "create",
    });
  });

  test("drift with a mend is a change with the observation beside it", () => {
    const drift = [{ message: "its process died", mend: "restart" as const }];
    const observations = new Map<Address, Observation<unknown>>([
      ["server.gpu", { status: "present", seen: undefined, drift }],
    ]);
    const { changes } = plan(BASE, { records: applied(BASE), observations });
    expect(actions(changes)).toEqual({ "server.gpu": "restart" });
    expect(changes.find((c) => c.address === "server.gpu")).toMatchObject({ drift, reasons: ["its process died"] });
  });

  test("work beyond a server's slots is shown in waves", () => {
    const blocks: Blocks = { "server.gpu": { slots: 2 } };
    for (let at = 0; at < 5; at++) blocks[`run.r${at}`] = { needs: ["server.gpu"] };
    expect(plan(blocks).queues).toEqual([
      { address: "server.gpu", slots: 2, waves: [["run.r0", "run.r1"], ["run.r2", "run.r3"], ["run.r4"]] },
    ]);
  });

  test("a block whose inputs had errors is left out with its dependents", () => {
    const spec = fakeSpec(BASE);
    const { changes } = planChanges({
      spec,
      kinds: fakeKinds(newWorld()),
      records: new Map(),
      observations: new Map(),
      facts: new Map([...spec.nodes.keys()].filter((a) => a !== "dataset.traces").map((a) => [a, undefined])),
      targets: [],
      replace: [],
    });
    expect(changes.map((c) => c.address)).toEqual(["server.gpu", "run.other"]);
  });

  test("a hundred thousand blocks in a chain are planned without recursion", () => {
    const blocks: Blocks = {};
    for (let at = 0; at < 100_000; at++) blocks[`run.r${at}`] = at === 0 ? {} : { needs: [`run.r${at - 1}`] };
    expect(plan(blocks).changes).toHaveLength(100_000);
  });
});

describe("long values", () => {
  test("are recorded as a digest, compared by it, and still seen to change", () => {
    const long = (last: string) =>
      fakeSpec({ "run.a": { note2: [...Array.from({ length: 200 }, (_, at) => `file-${at}`), last] } });
    const planOf = (spec: ReturnType<typeof fakeSpec>, records: ReadonlyMap<Address, StateRecord>) =>
      planChanges({
        spec,
        kinds: fakeKinds(newWorld()),
        records,
        observations: new Map([["run.a" as Address, { status: "present" as const, seen: undefined, drift: [] }]]),
        facts: new Map([["run.a" as Address, undefined]]),
        targets: [],
        replace: [],
      });
    const first = planOf(long("x"), new Map());
    const attributes = recordedAttributes(first.identities.get("run.a"));
    expect(JSON.stringify(attributes).length).toBeLessThan(200);
    const record: StateRecord = {
      formatVersion: 1,
      address: "run.a",
      version: 1,
      status: "ready",
      hash: first.changes[0]!.after!.hash,
      incarnation: 1,
      attributes,
      dependsOn: [],
      results: {},
      updatedAt: "",
      fence: 1,
    };
    const records = new Map([["run.a" as Address, record]]);
    expect(planOf(long("x"), records).changes[0]).toMatchObject({ action: "none", attributes: [] });
    expect(planOf(long("y"), records).changes[0]).toMatchObject({ action: "update" });
  });
});
