/**
 * Containers and layers of builds that are under way: the daemon gives them no labels, and whoever is killed in the middle cannot
 * remove them. Their ids are written down as they are told, so that they are found again.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type Docker from "dockerode";
import { temporaryName, writeFileWhole } from "../../files.ts";
import { statusOf } from "./daemon.ts";
import { type Owner, ownOwner, verdictOf } from "./labels.ts";
import { removeContainer } from "./reap.ts";

interface BuildNote {
  readonly owner: Owner;
  /** The first 12 hex digits, as the builder tells them. */
  readonly containers: readonly string[];
  /** Likewise; only those that this build made. */
  readonly layers?: readonly string[];
}

export class BuildJournal {
  readonly #path: string;
  readonly #containers: string[] = [];
  readonly #layers: string[] = [];

  constructor(folder: string) {
    mkdirSync(join(folder, "building"), { recursive: true });
    this.#path = temporaryName(join(folder, "building", "build")).replace(/\.tmp$/, ".json");
  }

  addContainer(id: string): void {
    this.#containers.push(id);
    this.#write();
  }

  addLayer(id: string): void {
    this.#layers.push(id);
    this.#write();
  }

  #write(): void {
    const note: BuildNote = { owner: ownOwner(), containers: this.#containers, layers: this.#layers };
    writeFileWhole(this.#path, JSON.stringify(note), { durable: false });
  }

  /** The image is there: what it does not stand on, of other stages, is nobody's any more. */
  async succeeded(docker: Docker): Promise<void> {
    this.#containers.splice(0);
    await this.sweep(docker);
  }

  /** Removes what is still there; where the daemon does not answer, the next command tries again. */
  sweep(docker: Docker): Promise<void> {
    return removeAll(docker, this.#path, this.#containers, this.#layers);
  }
}

/** Removes what builds of processes that are gone left on the daemon; what cannot be removed now stays written down. */
export async function reapBuilds(docker: Docker, folder: string): Promise<void> {
  for (const { path, note } of notesIn(join(folder, "building"))) {
    const verdict = note ? verdictOf(note.owner) : "dead";
    if (verdict === "dead") await removeAll(docker, path, note?.containers ?? [], note?.layers ?? []);
  }
}

async function removeAll(
  docker: Docker,
  path: string,
  containers: readonly string[],
  layers: readonly string[],
): Promise<void> {
  try {
    for (const id of containers) await removeContainer(docker, id);
    await removeLayers(docker, layers);
    rmSync(path, { force: true });
  } catch {
    // The next command tries again.
  }
}

/** The last first; those that have a name, or on which something stands, stay. */
async function removeLayers(docker: Docker, layers: readonly string[]): Promise<void> {
  for (const layer of layers.toReversed()) {
    const image = docker.getImage(layer);
    try {
      const { RepoTags } = await image.inspect();
      if ((RepoTags ?? []).length === 0) await image.remove({ noprune: true });
    } catch (error) {
      const status = statusOf(error);
      if (status !== 404 && status !== 409) throw error;
    }
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
