// Loads TypeScript of the repository that is no entry of dist/, bundled on the spot: Node 20 cannot run it as it is.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));

/** All exports of the files (paths from the repository's root) as one module. Bundled below the project, so that packages are found. */
export async function loadSources(files) {
  const folder = await mkdtemp(join(root, "node_modules/.bench-"));
  const entry = join(folder, "entry.ts");
  await writeFile(entry, files.map((file) => `export * from ${JSON.stringify(root + file)};\n`).join(""));
  const bundle = await rolldown({
    input: entry,
    platform: "node",
    external: [/^node:/, "@jax-js/jax", "dockerode"],
    logLevel: "silent",
  });
  await bundle.write({ file: join(folder, "sources.mjs"), format: "esm" });
  const sources = await import(pathToFileURL(join(folder, "sources.mjs")).href);
  await rm(folder, { recursive: true });
  return sources;
}
