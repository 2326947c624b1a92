/** `rlcli validate`: reads the spec and says what is wrong with it. Looks at nothing but the files and the environment. */
import { KINDS, type KindName } from "../../address.ts";
import { hasErrors } from "../../diagnostic.ts";
import type { Spec } from "../../spec.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import type { SpecOptions } from "../options.ts";
import { loadSpecFor } from "../spec.ts";
import { countDiagnostics, diagnosticsJson, nextCommand } from "../views/diagnostic.ts";

function countKinds(spec: Spec): Partial<Record<KindName, number>> {
  const counts: Partial<Record<KindName, number>> = {};
  for (const { kind } of spec.nodes.values()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

const PLURALS: Partial<Record<KindName, string>> = { loss: "losses" };

function countWords(spec: Spec): string {
  const counts = countKinds(spec);
  const parts = KINDS.flatMap((kind) => {
    const n = counts[kind] ?? 0;
    return n === 0 ? [] : [`${n} ${n === 1 ? kind : (PLURALS[kind] ?? `${kind}s`)}`];
  });
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
}

export async function validate(context: CommandContext, options: Partial<SpecOptions>): Promise<ExitCode> {
  const { spec, diagnostics } = await loadSpecFor(context, options);
  const isValid = spec !== undefined && !hasErrors(diagnostics);
  if (context.isJson) {
    const about = spec === undefined ? {} : { project: spec.project, blocks: [...spec.nodes.keys()] };
    context.out(diagnosticsJson(diagnostics, { valid: isValid, ...about }));
    return isValid ? EXIT.done : EXIT.failed;
  }
  context.report(diagnostics);
  if (!isValid) {
    const next = nextCommand(diagnostics);
    context.err(`\n${countDiagnostics(diagnostics)}${next === undefined ? "" : `; \`${next}\` says more`}\n`);
    return EXIT.failed;
  }
  const n = spec.nodes.size;
  context.out(
    `${context.style.green("Valid:")} ${n} block${n === 1 ? "" : "s"}${countWords(spec)} in project ${spec.project}.\n`,
  );
  return EXIT.done;
}
