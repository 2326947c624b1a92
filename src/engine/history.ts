/**
 * The apply journal: every event of every apply, a file each under `.rlcli/applies/`. The begin and end of each change are on
 * disk before work goes on, so that a crash leaves a known question.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type EngineEvent, EVENT_VERSION } from "../event.ts";
import { JsonLinesFile } from "../files.ts";

export interface EventHistory {
  append(event: EngineEvent): void;
  close(): void;
}

const KEPT_APPLIES = 50;

/** Opens a new file on the first event; older ones beyond the last fifty go. */
export function recordEvents(dataFolder: string): EventHistory {
  const folder = join(dataFolder, "applies");
  let file: JsonLinesFile | undefined;
  return {
    append(event) {
      if (event.type === "change.run") return;
      if (!file) {
        const stamp = event.at.replace(/[:.]/g, "-");
        file = new JsonLinesFile(join(folder, `${stamp}-${randomBytes(2).toString("hex")}.jsonl`));
        prune(folder);
      }
      file.append({ formatVersion: EVENT_VERSION, ...event });
      if (event.type === "change.start" || event.type === "change.end" || event.type === "apply.end") file.sync();
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
