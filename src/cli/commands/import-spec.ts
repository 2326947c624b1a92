/** `rlcli import --emit-spec`: the dataset of a spec whose `import:` gives the same rows. */
import { resolve } from "node:path";
import type { ImportFields } from "../../datasets/options.ts";
import { fail } from "../../diagnostic.ts";
import { isRemoteAddress } from "../../url.ts";
import { blockOf } from "../adhoc/work.ts";
import { absoluteModel, emittedText, refuseCredentials } from "../adhoc.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import type { ImportFlags } from "./import.ts";

/** Fails with RL9003 for standard input, and with RL1308 for an address with a secret in it. */
export function emitDataset(
  context: CommandContext,
  files: readonly string[],
  flags: ImportFlags,
  { model, ...fields }: ImportFields,
): ExitCode {
  if (files.includes("-")) fail("RL9003", "A spec cannot read standard input: name files for --emit-spec.");
  refuseCredentials(files);
  const block = blockOf({
    format: flags.format,
    from: files.map((file) => (isRemoteAddress(file) ? file : resolve(context.cwd, file))),
    ...fields,
    model: model === undefined ? undefined : absoluteModel(context, model),
    strict: flags.strict,
    max_errors: flags.maxErrors,
  });
  context.out(emittedText(context, { datasets: { data: { import: block } } }, { files, model }));
  return EXIT.done;
}
