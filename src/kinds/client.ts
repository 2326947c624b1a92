/** A Tinker client for a server of the spec. Its code loads when one is made: a plan over embedded servers needs none. */
import type { ProjectContext } from "../kind.ts";
import type { TinkerClient } from "../tinker/client.ts";
import { connect, type ServerSettings } from "./connect.ts";

export async function openClient(
  settings: ServerSettings,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<TinkerClient> {
  const [{ TinkerClient: Client }, { url, token }] = await Promise.all([
    import("../tinker/client.ts"),
    connect(settings, project, { signal }),
  ]);
  return new Client({ baseUrl: url, ...(token === undefined ? {} : { apiKey: token }) });
}
