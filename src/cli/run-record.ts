/** From the name of a run to its record: what commands look into that show or change what a run has left. */
import type { Address } from "../address.ts";
import { fail } from "../diagnostic.ts";
import { runFolder } from "../kinds/run/observe.ts";
import type { SpecNode } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { didYouMeanOf } from "../suggest.ts";
import type { CommandContext } from "./context.ts";
import { openWith } from "./open.ts";
import type { SpecOptions } from "./options.ts";
import type { OpenProject } from "./project.ts";

export interface RunPlace {
  readonly open: OpenProject;
  readonly address: Address;
  /** Its block, where the spec still has it. */
  readonly node: SpecNode | undefined;
  readonly record: StateRecord;
  /** The current incarnation's. */
  readonly folder: string;
}

/** Fails with RL9009 where there is no such run, or where it was not started. */
export async function openRun(context: CommandContext, name: string, flags: Partial<SpecOptions>): Promise<RunPlace> {
  const open = await openWith(context, flags);
  return { open, ...(await runPlace(open, name)) };
}

/** The same in a project that is open. */
export async function runPlace(open: OpenProject, text: string): Promise<Omit<RunPlace, "open">> {
  const name = text.replace(/^run\./, "");
  const address: Address = `run.${name}`;
  const record = await open.store.read(address);
  const node = open.spec?.nodes.get(address);
  if (record) {
    const folder = runFolder(open.context.dataFolder, name, record.hash, record.incarnation);
    return { address, node, record, folder };
  }
  if (node) return fail("RL9009", `${address} has not been started. \`rlcli apply\` does.`);
  const known = [...(open.spec?.nodes.keys() ?? []), ...(await open.store.list()).records.keys()];
  const runs = known.filter((candidate) => candidate.startsWith("run."));
  return fail("RL9009", `There is no run \`${text}\`.${didYouMeanOf(address, runs)}`);
}
