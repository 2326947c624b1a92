/** `rlcli lock`: writes what the spec's moving names stand for; with --upgrade, asks again what is there already. */
import { type Address, parseAddress } from "../../address.ts";
import { type Diagnostic, fail, RlcliError } from "../../diagnostic.ts";
import type { Lock, LockEntry } from "../../lock.ts";
import type { Spec, SpecNode } from "../../spec.ts";
import { canonicalJson } from "../../value.ts";
import { type CommandContext, EXIT, type ExitCode, reportFailure } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import type { OpenProject } from "../project.ts";
import { type LockChange, renderLock } from "../views/lock.ts";
import { toAddress } from "./plan.ts";

export interface LockFlags extends Partial<SpecOptions> {
  readonly upgrade?: boolean;
}

export const LOCK_JSON_VERSION = 1;

/** `target`: the only block whose names are asked again. Entries that nothing needs are left out. */
export async function lock(context: CommandContext, target: string | undefined, flags: LockFlags): Promise<ExitCode> {
  if (target !== undefined && !flags.upgrade)
    fail("RL9003", `\`${target}\` says what to upgrade: write \`rlcli lock --upgrade ${target}\`.`);
  const open = await openWith(context, flags, { lockMode: "edit" });
  const file = open.context.lock as Lock;
  const nodes = namingNodes(open, target === undefined ? undefined : toAddress(target));
  const before = new Map(file.entries);
  const diagnostics = await resolveAll(context, open, file, nodes, flags.upgrade === true);
  const after = file.entries;
  const changes = changesBetween(before, after);
  if (changes.length > 0) file.save();
  const failed = diagnostics.filter(({ severity }) => severity === "error");
  if (failed.length > 0) {
    reportFailure(context, diagnostics);
    return EXIT.failed;
  }
  context.report(diagnostics);
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: LOCK_JSON_VERSION, changes, diagnostics })}\n`);
  else context.out(renderLock(changes, after.size, context.style));
  return EXIT.done;
}

interface NamingNode {
  readonly node: SpecNode;
  readonly names: readonly string[];
  /** Whether it is what the command was called for. */
  readonly isTarget: boolean;
}

/** Blocks whose kind resolves moving names. */
function namingNodes(open: OpenProject, target: Address | undefined): NamingNode[] {
  const spec = open.spec as Spec;
  if (target !== undefined && !spec.nodes.has(target))
    fail("RL9009", `The spec has no ${parseAddress(target)?.kind ?? "block"} at ${target}.`);
  const found = [...spec.nodes.values()].map((node) => {
    const names = open.kinds.get(node.kind)?.lockedNames?.(node) ?? [];
    return { node, names, isTarget: target === undefined || node.address === target };
  });
  const naming = found.filter(({ names }) => names.length > 0);
  if (target !== undefined && !naming.some(({ isTarget }) => isTarget))
    fail("RL9009", `${target} names nothing that moves: only what is on a hub or at an address is locked.`);
  return naming;
}

/** Resolves what is missing; what cannot be resolved keeps the entry it had. */
async function resolveAll(
  context: CommandContext,
  open: OpenProject,
  file: Lock,
  nodes: readonly NamingNode[],
  isUpgrade: boolean,
): Promise<readonly Diagnostic[]> {
  const needed = new Set(nodes.flatMap(({ names }) => names));
  const before = new Map(file.entries);
  file.drop([...before.keys()].filter((name) => !needed.has(name)));
  if (isUpgrade) file.drop(nodes.filter(({ isTarget }) => isTarget).flatMap(({ names }) => names));
  const diagnostics: Diagnostic[] = [];
  for (const { node, names } of nodes) {
    try {
      const resolved = await open.kinds.get(node.kind)?.resolve?.(node, open.context, context.outputClosed);
      diagnostics.push(...(resolved?.diagnostics ?? []));
    } catch (error) {
      if (!(error instanceof RlcliError)) throw error;
      diagnostics.push(...error.diagnostics);
      for (const name of names) {
        const entry = before.get(name);
        if (entry && !file.get(name)) file.restore(name, entry);
      }
    }
  }
  return diagnostics;
}

function changesBetween(before: ReadonlyMap<string, LockEntry>, after: ReadonlyMap<string, LockEntry>): LockChange[] {
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  return names
    .map((name) => ({ name, before: before.get(name) ?? null, after: after.get(name) ?? null }))
    .filter((change) => canonicalJson(change.before) !== canonicalJson(change.after));
}
