/**
 * Containers of builds that are under way: the daemon gives them no labels, and removes them itself unless it is stopped in the
 * middle. Their ids are written down as they are told, so that they are found again.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type Docker from "dockerode";
import { temporaryName, writeFileWhole } from "../../files.ts";
import { type Owner, ownOwner, verdictOf } from "./labels.ts";
import { removeContainer } from "./reap.ts";

interface BuildNote {
  readonly owner: Owner;
  /** The first 12 hex digits, as the builder tells them. */
  readonly containers: readonly string[];
}

export class BuildJournal {
  readonly #path: string;
  readonly #containers: string[] = [];

  constructor(folder: string) {
    mkdirSync(join(folder, "building"), { recursive: true });
    this.#path = temporaryName(join(folder, "building", "build")).replace(/\.tmp$/, ".json");
  }

  add(container: string): void {
    this.#containers.push(container);
    const note: BuildNote = { owner: ownOwner(), containers: this.#containers };
    writeFileWhole(this.#path, JSON.stringify(note), { durable: false });
  }

  /** All went well, or is removed: nothing is to be found again. */
  done(): void {
    rmSync(this.#path, { force: true });
  }

  /** Removes what is still there; where the daemon does not answer, the next command tries again. */
  async sweep(docker: Docker): Promise<void> {
    try {
      for (const id of this.#containers) await removeContainer(docker, id);
      this.done();
    } catch {
      // It stays written down.
    }
  }
}

/** Removes what builds of processes that are gone left on the daemon. */
export async function reapBuilds(docker: Docker, folder: string): Promise<void> {
  for (const { path, note } of notesIn(join(folder, "building"))) {
    const verdict = note ? verdictOf(note.owner) : "dead";
    if (verdict !== "dead") continue;
    for (const id of note?.containers ?? []) await removeContainer(docker, id);
    rmSync(path, { force: true });
  }
}

function notesIn(folder: string): readonly { readonly path: string; readonly note: BuildNote | undefined }[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  } catch {
    return [];
  }
  return names.map((name) => {
    const path = join(folder, name);
    try {
      return { path, note: JSON.parse(readFileSync(path, "utf8")) as BuildNote };
    } catch {
      return { path, note: undefined };
    }
  });
}
