/**
 * Looks at everything a plan needs to know: resolves the inputs of the spec's blocks and reads what is really there. Starts
 * and writes nothing. What cannot be asked in time is `unknown`, never taken for gone.
 */
import { setMaxListeners } from "node:events";
import { withDeadline } from "../abort.ts";
import type { Address } from "../address.ts";
import { kindOf } from "../address.ts";
import { type Diagnostic, RlcliError } from "../diagnostic.ts";
import type { Kinds, Observation, ProjectContext } from "../kind.ts";
import type { Spec, SpecInput } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { forEachBounded } from "./bounded.ts";

/** What is looked at gets this long to answer. */
const READ_TIMEOUT_MS = 5000;
const PARALLEL_READS = 32;

export interface RefreshInput {
  readonly spec: Spec | undefined;
  readonly kinds: Kinds;
  readonly records: ReadonlyMap<Address, StateRecord>;
  readonly project: ProjectContext;
  readonly signal: AbortSignal;
}

export interface Refreshed {
  readonly facts: ReadonlyMap<Address, unknown>;
  readonly observations: ReadonlyMap<Address, Observation<unknown>>;
  readonly inputs: readonly SpecInput[];
  readonly diagnostics: readonly Diagnostic[];
}

export async function refresh(input: RefreshInput): Promise<Refreshed> {
  const { spec, kinds, records, project } = input;
  const facts = new Map<Address, unknown>();
  const observations = new Map<Address, Observation<unknown>>();
  const inputs: SpecInput[] = [];
  const diagnostics: Diagnostic[] = [];
  const addresses = [...new Set([...(spec?.nodes.keys() ?? []), ...records.keys()])];
  // Each read may listen on it; that many listeners are no leak.
  setMaxListeners(0, input.signal);

  await forEachBounded(addresses, PARALLEL_READS, async (address) => {
    const kind = kinds.get(kindOf(address));
    if (!kind) return;
    const node = spec?.nodes.get(address);
    if (node) {
      try {
        const resolved = await kind.resolve?.(node, project, input.signal);
        inputs.push(...(resolved?.inputs ?? []));
        diagnostics.push(...(resolved?.diagnostics ?? []));
        if (!resolved?.diagnostics.some((d) => d.severity === "error")) facts.set(address, resolved?.facts);
      } catch (error) {
        if (!(error instanceof RlcliError)) throw error;
        diagnostics.push(...error.diagnostics);
      }
    }
    if (kind.isInline) return;
    const observation = await withDeadline(READ_TIMEOUT_MS, input.signal, (signal) =>
      kind.read({
        project,
        address,
        node,
        record: records.get(address),
        recordOf: (other) => records.get(other),
        nodeOf: (other) => spec?.nodes.get(other),
        signal,
      }),
    );
    observations.set(address, observation);
    diagnostics.push(...(observation.diagnostics ?? []));
  });
  return { facts, observations, inputs, diagnostics };
}
