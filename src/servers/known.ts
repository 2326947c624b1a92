/**
 * Servers that this user started, in whatever folder: an index without a daemon. An entry only says where to look; what is true stands in
 * the server's own folder. An entry whose server does not run any more is dropped by whoever meets it.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Address } from "../address.ts";
import { digestJson, shortDigest } from "../digest.ts";
import { isFileSystemError, writeFileWhole } from "../files.ts";
import { readRuntime, type ServerRuntime } from "./runtime.ts";

const KNOWN_VERSION = 1;

/** Where a server is. */
export interface ServerPlace {
  readonly address: Address;
  /** The server's own, absolute. */
  readonly folder: string;
  /** That of its spec. Absolute. */
  readonly project: string;
}

export interface KnownServer extends ServerPlace {
  readonly runtime: ServerRuntime;
}

type Env = Readonly<Record<string, string | undefined>>;

/** `rlcli/servers` in the place that XDG names for what only this machine has use for. */
export const indexFolder = (env: Env): string =>
  join(env.XDG_STATE_HOME || join(env.HOME ?? homedir(), ".local", "state"), "rlcli", "servers");

const entryPath = (index: string, { folder }: ServerPlace): string =>
  join(index, `${shortDigest(digestJson({ folder }))}.json`);

/** Makes a running server known. A folder that cannot be written, as of a user without a home, costs nobody a server. */
export function noteServer(index: string, place: ServerPlace): void {
  const path = entryPath(index, place);
  const text = `${JSON.stringify({ formatVersion: KNOWN_VERSION, ...place })}\n`;
  try {
    if (readOr(path) === text) return;
    mkdirSync(index, { recursive: true, mode: 0o700 });
    writeFileWhole(path, text, { durable: false });
    // Whoever starts servers and never lists them leaves no more entries than servers.
    knownServers(index);
  } catch (error) {
    if (!isFileSystemError(error)) throw error;
  }
}

/** Those that run, by the folders of their specs. */
export function knownServers(index: string): readonly KnownServer[] {
  let names: readonly string[];
  try {
    names = readdirSync(index).filter((name) => name.endsWith(".json"));
  } catch {
    return [];
  }
  const found = names.flatMap((name): readonly KnownServer[] => {
    const path = join(index, name);
    const place = parse(readOr(path));
    // Of a later version: not ours to judge.
    if (place === "unknown") return [];
    const seen = place && readRuntime(place.folder);
    if (place && seen?.state === "running") return [{ ...place, runtime: seen.runtime }];
    rmSync(path, { force: true });
    return [];
  });
  const key = ({ project, address }: ServerPlace) => `${project}\0${address}`;
  return found.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** Undefined for what no version wrote. */
function parse(text: string | undefined): ServerPlace | "unknown" | undefined {
  try {
    const { formatVersion, address, folder, project } = JSON.parse(text ?? "") as Partial<ServerPlace> & {
      formatVersion?: unknown;
    };
    if (typeof formatVersion === "number" && formatVersion > KNOWN_VERSION) return "unknown";
    const isWhole = typeof address === "string" && typeof folder === "string" && typeof project === "string";
    return isWhole ? { address, folder, project } : undefined;
  } catch {
    return undefined;
  }
}

function readOr(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
