/**
 * Packages that only some specs need. They are loaded when used, and rlcli works without them until then: what else it needs is in its
 * bundle. Versions are those of package.json (a test compares them), so that what a message says to install is what was tested.
 */
import { fail } from "./diagnostic.ts";

const VERSIONS = { dockerode: "5.0.1" } as const;

export type OptionalPackage = keyof typeof VERSIONS;

export const OPTIONAL_PACKAGES: Readonly<Record<OptionalPackage, string>> = VERSIONS;

/**
 * Imports an optional package: `importOptional("dockerode", "containers", () => import("dockerode"))`. The import stands at the call, so
 * that the bundler sees it. Fails with RL9011 where the package is not installed; what else goes wrong in it is a fault as any other.
 */
export async function importOptional<T>(name: OptionalPackage, purpose: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    return fail(
      "RL9011",
      `${purpose} need the package ${name}, which is not installed. Run \`npm install ${name}@${VERSIONS[name]}\` where rlcli is installed (with -g if it was installed so), then the same command again.`,
      { cause: error },
    );
  }
}

/** The package itself, not something that it imports. */
function isMissing(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const isNotFound = error.code === "ERR_MODULE_NOT_FOUND" || error.code === "MODULE_NOT_FOUND";
  return isNotFound && error.message.includes(`'${name}'`);
}
