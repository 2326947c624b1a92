/** Temporary files without a name: whatever ends the program, the system takes them back. */
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Opens an empty file to write and read, seen by nobody else, that is gone once it is closed. */
export function openUnnamed(): number {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-import-"));
  try {
    return openSync(join(folder, "spill"), "wx+", 0o600);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
