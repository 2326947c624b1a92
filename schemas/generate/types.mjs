// TypeScript types of a schema, by json-schema-to-typescript.
import { compile } from "json-schema-to-typescript";

/** Marks every property readonly: these values are data that nothing changes. */
function readonlyProperties(code) {
  return code.replace(/^(\s+)(\[k: string\]|[A-Za-z_$][\w$]*\??)(: )/gm, "$1readonly $2$3");
}

export async function typesOf(schema, name) {
  const code = await compile(structuredClone(schema), name, {
    bannerComment: `/** Generated from schemas/${name}.schema.json by schemas/generate.mjs; do not edit. */`,
    additionalProperties: true,
    unknownAny: true,
    ignoreMinAndMaxItems: true,
    style: { printWidth: 120 },
  });
  return readonlyProperties(code);
}
