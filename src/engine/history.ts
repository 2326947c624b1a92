/**
 * The apply journal: every event of every apply, a file each under `.rlcli/applies/`. The begin and end of each change are on
 * disk before work goes on, so that a crash leaves a known question.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type EngineEvent, EVENT_VERSION } from "../event.ts";
import { isFileSystemError, JsonLinesFile } from "../files.ts";

export interface EventHistory {
  append(event: EngineEvent): void;
  close(): void;
}

const KEPT_APPLIES = 50;

/**
 * Opens a new file on the first event; older ones beyond the last fifty go. Where the history cannot be written (a full disk, a
 * read-only folder) it ends there, and the work goes on until it meets the same itself.
 */
export function recordEvents(dataFolder: string): EventHistory {
  const folder = join(dataFolder, "applies");
  let file: JsonLinesFile | undefined;
  let isLost = false;
  const write = (event: EngineEvent): void => {
    if (!file) {
      const stamp = event.at.replace(/[:.]/g, "-");
      file = new JsonLinesFile(join(folder, `${stamp}-${randomBytes(2).toString("hex")}.jsonl`));
      prune(folder);
    }
    file.append({ formatVersion: EVENT_VERSION, ...event });
    if (event.type === "change.start" || event.type === "change.end" || event.type === "apply.end") file.sync();
  };
  return {
    append(event) {
      if (event.type === "change.run" || isLost) return;
      try {
        write(event);
      } catch (error) {
        if (!isFileSystemError(error)) throw error;
        isLost = true;
      }
    },
    close() {
      file?.close();
    },
  };
}

function prune(folder: string): void {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .sort();
  for (const name of names.slice(0, Math.max(0, names.length - KEPT_APPLIES)))
    rmSync(join(folder, name), { force: true });
}
