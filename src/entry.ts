/** Finds the bundled entry points that run as processes or threads of their own. */
import { fileURLToPath } from "node:url";

export type EntryName =
  | "cli"
  | "embedded-server"
  | "embedded-compute"
  | "skyrl-server"
  | "run-worker"
  | "import-worker";

/**
 * The path of an entry of `dist/` (build.mjs lists them). The running bundle may be an entry itself or a chunk below
 * it; sources run by a test runner use the bundle that was built before.
 */
export function entryPath(name: EntryName): string {
  const here = import.meta.url;
  const base = here.endsWith(".ts") ? "../dist/" : here.includes("/chunks/") ? "../" : "./";
  return fileURLToPath(new URL(`${base}${name}.js`, here));
}

/** The absolute path of something that the package ships beside `dist/`, such as `examples/quickstart`. */
export function packagePath(relative: string): string {
  const here = import.meta.url;
  const base = here.includes("/chunks/") ? "../../" : "../";
  return fileURLToPath(new URL(`${base}${relative}`, here));
}
