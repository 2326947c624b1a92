// The planner alone: graph, diff and decisions over 12,500 to 100,000 runs that start from each other, all recorded, a tenth of them
// changed. No files, no YAML. Is the time linear in their number? Prints and records microseconds a resource.
// node benchmarks/planner.bench.mjs
import { digestJson, planChanges } from "../dist/index.js";
import { median, writeReceipt } from "./receipt.mjs";

const SIZES = [12_500, 25_000, 50_000, 100_000];
const ROUNDS = 5;

/** A kind whose runs are replaced by their rate and follow what they start from. */
const kind = {
  name: "run",
  removal: "forget",
  read: async () => ({ status: "present", seen: undefined, drift: [] }),
  identify: ({ node, upstream }) => {
    const attributes = new Map(node.attributes);
    const because = new Map();
    for (const { to } of node.references) {
      attributes.set("from.checkpoint", { value: upstream(to).identity.hash, change: "replace", isDefault: false });
      because.set("from.checkpoint", to);
    }
    return { attributes, because, hash: digestJson([...attributes].map(([path, { value }]) => [path, value])) };
  },
  act: async () => ({ status: "done", record: "removed" }),
};
const kinds = new Map([["run", kind]]);

function inputOf(size, changedEvery) {
  const nodes = new Map();
  for (let at = 0; at < size; at++) {
    const address = `run.r${at}`;
    const rate = changedEvery && at % changedEvery === changedEvery - 1 ? 2 : 1;
    const attributes = new Map([
      ["learning_rate", { value: rate, change: "replace", isDefault: false }],
      ["steps", { value: 10, change: "extend", isDefault: false }],
    ]);
    const references = at % 10 === 0 ? [] : [{ path: "from", to: `run.r${at - 1}` }];
    nodes.set(address, { address, kind: "run", name: `r${at}`, body: {}, attributes, references });
  }
  const facts = new Map([...nodes.keys()].map((address) => [address, undefined]));
  const observations = new Map(
    [...nodes.keys()].map((address) => [address, { status: "present", seen: undefined, drift: [] }]),
  );
  return {
    spec: { project: "bench", folder: "/", nodes, inputs: [] },
    kinds,
    records: new Map(),
    observations,
    facts,
    targets: [],
    replace: [],
  };
}

function recorded(size) {
  const input = inputOf(size, 0);
  const { changes, identities } = planChanges(input);
  return new Map(
    changes.map(({ address, after, dependsOn }) => [
      address,
      {
        formatVersion: 1,
        address,
        version: 1,
        status: "ready",
        ...after,
        dependsOn,
        results: {},
        updatedAt: "",
        fence: 1,
        attributes: Object.fromEntries(
          [...identities.get(address).attributes].map(([path, { value }]) => [path, value]),
        ),
      },
    ]),
  );
}

const results = [];
for (const size of SIZES) {
  const input = { ...inputOf(size, 10), records: recorded(size) };
  const microseconds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const started = performance.now();
    const { changes } = planChanges(input);
    if (changes.filter((change) => change.action === "replace").length !== size / 10)
      throw new Error("not the plan that was meant");
    if (round > 0) microseconds.push(((performance.now() - started) * 1000) / size);
  }
  results.push({ resources: size, microsecondsEach: microseconds, median: median(microseconds) });
  process.stdout.write(`${String(size).padStart(7)} resources: ${median(microseconds).toFixed(1)} µs each\n`);
}
const ratio = results.at(-1).median / results[0].median;
process.stdout.write(`eight times as many resources cost ${ratio.toFixed(2)} times as much each\n`);
writeReceipt("planner", { results, growthOfCostEach: ratio });
