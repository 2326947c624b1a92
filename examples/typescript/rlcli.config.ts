// A sweep over learning rates, which YAML would need a block for each. With Node 22.18 or later: rlcli plan
import { defineSpec } from "rlcli";

const RATES = { slow: 1e-3, usual: 3e-3, fast: 1e-2 };

export default defineSpec({
  rlcli: 1,
  project: "sweep",
  variables: { epochs: { type: "integer", default: 2, description: "Of every run" } },
  server: { backend: "embedded", model: "builtin:tiny" },
  datasets: { traces: { import: { format: "openai", from: "../quickstart/traces.jsonl" } } },
  runs: Object.fromEntries(
    Object.entries(RATES).map(([name, learning_rate]) => [
      name,
      {
        type: "sl",
        dataset: "traces",
        learning_rate,
        epochs: "${var.epochs}",
        schedule: "linear",
        test_size: 16,
      } as const,
    ]),
  ),
});
