/** `uv`, which makes Python environments and under which SkyRL must be started. */
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fail } from "../../diagnostic.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Where uv's own installers put it, for shells whose PATH has not been read again since. */
const usualPlaces = (env: Env): readonly string[] => {
  const home = env.HOME ?? homedir();
  return [join(home, ".local", "bin"), join(home, ".cargo", "bin"), "/opt/homebrew/bin", "/usr/local/bin"];
};

/** The path of uv: RLCLI_UV, else from PATH, else where it is usually installed. */
export function findUv(env: Env): string | undefined {
  if (env.RLCLI_UV) return isProgram(env.RLCLI_UV) ? env.RLCLI_UV : undefined;
  const folders = [...(env.PATH ?? "").split(delimiter).filter((folder) => folder !== ""), ...usualPlaces(env)];
  return folders.map((folder) => join(folder, "uv")).find(isProgram);
}

export const HOW_TO_GET_UV =
  "Install it with `curl -LsSf https://astral.sh/uv/install.sh | sh`, `pip install uv` or `brew install uv`, or name it with RLCLI_UV.";

/** Throws RL5021 where there is none. */
export function requireUv(env: Env): string {
  const named = env.RLCLI_UV ? `RLCLI_UV names ${env.RLCLI_UV}, which is no program. ` : "";
  return (
    findUv(env) ??
    fail(
      "RL5021",
      `${named}SkyRL servers run in a Python environment that uv makes, and uv was not found. ${HOW_TO_GET_UV}`,
    )
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
