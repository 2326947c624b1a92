/** Looks at a server that is not ours to start: does it answer, and does it serve the model that the spec names? */
import type { Drift } from "../change.ts";
import type { Observation, ProjectContext } from "../kind.ts";
import { openClient } from "./client.ts";
import type { ServerSettings } from "./connect.ts";

/** Unreachable is `unknown`: nothing is concluded from silence. */
export async function probeServer(
  settings: ServerSettings,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<Observation<undefined>> {
  const unknown = (message: string): Observation<undefined> => ({
    status: "unknown",
    seen: undefined,
    drift: [{ message, mend: "none" }],
  });
  try {
    const client = await openClient(settings, project, signal);
    try {
      const models = await client.capabilities({ signal });
      const names = models.map((model) => model.modelName).filter((name) => name !== undefined);
      const drift: Drift[] =
        names.length === 0 || names.includes(settings.model)
          ? []
          : [{ message: `it serves ${names.join(", ")}, not ${settings.model}`, mend: "none" }];
      return { status: "present", seen: undefined, drift };
    } finally {
      await client.close();
    }
  } catch {
    return unknown(`it does not answer at ${settings.url}`);
  }
}
