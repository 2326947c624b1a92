/** `rlcli state list|show|push|taint|untaint`, `rlcli show`, `rlcli output`: what is remembered. None of them looks at servers. */
import { readFileSync } from "node:fs";
import type { Address } from "../../address.ts";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { isFileSystemError } from "../../files.ts";
import { deploymentResults, weightsOf } from "../../kinds/deployment-record.ts";
import { resultsOf } from "../../kinds/run/identity.ts";
import { withLease } from "../../state/lease.ts";
import { isRecoveryFile } from "../../state/recovery.ts";
import type { StateRecord } from "../../state-record.ts";
import { didYouMean } from "../../suggest.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openBeside } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import { renderRecord } from "../views/record.ts";
import { toAddress } from "./plan.ts";

export const OUTPUT_JSON_VERSION = 1;

const NOTHING_APPLIED = "Nothing has been applied here yet. `rlcli apply` makes what the spec says.\n";

async function records(
  context: CommandContext,
  flags: Partial<SpecOptions>,
): Promise<ReadonlyMap<Address, StateRecord>> {
  const { store } = await openBeside(context, flags);
  const { records: found, diagnostics } = await store.list();
  if (diagnostics.length > 0) throw new RlcliError(diagnostics);
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export async function stateList(context: CommandContext, flags: Partial<SpecOptions>): Promise<ExitCode> {
  const found = await records(context, flags);
  if (context.isJson)
    context.out(`${JSON.stringify({ formatVersion: OUTPUT_JSON_VERSION, records: [...found.values()] })}\n`);
  else for (const address of found.keys()) context.out(`${address}\n`);
  if (!context.isJson && found.size === 0) context.err(NOTHING_APPLIED);
  return EXIT.done;
}

export async function stateShow(context: CommandContext, text: string, flags: Partial<SpecOptions>): Promise<ExitCode> {
  const record = pick(await records(context, flags), text);
  context.out(`${JSON.stringify(record, undefined, context.isJson ? undefined : 2)}\n`);
  return EXIT.done;
}

export async function show(
  context: CommandContext,
  text: string | undefined,
  flags: Partial<SpecOptions>,
): Promise<ExitCode> {
  const found = await records(context, flags);
  const chosen = text === undefined ? [...found.values()] : [pick(found, text)];
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: OUTPUT_JSON_VERSION, records: chosen })}\n`);
    return EXIT.done;
  }
  if (chosen.length === 0) context.out(NOTHING_APPLIED);
  else context.out(chosen.map((record) => renderRecord(record, context.style)).join("\n"));
  return EXIT.done;
}

function pick(found: ReadonlyMap<Address, StateRecord>, text: string): StateRecord {
  const record = found.get(toAddress(text));
  return (
    record ??
    fail("RL9009", `The state has no ${text}.${didYouMean(text, found.keys())} \`rlcli state list\` lists what it has.`)
  );
}

/** Values that other programs want: where checkpoints are, and how good. By `address.name`. */
function outputsOf(found: ReadonlyMap<Address, StateRecord>): Record<string, string | number> {
  const outputs: Record<string, string | number> = {};
  for (const [address, record] of found) {
    if (record.status !== "ready") continue;
    Object.assign(outputs, otherOutputs(address, record));
    if (!address.startsWith("run.")) continue;
    const results = resultsOf(record);
    if (results?.sampler ?? results?.training)
      outputs[`${address}.checkpoint`] = (results?.sampler ?? results?.training) as string;
    if (results?.training) outputs[`${address}.training_checkpoint`] = results.training;
    if (results?.step !== undefined) outputs[`${address}.step`] = results.step;
    if (results?.loss !== undefined && results.reward === undefined) outputs[`${address}.loss`] = results.loss;
    if (results?.heldOutLoss !== undefined) outputs[`${address}.held_out_loss`] = results.heldOutLoss;
    if (results?.reward !== undefined) outputs[`${address}.reward`] = results.reward;
    if (results?.evalReward !== undefined) outputs[`${address}.eval_reward`] = results.evalReward;
  }
  return outputs;
}

