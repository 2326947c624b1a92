/** Folders of the host as lists of entries: for build contexts, for what is copied into a container, for digests. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

export type TreeEntry =
  | {
      readonly type: "file";
      readonly path: string;
      readonly mode: number;
      readonly from: string;
      readonly size: number;
    }
  | { readonly type: "folder"; readonly path: string; readonly mode: number }
  | { readonly type: "link"; readonly path: string; readonly target: string };

/** All below a folder, by path with `/`, in order of code units; sockets, fifos and devices are left out. */
export function readTree(folder: string, ignores: (path: string) => boolean = () => false): readonly TreeEntry[] {
  const entries: TreeEntry[] = [];
  const walk = (below: string): void => {
    for (const name of readdirSync(join(folder, below)).sort()) {
      const path = below === "" ? name : `${below}/${name}`;
      const from = join(folder, path);
      const stats = lstatSync(from);
      const isIgnored = ignores(path);
      if (stats.isDirectory()) {
        if (!isIgnored) entries.push({ type: "folder", path, mode: stats.mode & 0o777 });
        // A later rule may take back single files of an ignored folder.
        walk(path);
      } else if (isIgnored) continue;
      else if (stats.isSymbolicLink()) entries.push({ type: "link", path, target: readlinkSync(from) });
      else if (stats.isFile()) entries.push({ type: "file", path, mode: stats.mode & 0o777, from, size: stats.size });
    }
  };
  walk("");
  return entries;
}

/** The same with one file made executable, as `chmod +x` in the sandbox would, and without the command. A link's target is not. */
export const withExecutable = (entries: readonly TreeEntry[], path: string): readonly TreeEntry[] =>
  entries.map((entry) =>
    entry.path === path && entry.type === "file" ? { ...entry, mode: entry.mode | 0o111 } : entry,
  );

export const isFile = (entries: readonly TreeEntry[], path: string): boolean =>
  entries.some((entry) => entry.path === path && entry.type === "file");

export const bytesOf = (entry: Extract<TreeEntry, { type: "file" }>): Buffer => readFileSync(entry.from);
