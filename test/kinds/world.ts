/**
 * Plans with the real kinds and no processes: "applying" a plan here records what apply would have recorded and keeps what a
 * worker would have kept. So plan semantics are tested on real specs in milliseconds.
 */
import type { Address } from "../../src/address.ts";
import type { Change } from "../../src/change.ts";
import { loadSpec } from "../../src/config/load.ts";
import { type Digest, digestBytes } from "../../src/digest.ts";
import { type Observation, recordedAttributes } from "../../src/kind.ts";
import { kinds } from "../../src/kinds/registry.ts";
import type { RunResults } from "../../src/kinds/run/identity.ts";
import type { Kept, KeptCheckpoint, RunSeen } from "../../src/kinds/run/observe.ts";
import { lengthOf } from "../../src/kinds/run/settings.ts";
import { type PlanResult, planChanges } from "../../src/plan/plan.ts";
import type { Spec, SpecNode } from "../../src/spec.ts";
import type { StateRecord } from "../../src/state-record.ts";

const STEPS_PER_EPOCH = 10;

export class World {
  readonly records = new Map<Address, StateRecord>();
  readonly kept = new Map<Address, Kept[]>();
  /** Contents of files by path; what is not set is the path itself. */
  readonly contents = new Map<string, string>();
  /** Observations that differ from "as recorded". */
  readonly observed = new Map<Address, Observation<unknown>>();

  async load(file: string, env: Record<string, string> = {}): Promise<Spec> {
    const { spec, diagnostics } = await loadSpec({ files: [file], variables: {}, variableFiles: [], env, cwd: "/" });
    if (!spec) throw new Error(diagnostics.map((d) => `${d.code} ${d.detail}`).join("\n"));
    return spec;
  }

  /** `facts`: what the kinds really resolved, by address, where that is not left to `contents`. */
  plan(
    spec: Spec | undefined,
    options: { replace?: Address[]; targets?: Address[]; facts?: ReadonlyMap<Address, unknown> } = {},
  ): PlanResult {
    const facts = new Map<Address, unknown>();
    for (const node of spec?.nodes.values() ?? [])
      facts.set(node.address, options.facts?.get(node.address) ?? this.#factsOf(node));
    const observations = new Map<Address, Observation<unknown>>();
    for (const address of new Set([...(spec?.nodes.keys() ?? []), ...this.records.keys()])) {
      const seen = address.startsWith("run.") ? ({ kept: this.kept.get(address) ?? [] } satisfies RunSeen) : undefined;
      observations.set(address, this.observed.get(address) ?? { status: "present", seen, drift: [] });
    }
    const { records } = this;
    return planChanges({
      spec,
      kinds,
      records,
      observations,
      facts,
      targets: options.targets ?? [],
      replace: options.replace ?? [],
    });
  }

  /** Records every change as done. */
  apply(spec: Spec, result: PlanResult = this.plan(spec)): void {
    for (const change of result.changes) {
      if (change.action === "none") continue;
      if (change.action === "forget" || change.action === "destroy") {
        this.records.delete(change.address);
        continue;
      }
      const node = spec.nodes.get(change.address) as SpecNode;
      const results = change.kind === "run" ? this.#train(node, change, result) : {};
      const { hash, incarnation } = change.after!;
      this.records.set(change.address, {
        formatVersion: 1,
        address: change.address,
        version: (this.records.get(change.address)?.version ?? 0) + 1,
        status: "ready",
        hash,
        incarnation,
        attributes: recordedAttributes(result.identities.get(change.address)),
        dependsOn: node.references.map((reference) => reference.to),
        results: results as never,
        updatedAt: "2026-01-01T00:00:00.000Z",
        fence: 1,
      });
    }
  }

  /** The incarnation that a run's record points at. */
  current(address: Address): Kept {
    const { hash, incarnation } = this.records.get(address)!;
    return this.kept.get(address)!.find((k) => k.generation === hash && k.incarnation === incarnation)!;
  }

  /** Changes what is kept of a run's current incarnation. */
  edit(address: Address, change: (kept: Kept) => Kept): void {
    const current = this.current(address);
    this.kept.set(
      address,
      this.kept.get(address)!.map((k) => (k === current ? change(k) : k)),
    );
  }

  #factsOf(node: SpecNode): unknown {
    if (node.kind === "server") return { model: node.body.model, revision: null };
    if (node.kind === "dataset") {
      const source = String(node.body.source);
      return { digest: digestBytes(this.contents.get(source) ?? source), sources: [] };
    }
    return undefined;
  }

  #train(node: SpecNode, change: Change, result: PlanResult): RunResults {
    const { hash, incarnation } = change.after!;
    const all = this.kept.get(node.address) ?? [];
    const before = all.find((k) => k.generation === hash && k.incarnation === incarnation);
    const length = lengthOf(node);
    const end = "steps" in length ? length.steps : length.epochs * STEPS_PER_EPOCH;
    const isTraining = !["restore", "update"].includes(change.action);
    if (isTraining) {
      const path = (kind: string) => `tinker://s/${kind}/${node.name}-${end}`;
      const paths = { training: path("weights"), sampler: path("sampler_weights") };
      const final: KeptCheckpoint = { step: end, ...paths, final: length };
      const durable = [...(before?.durable ?? []).filter((c) => c.step !== end), final].sort((a, b) => a.step - b.step);
      const rate = { secondsPerStep: 0.5, tokensPerStep: 1000, stepsPerEpoch: STEPS_PER_EPOCH };
      const kept: Kept = {
        folder: `/runs/${node.name}/${hash}/${incarnation}`,
        generation: hash,
        incarnation,
        durable,
        missing: [],
        samplersGone: [],
        step: end,
        length,
        end: { status: "complete", step: end },
        rate,
      };
      this.kept.set(node.address, [...all.filter((k) => k !== before), kept]);
    }
    const identity = result.identities.get(node.address);
    const from = identity?.attributes.get("from.checkpoint")?.value as { generation?: string } | undefined;
    const isOwn = from !== undefined && this.kept.get(node.address)!.some((k) => k.generation === from.generation);
    return {
      step: isTraining ? end : ((change.detail as { step: number }).step ?? end),
      semantics: 1,
      dataset: identity?.attributes.get("dataset.content")?.value as Digest,
      ...(isOwn ? { continuedFrom: from as never } : {}),
    };
  }
}
