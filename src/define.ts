/** Specs written in TypeScript or JavaScript. Types only: at run time it hands on what it is given. */
import type { SpecSource } from "./spec-source.gen.ts";

/** What a spec that is a function gets. */
export interface DefineContext {
  /** The environment that rlcli runs in. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type SpecProgram = SpecSource | ((context: DefineContext) => SpecSource | Promise<SpecSource>);

/**
 * A spec in `rlcli.config.ts` or `rlcli.config.mjs`: `export default defineSpec({ … })`, with all that rlcli.yaml may say, shorthands and
 * `${var.NAME}` too, and the same meaning: the same hashes, so that moving from one to the other retrains nothing. A function may compute
 * it, also asynchronously.
 */
export function defineSpec(spec: SpecProgram): SpecProgram {
  return spec;
}