/** What evals measured, and where deployments point. */
function otherOutputs(address: Address, { results }: StateRecord): Record<string, string | number> {
  if (address.startsWith("eval.")) {
    const metrics = Object.entries((results.metrics ?? {}) as Readonly<Record<string, number>>);
    return Object.fromEntries([
      ...metrics.map(([name, value]): [string, number] => [`${address}.${name}`, value]),
      [`${address}.passed`, String(results.passed)],
    ]);
  }
  const place = address.startsWith("deployment.") ? deploymentResults({ results }) : undefined;
  if (!place) return {};
  return {
    [`${address}.checkpoint`]: weightsOf(place),
    [`${address}.training_checkpoint`]: place.training,
    [`${address}.step`]: place.step,
  };
}

export async function output(
  context: CommandContext,
  name: string | undefined,
  flags: Partial<SpecOptions>,
): Promise<ExitCode> {
  const found = await records(context, flags);
  const outputs = outputsOf(found);
  if (name !== undefined) {
    const value =
      outputs[name] ??
      fail(
        "RL9009",
        `There is no output ${name}.${didYouMean(name, Object.keys(outputs))} \`rlcli output\` lists them.`,
      );
    context.out(`${context.isJson ? JSON.stringify(value) : value}\n`);
    return EXIT.done;
  }
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: OUTPUT_JSON_VERSION, outputs })}\n`);
  else for (const [key, value] of Object.entries(outputs)) context.out(`${key} = ${value}\n`);
  if (!context.isJson && found.size === 0) context.err(NOTHING_APPLIED);
  return EXIT.done;
}

/** Puts a record back that an apply could not store. Refused if the state has moved on since. */
export async function statePush(context: CommandContext, file: string, flags: Partial<SpecOptions>): Promise<ExitCode> {
  let saved: unknown;
  try {
    saved = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const isMissing = isFileSystemError(error) && error.code === "ENOENT";
    const why = isMissing ? `There is no file ${file}.` : `${file} is not a recovery file: ${messageOf(error)}.`;
    return fail("RL9009", `${why} Name the one that a failed apply named.`);
  }
  if (!isRecoveryFile(saved)) {
    return fail(
      "RL9009",
      `${file} is not a recovery file of this version of rlcli. It should be one that a failed apply named.`,
    );
  }
  const { draft, expect } = saved;
  const { store } = await openBeside(context, flags);
  const written = await withLease(store, draft.address, "rlcli state push", (lease) =>
    store.write(draft, { expect, fence: lease.record.token }),
  );
  if (context.isJson) {
    const { address, version } = written;
    context.out(`${JSON.stringify({ formatVersion: OUTPUT_JSON_VERSION, address, version })}\n`);
    return EXIT.done;
  }
  context.out(`Stored ${written.address} as version ${written.version}. ${file} is not needed any more.\n`);
  return EXIT.done;
}

/** Marks a record, so that the next apply makes the thing anew as `--replace` would; or takes the mark away. */
export async function stateTaint(
  context: CommandContext,
  text: string,
  isTainted: boolean,
  flags: Partial<SpecOptions>,
): Promise<ExitCode> {
  const { store } = await openBeside(context, flags);
  const { address } = pick(await records(context, flags), text);
  const verb = isTainted ? "taint" : "untaint";
  const written = await withLease(store, address, `rlcli state ${verb}`, async (lease) => {
    const record = await store.read(address);
    if (!record) return fail("RL9009", `${address} has left the state meanwhile.`);
    const { formatVersion: _, version, updatedAt: __, fence: ___, tainted = false, ...draft } = record;
    if (tainted === isTainted) return record;
    return store.write(isTainted ? { ...draft, tainted: true } : draft, { expect: version, fence: lease.record.token });
  });
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: OUTPUT_JSON_VERSION, address, version: written.version })}\n`);
    return EXIT.done;
  }
  context.out(
    isTainted
      ? `${address} is tainted: the next apply makes it anew. \`rlcli state untaint ${address}\` takes that back.\n`
      : `${address} is not tainted.\n`,
  );
  return EXIT.done;
}
