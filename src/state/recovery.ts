/** The last resort for a record that cannot be stored: a file beside the user, and the command that puts it back. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAddress } from "../address.ts";
import { type Diagnostic, diagnostic, messageOf, RlcliError } from "../diagnostic.ts";
import { writeFileWhole } from "../files.ts";
import type { StateRecordDraft } from "../state-record.ts";
import type { StateStore, WriteOptions } from "./store.ts";

export const RECOVERY_VERSION = 1;

export interface RecoveryFile {
  readonly formatVersion: typeof RECOVERY_VERSION;
  readonly expect: number;
  readonly draft: StateRecordDraft;
}

const STATUSES: readonly string[] = ["ready", "working", "interrupted", "failed"];

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

/** Whether something read is a whole recovery file: half of one would damage the state it is to mend. */
export function isRecoveryFile(value: unknown): value is RecoveryFile {
  const { formatVersion, expect, draft } = (value ?? {}) as Partial<RecoveryFile>;
  return (
    formatVersion === RECOVERY_VERSION &&
    Number.isInteger(expect) &&
    draft !== undefined &&
    parseAddress(String(draft?.address)) !== undefined &&
    /^sha256:[0-9a-f]{64}$/.test(draft.hash) &&
    Number.isInteger(draft.incarnation) &&
    STATUSES.includes(draft.status) &&
    isObject(draft.attributes) &&
    isObject(draft.results) &&
    Array.isArray(draft.dependsOn)
  );
}

/** The store cannot be used at all, as against a rival's write. */
const UNUSABLE: readonly string[] = ["RL3004", "RL3008"];

/** Stores a record; if the store cannot be written, keeps the record in a recovery file and says how to use it. */
export async function storeRecord(
  store: StateStore,
  draft: StateRecordDraft,
  options: WriteOptions,
  folder: string,
): Promise<readonly Diagnostic[]> {
  try {
    await store.write(draft, options);
    return [];
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
    if (!UNUSABLE.includes(error.diagnostics[0]?.code ?? "")) return error.diagnostics;
    const recovery: RecoveryFile = { formatVersion: RECOVERY_VERSION, expect: options.expect, draft };
    const name = `rlcli-recovery-${draft.address}.json`;
    for (const place of [folder, tmpdir()]) {
      const path = join(place, name);
      try {
        writeFileWhole(path, `${JSON.stringify(recovery, undefined, 1)}\n`);
      } catch {
        continue;
      }
      const detail = `${messageOf(error).replace(/^RL\d+: /, "")} The work on ${draft.address} is done, and its record was kept in ${path}. Once the state can be written again, run \`rlcli state push ${path}\`.`;
      return [diagnostic("RL3004", detail, { address: draft.address })];
    }
    const detail = `${messageOf(error).replace(/^RL\d+: /, "")} No other place could be written either; this is the record: ${JSON.stringify(recovery)}`;
    return [diagnostic("RL3004", detail, { address: draft.address })];
  }
}
