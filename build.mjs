// Bundles src/ into dist/: one ES module per process or thread entry, with shared and lazily loaded code split into chunks,
// so that `rlcli --version` reads one small file and heavy modules load when their command runs.
import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { rolldown } from "rolldown";

/** Every entry must be listed here; `src/entry.ts` finds them by these names beside the running bundle. */
const entries = {
  cli: "src/cli/main.ts",
  "embedded-server": "src/cli/processes/embedded-server.ts",
  "skyrl-server": "src/cli/processes/skyrl-server.ts",
  "embedded-compute": "src/servers/embedded/compute.ts",
  "run-worker": "src/cli/processes/run-worker.ts",
  "import-worker": "src/datasets/worker.ts",
  index: "src/index.ts",
  tinker: "src/tinker/index.ts",
};

const root = new URL(".", import.meta.url);
const { version } = JSON.parse(await readFile(new URL("package.json", root), "utf8"));
const started = performance.now();
// Built aside and moved into place, so that a program started meanwhile finds the old bundle or the new one.
const built = `dist.${process.pid}.tmp`;
const bundle = await rolldown({
  cwd: root.pathname,
  input: entries,
  platform: "node",
  transform: { define: { __RLCLI_VERSION__: JSON.stringify(version) } },
  // dockerode brings native code for ssh that no bundle can hold; it is loaded from node_modules where a sandbox is needed.
  external: [/^node:/, "dockerode"],
  logLevel: "warn",
});
const { output } = await bundle.write({
  dir: built,
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  sourcemap: true,
  minify: false,
});
await bundle.close();
await writeFile(new URL(`${built}/licenses.txt`, root), await licenseTexts(output));
const replaced = `dist.${process.pid}.old`;
await rename(new URL("dist", root), new URL(replaced, root)).catch(() => {});
await rename(new URL(built, root), new URL("dist", root));
await rm(new URL(replaced, root), { recursive: true, force: true });
process.stderr.write(`built dist/ in ${Math.round(performance.now() - started)} ms\n`);

/** The terms of the packages whose code the bundle holds; most ask that their text travels along. */
async function licenseTexts(chunks) {
  const folders = new Set(
    chunks.flatMap(({ moduleIds = [] }) =>
      moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
    ),
  );
  const texts = [];
  for (const folder of [...folders].sort()) {
    const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    texts.push(
      `${name} ${version} (${license})\n\n${file ? (await readFile(`${folder}/${file}`, "utf8")).trim() : ""}\n`,
    );
  }
  return `The files in this folder contain code of these packages:\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
