// Imports a TypeScript module of src/ on a Node that cannot do so itself, by bundling it in memory.
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

export async function importTypeScript(url) {
  const bundle = await rolldown({ input: fileURLToPath(url), platform: "node", logLevel: "warn" });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  return await import(`data:text/javascript;base64,${Buffer.from(output[0].code).toString("base64")}`);
}
