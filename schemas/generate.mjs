// Generates everything that follows from the schemas and from the table of diagnostic codes; with --check it writes nothing
// and fails where a committed file differs. A new schema is one line in `SCHEMAS`.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { cliPage } from "./generate/cli-page.mjs";
import { diagnosticsPage } from "./generate/diagnostics-page.mjs";
import { fieldTable } from "./generate/fields.mjs";
import { importTypeScript } from "./generate/import.mjs";
import { jsonPage } from "./generate/json-page.mjs";
import { messagesOf } from "./generate/protobuf.mjs";
import { resolvedForm, sourceForm } from "./generate/resolve.mjs";
import { specPage } from "./generate/spec-page.mjs";
import { environmentPage, exitCodesPage } from "./generate/topic-pages.mjs";
import { typesOf } from "./generate/types.mjs";
import { validatorModule } from "./generate/validator.mjs";

/**
 * name: file in schemas/. types: where its TypeScript types go. validator: where its precompiled check goes (without the
 * extension; a .mjs and a .d.mts are written). exportName: the check's name. isSpec: written by hand with interpolation
 * and shorthands, which are gone by the time it is checked.
 */
const SCHEMAS = [
  {
    name: "rlcli",
    types: "src/spec.gen.ts",
    validator: "src/config/validate.gen",
    exportName: "validateSpecShape",
    isSpec: true,
  },
];

const root = new URL("..", import.meta.url);

async function generate() {
  /** @type {Map<string, string>} */
  const files = new Map();
  for (const entry of SCHEMAS) {
    const source = JSON.parse(await readFile(new URL(`schemas/${entry.name}.schema.json`, root), "utf8"));
    const schema = entry.isSpec ? resolvedForm(source) : source;
    if (entry.types) files.set(entry.types, await typesOf(schema, entry.name));
    if (entry.validator) {
      const { code, declaration } = validatorModule(schema, entry);
      files.set(`${entry.validator}.mjs`, code);
      files.set(`${entry.validator}.d.mts`, declaration);
    }
    if (entry.isSpec) {
      files.set("src/spec-source.gen.ts", await typesOf(sourceForm(source), entry.name));
      const table = fieldTable(source);
      files.set("src/config/fields.gen.ts", table.code);
      files.set("docs/reference/spec.md", specPage(table.blocks));
    }
  }
  files.set("src/tinker/proto/tinker.gen.ts", await messagesOf(root, "tinker"));
  const { CODES } = await importTypeScript(new URL("src/codes.ts", root));
  files.set("docs/diagnostics.md", diagnosticsPage(CODES));
  const { pageNamed } = await importTypeScript(new URL("src/cli/pages.ts", root));
  files.set("docs/reference/environment.md", environmentPage(pageNamed("environment-variables")));
  files.set("docs/reference/exit-codes.md", exitCodesPage(pageNamed("exit-codes")));
  const { createProgram, examplesOf } = await importTypeScript(new URL("src/cli/program.ts", root));
  const program = createProgram(async () => {});
  files.set("docs/reference/cli.md", cliPage(program, examplesOf));
  const output = JSON.parse(await readFile(new URL("schemas/output.schema.json", root), "utf8"));
  files.set("docs/reference/json.md", jsonPage(program, output));
  return files;
}

async function differs(path, text) {
  const present = await readFile(new URL(path, root), "utf8").catch(() => undefined);
  return present !== text;
}

const isCheck = process.argv.includes("--check");
const stale = [];
for (const [path, text] of await generate()) {
  if (!(await differs(path, text))) continue;
  stale.push(path);
  if (isCheck) continue;
  const url = new URL(path, root);
  await mkdir(dirname(url.pathname), { recursive: true });
  await writeFile(url, text);
}
if (isCheck && stale.length > 0) {
  process.stderr.write(
    `Generated files are stale: ${stale.join(", ")}. Run \`npm run generate\` and commit the result.\n`,
  );
  process.exitCode = 1;
} else if (stale.length > 0) process.stderr.write(`Generated ${stale.join(", ")}.\n`);
