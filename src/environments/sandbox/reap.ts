/** Removing containers for certain, and those of processes that are gone. */
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { fail } from "../../diagnostic.ts";
import { statusOf, wordsOf } from "./daemon.ts";
import { CREATED, KEPT_NAME, type Labels, MANAGED, PROJECT, RUN, type Verdict, verdictOn } from "./labels.ts";

const POLL_MS = 100;
/** A busy daemon takes its time for one that somebody else removes already. */
const LIMIT_MS = 60_000;

/** By id or name; one that is not there is removed already. Returns once it is gone. Fails with RL7303. */
export async function removeContainer(docker: Docker, id: string): Promise<void> {
  const container = docker.getContainer(id);
  const until = performance.now() + LIMIT_MS;
  let last = "";
  for (let tries = 0; tries === 0 || performance.now() < until; tries += 1) {
    try {
      await container.remove({ force: true, v: true });
    } catch (error) {
      const status = statusOf(error);
      if (status === 404) return;
      // 409: somebody (its own end) removes it already.
      last = wordsOf(error);
      await sleep(status === 409 ? POLL_MS : POLL_MS * Math.min(20, 2 ** tries));
      continue;
    }
    return;
  }
  fail("RL7303", `The container ${id} is not removed: ${last}.`);
}

export interface FoundContainer {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly state: string;
  readonly created: string;
  readonly project: string;
  readonly run: string;
  readonly verdict: Verdict;
  /** Left on request. */
  readonly isKept: boolean;
}

/** All containers of ours on a daemon, whoever's they are. */
export async function listSandboxes(docker: Docker): Promise<readonly FoundContainer[]> {
  const found = await docker.listContainers({ all: true, filters: { label: [`${MANAGED}=1`] } });
  return found.map(({ Id, Names, Image, State, Labels: labels }) => {
    const name = (Names[0] ?? "").replace(/^\//, "");
    return {
      id: Id,
      name,
      image: Image,
      state: State,
      created: labels[CREATED] ?? "",
      project: labels[PROJECT] ?? "",
      run: labels[RUN] ?? "",
      verdict: verdictOn(labels as Labels),
      isKept: name.startsWith(KEPT_NAME),
    };
  });
}

/**
 * Removes containers whose process is gone or whose lifetime is over. Nobody else's, and none that is kept. One that cannot be removed
 * now is left to the next who comes: it is not the caller's.
 */
export async function reap(docker: Docker): Promise<void> {
  const dead = (await listSandboxes(docker)).filter(({ verdict, isKept }) => verdict === "dead" && !isKept);
  await Promise.allSettled(dead.map(({ id }) => removeContainer(docker, id)));
}

export interface FoundImage {
  readonly id: string;
  readonly names: readonly string[];
  readonly bytes: number;
  readonly createdMs: number;
}

/** Images of tasks that were built here; nameless ones too. */
export async function listTaskImages(docker: Docker): Promise<readonly FoundImage[]> {
  const found = await docker.listImages({ filters: JSON.stringify({ label: [`${MANAGED}=1`] }) });
  return found.map(({ Id, RepoTags, Size, Created }) => ({
    id: Id,
    names: (RepoTags ?? []).filter((name) => name !== "<none>:<none>"),
    bytes: Size,
    createdMs: Created * 1000,
  }));
}

/** False where a container still uses it. */
export async function removeImage(docker: Docker, { id, names }: FoundImage): Promise<boolean> {
  for (const name of names.length > 0 ? names : [id]) {
    try {
      await docker.getImage(name).remove();
    } catch (error) {
      if (statusOf(error) === 409) return false;
      if (statusOf(error) !== 404) fail("RL7303", `The image ${name} is not removed: ${wordsOf(error)}.`);
    }
  }
  return true;
}
