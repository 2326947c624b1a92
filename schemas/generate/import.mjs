// Imports a TypeScript module of src/ on a Node that cannot do so itself, by bundling it into a temporary file.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

/** What the module imports lazily stays out: it is never run here. */
const isLazy = (id, _importer, isResolved) => !isResolved && /^\.\.?\/commands\//.test(id);

export async function importTypeScript(url) {
  const folder = await mkdtemp(join(tmpdir(), "rlcli-generate-"));
  try {
    const file = join(folder, "module.mjs");
    const bundle = await rolldown({
      input: fileURLToPath(url),
      platform: "node",
      logLevel: "warn",
      external: isLazy,
      transform: { define: { __RLCLI_VERSION__: '""' } },
    });
    await bundle.write({ file, format: "esm" });
    await bundle.close();
    return await import(pathToFileURL(file).href);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
