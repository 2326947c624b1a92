/** Checkpoint paths: `tinker://{run}/{kind}/{name}`. Run ids may hold colons, so this is not a URL to parse. */

export type CheckpointKind = "weights" | "sampler_weights" | "external_weights";

export interface CheckpointPath {
  readonly run: string;
  readonly kind: CheckpointKind;
  readonly name: string;
}

const KINDS: ReadonlySet<string> = new Set(["weights", "sampler_weights", "external_weights"]);

/** Splits a path; the two-part form that SkyRL gives to sampler weights is understood. Undefined if it is not a path. */
export function parseCheckpointPath(text: string): CheckpointPath | undefined {
  const parts = /^tinker:\/\/([^/]+)\/(?:([^/]+)\/)?([^/]+)$/.exec(text);
  if (!parts) return undefined;
  const [, run, kind = "sampler_weights", name] = parts as unknown as [string, string, string | undefined, string];
  return KINDS.has(kind) ? { run, kind: kind as CheckpointKind, name } : undefined;
}

export function formatCheckpointPath({ run, kind, name }: CheckpointPath): string {
  return `tinker://${run}/${kind}/${name}`;
}

/** The three-part form; text that is no checkpoint path stays as it is. */
export function normalCheckpointPath(text: string): string {
  const path = parseCheckpointPath(text);
  return path ? formatCheckpointPath(path) : text;
}

/** The path of a run's REST calls. Colons, which ids may hold, stay as they are. */
export function runUrl(run: string): string {
  return `/training_runs/${encodeURIComponent(run).replaceAll("%3A", ":")}`;
}

/** The path of a checkpoint's REST calls. Throws RangeError for text that is no checkpoint path. */
export function checkpointUrl(path: string): string {
  const parts = parseCheckpointPath(path);
  if (!parts) throw new RangeError(`${path} is not a checkpoint path`);
  return `${runUrl(parts.run)}/checkpoints/${parts.kind}/${encodeURIComponent(parts.name)}`;
}

/** SkyRL's times carry no zone and are UTC. */
export function utcTime(time: string): string {
  return /[zZ]$|[+-]\d\d:?\d\d$/.test(time) ? time : `${time}Z`;
}
