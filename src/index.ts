/**
 * The public API: load and check a spec, plan changes, and the shapes that go in and out. The protocol client is `rlcli/tinker`.
 * The command line is the way to apply; what is exported here looks and computes.
 */
export { type Address, addressOf, type KindName, parseAddress } from "./address.ts";
export type { Action, AttributeChange, Change, Drift, Estimate } from "./change.ts";
export { type LoadOptions, type LoadResult, loadSpec } from "./config/load.ts";
export { type DefineContext, defineSpec, type SpecProgram } from "./define.ts";
export { type Diagnostic, hasErrors, RlcliError, type SourceRange } from "./diagnostic.ts";
export { type Digest, digestJson } from "./digest.ts";
export type { EngineEvent } from "./event.ts";
export type { Decision, Identity, Kind, Kinds, Observation } from "./kind.ts";
export { type PlanInput, type PlanResult, planChanges } from "./plan/plan.ts";
export type { JournalEntry, MetricsLine, RunOrder } from "./run-record.ts";
export type { SpecFile } from "./spec.gen.ts";
export type { Spec, SpecNode } from "./spec.ts";
export type { SpecSource } from "./spec-source.gen.ts";
export type { StateRecord } from "./state-record.ts";
