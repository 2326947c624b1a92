/** What a reference resolved to, as `rlcli.lock` and the cache keep it. */
import type { Digest } from "../digest.ts";
import type { LockEntry } from "../lock.ts";

export interface PinnedFile {
  readonly [key: string]: string | number;
  /** Within the repository. */
  readonly path: string;
  readonly digest: Digest;
  readonly bytes: number;
}

/** What a reference resolved to. */
export interface PinnedDataset extends LockEntry {
  readonly type: "hub-dataset";
  readonly id: string;
  /** The branch or tag that was looked at. */
  readonly revision: string;
  readonly commit: string;
  readonly config: string;
  readonly split: string;
  readonly files: readonly PinnedFile[];
  /** Of Parquet files, where the README tells. */
  readonly columns?: readonly string[];
}

/** Whether a lock's entry has the shape of one of ours. */
export function isPinnedDataset(entry: LockEntry): entry is PinnedDataset {
  const { type, id, commit, files, columns = [] } = entry as Partial<PinnedDataset>;
  const isFile = ({ path, digest, bytes }: PinnedFile) =>
    typeof path === "string" && /^sha256:[0-9a-f]{64}$/.test(digest) && Number.isSafeInteger(bytes);
  return (
    type === "hub-dataset" &&
    typeof id === "string" &&
    typeof commit === "string" &&
    Array.isArray(files) &&
    Array.isArray(columns) &&
    columns.every((column) => typeof column === "string") &&
    files.length > 0 &&
    files.every(isFile)
  );
}
