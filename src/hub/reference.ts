/** `hf://ORG/NAME/CONFIG/SPLIT@REVISION`: a dataset on a hub, as specs name it. */
import { type DiagnosticOptions, fail } from "../diagnostic.ts";

export interface HubReference {
  /** As written. */
  readonly text: string;
  /** `ORG/NAME`. */
  readonly id: string;
  readonly config?: string;
  readonly split?: string;
  /** A branch, tag or commit; the hub's `main` where absent. */
  readonly revision?: string;
}

export const isHubName = (source: string): boolean => /^hf:/i.test(source);

const PART = /^[\w.-]+$/;

/** Reads a reference. Fails with RL6022 where it is none. */
export function parseReference(text: string, place: DiagnosticOptions = {}): HubReference {
  const [, path = "", revision] = /^hf:\/\/([^@]*)(?:@(.+))?$/.exec(text) ?? [];
  const [org = "", name = "", config, split, ...more] = path.split("/");
  const parts = [org, name, ...[config, split].filter((part) => part !== undefined)];
  const isDots = (part: string) => /^\.+$/.test(part);
  if (more.length > 0 || text.endsWith("@") || !parts.every((part) => PART.test(part) && !isDots(part))) {
    fail(
      "RL6022",
      `\`${text}\` is not the name of a dataset: it is hf://ORG/NAME, with /CONFIG/SPLIT where it has several and @REVISION for a branch, tag or commit.`,
      place,
    );
  }
  return {
    text,
    id: `${org}/${name}`,
    ...(config === undefined ? {} : { config }),
    ...(split === undefined ? {} : { split }),
    ...(revision === undefined ? {} : { revision }),
  };
}
