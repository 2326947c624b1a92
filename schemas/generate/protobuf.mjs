// The messages of schemas/tinker.proto as TypeScript, by buf and protoc-gen-es, both from npm; neither asks the network.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const OPTIONS = ["target=ts", "erasable_syntax=true", "elide_plugin_version=true"];

/** The generated module for `schemas/{name}.proto`. */
export async function messagesOf(root, name) {
  const out = await mkdtemp(join(tmpdir(), "rlcli-proto-"));
  try {
    const bin = join(root.pathname, "node_modules", ".bin");
    const plugin = { local: join(bin, "protoc-gen-es"), out, opt: OPTIONS };
    const template = JSON.stringify({ version: "v2", plugins: [plugin] });
    const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
    await promisify(execFile)(join(bin, "buf"), ["generate", "schemas", "--template", template], {
      cwd: root.pathname,
      env,
    });
    return await readFile(join(out, `${name}_pb.ts`), "utf8");
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}
