/** A build's context as the daemon gets it, and a name for the image that follows from its content. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Pack, pack } from "tar-stream";
import { dockerIgnore } from "./ignore.ts";
import { bytesOf, readTree, type TreeEntry } from "./tree.ts";

/** Part of every name: another way of building is another image. */
const FORMAT = 1;

/** What Docker's own client would send: `.dockerignore` is obeyed, the Dockerfile and the ignore file always go along. */
export function contextEntries(folder: string): readonly TreeEntry[] {
  const ignoreFile = join(folder, ".dockerignore");
  const rules = existsSync(ignoreFile) ? dockerIgnore(readFileSync(ignoreFile, "utf8")) : undefined;
  const always = new Set(["Dockerfile", ".dockerignore"]);
  const kept = readTree(folder, rules && ((path) => !always.has(path) && rules.ignores(path)));
  return withFolders(kept);
}

/** An ignored folder of which single files are kept goes along, as it does with Docker's client. */
function withFolders(entries: readonly TreeEntry[]): readonly TreeEntry[] {
  const known = new Set(entries.map(({ path }) => path));
  const added: TreeEntry[] = [];
  for (const { path } of entries) {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      const folder = path.slice(0, at);
      if (known.has(folder)) continue;
      known.add(folder);
      added.push({ type: "folder", path: folder, mode: 0o755 });
    }
  }
  return [...entries, ...added].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** 24 hex digits over paths, types, modes, targets and bytes; times and owners do not count. */
export function contextHash(entries: readonly TreeEntry[]): string {
  const hash = createHash("sha256").update(`rlcli-context ${FORMAT}\n`);
  for (const entry of entries) {
    hash.update(JSON.stringify([entry.type, entry.path, entry.type === "link" ? entry.target : entry.mode]));
    if (entry.type === "file") hash.update(createHash("sha256").update(bytesOf(entry)).digest());
  }
  return hash.digest("hex").slice(0, 24);
}

/** `rlcli-harbor:<label>-<hash>`. */
export function imageName(label: string, hash: string): string {
  const slug = label
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, "-")
    .replace(/^[^a-z0-9_]+/, "")
    .slice(0, 80);
  return `rlcli-harbor:${slug === "" ? "task" : slug}-${hash}`;
}

/** Entries as a tar: owned by root, without times, so that equal folders are equal bytes. `prefix` ends in `/` or is empty. */
export function tarOf(entries: readonly TreeEntry[], prefix = ""): Pack {
  const tar = pack();
  const common = { uid: 0, gid: 0, mtime: new Date(0) };
  void (async () => {
    for (const entry of entries) {
      const name = prefix + entry.path;
      if (entry.type === "folder") tar.entry({ ...common, name, type: "directory", mode: entry.mode });
      else if (entry.type === "link") tar.entry({ ...common, name, type: "symlink", linkname: entry.target });
      else await writeFile(tar, { ...common, name, mode: entry.mode }, bytesOf(entry));
    }
    tar.finalize();
  })().catch((error: Error) => tar.destroy(error));
  return tar;
}

function writeFile(tar: Pack, header: { name: string; mode: number }, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    tar.entry(header, bytes, (error) => (error ? reject(error) : resolve()));
  });
}
