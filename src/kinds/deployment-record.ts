/** What a deployment's record keeps: where it points, where it pointed, and how it goes back. */
import type { Address } from "../address.ts";
import type { Digest } from "../digest.ts";

/** Where a deployment pointed, once. */
export interface DeployedAt {
  readonly at: string;
  readonly run: Address;
  readonly step: number;
  readonly hash: Digest;
  readonly training: string;
  readonly sampler?: string;
}

/** The weights that a place, or any checkpoint, is sampled with. */
export const weightsOf = ({ training, sampler }: Pick<DeployedAt, "training" | "sampler">): string =>
  sampler ?? training;

/** What its record keeps. */
export interface DeploymentResults extends DeployedAt {
  /** Earlier places, newest first. */
  readonly history: readonly DeployedAt[];
  /** The hash that somebody rolled back from: the pointer does not move there again by itself. */
  readonly rolledBackFrom?: Digest;
}

export function deploymentResults(record: { readonly results: unknown } | undefined): DeploymentResults | undefined {
  return record?.results as DeploymentResults | undefined;
}

/** Places that a record remembers: it stays under its 2 KB. */
const MOST_HISTORY = 5;

/** The places before, with the one that a record points at. */
export function historyOf(before: DeploymentResults | undefined): readonly DeployedAt[] {
  if (!before) return [];
  const { history, rolledBackFrom: _, ...last } = before;
  return [last, ...history].slice(0, MOST_HISTORY);
}

/**
 * What a record says once its pointer went back to the earlier place `to` (from 1, the newest first), or by default to the newest that is
 * not the present one nor what was rolled back from. The spec's own checkpoint is remembered, so that the next apply does not
 * move there again. Undefined where there is no such place.
 */
export function rolledBack(before: DeploymentResults, to?: number): DeploymentResults | undefined {
  const left = before.rolledBackFrom ?? before.hash;
  const isNew = ({ hash }: DeployedAt) => hash !== before.hash && hash !== left;
  const place = to === undefined ? before.history.find(isNew) : before.history[to - 1];
  if (!place) return undefined;
  const results = { ...place, at: new Date().toISOString(), history: historyOf(before) };
  return place.hash === left ? results : { ...results, rolledBackFrom: left };
}
