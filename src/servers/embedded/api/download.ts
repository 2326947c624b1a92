/**
 * Checkpoints as archives: `…/archive` answers with a link to `…/download`. Whoever follows it has no key to send, so the
 * link itself is signed and good for two hours.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type CheckpointPath,
  checkpointFolder,
  formatCheckpointPath,
  parseCheckpointPath,
  readCheckpoint,
} from "../../checkpoints.ts";
import { tarOf } from "../tar.ts";
import { refuse } from "./errors.ts";
import { type ApiRequest, Reply, type RouteTable } from "./router.ts";

const GOOD_FOR_MS = 7_200_000;
const DESCRIPTION = "checkpoint.json";

/** The query of a link to `pathname` that needs no key until `expiresMs`. */
function sign(token: string, pathname: string, expiresMs: number): string {
  const signature = createHmac("sha256", token).update(`${pathname} ${expiresMs}`).digest("hex");
  return `expires=${expiresMs}&signature=${signature}`;
}

/** A link that needs no key for two hours. */
export function signedLink(origin: string, token: string, pathname: string): string {
  return `${origin}${pathname}?${sign(token, pathname, Date.now() + GOOD_FOR_MS)}`;
}

/** Whether a request's own link says that it may be answered. */
export function isSigned(token: string, url: URL, nowMs = Date.now()): boolean {
  const expiresMs = Number(url.searchParams.get("expires"));
  if (!url.pathname.endsWith("/download") || !(expiresMs > nowMs)) return false;
  const given = Buffer.from(url.search.slice(1));
  const expected = Buffer.from(sign(token, url.pathname, expiresMs));
  return given.length === expected.length && timingSafeEqual(given, expected);
}

export function downloadRoutes(serverFolder: string, token: string): RouteTable {
  const find = ({ params }: ApiRequest): CheckpointPath => {
    const text = `tinker://${params.run}/${params.kind ?? "sampler_weights"}/${params.name}`;
    const path = parseCheckpointPath(text) ?? refuse(400, `${text} is not a checkpoint's path.`);
    return readCheckpoint(serverFolder, path) ?? refuse(404, `Checkpoint ${text} not found`);
  };
  const pathOf = ({ run, kind, name }: CheckpointPath) =>
    `/api/v1/training_runs/${encodeURIComponent(run)}/checkpoints/${kind}/${name}`;
  const link = (request: ApiRequest) => {
    const pathname = `${pathOf(find(request))}/download`;
    const expiresMs = Date.now() + GOOD_FOR_MS;
    const url = `${request.origin}${pathname}?${sign(token, pathname, expiresMs)}`;
    return new Reply(302, { Location: url, Expires: new Date(expiresMs).toUTCString() }, undefined);
  };
  /** One link for each file of external weights. */
  const fileLinks = (request: ApiRequest) => {
    const path = find(request);
    if (path.kind !== "external_weights") refuse(400, `${formatCheckpointPath(path)} is not external weights.`);
    const expiresMs = Date.now() + GOOD_FOR_MS;
    const files = readdirSync(checkpointFolder(serverFolder, path)).filter((name) => name !== DESCRIPTION);
    const urls = files.map((name) => {
      const pathname = `${pathOf(path)}/files/${name}/download`;
      return [name, `${request.origin}${pathname}?${sign(token, pathname, expiresMs)}`];
    });
    return { urls: Object.fromEntries(urls), expires: new Date(expiresMs).toISOString() };
  };
  const file = (request: ApiRequest) => {
    const folder = checkpointFolder(serverFolder, find(request));
    const name = request.params.file as string;
    if (!readdirSync(folder).includes(name)) refuse(404, `File ${name} not found`);
    return new Reply(200, { "Content-Type": "application/octet-stream" }, readFileSync(join(folder, name)));
  };
  const download = (request: ApiRequest) => {
    const path = find(request);
    const folder = checkpointFolder(serverFolder, path);
    const files = readdirSync(folder).sort();
    const tar = tarOf(files.map((name) => ({ name, bytes: readFileSync(join(folder, name)) })));
    const name = `${path.run}_${path.name}.tar`.replaceAll(":", "_");
    const headers = { "Content-Type": "application/x-tar", "Content-Disposition": `attachment; filename="${name}"` };
    return new Reply(200, headers, tar);
  };
  return {
    "GET /api/v1/training_runs/{run}/checkpoints/{kind}/{name}/archive": link,
    "GET /api/v1/training_runs/{run}/checkpoints/{name}/archive": link,
    "GET /api/v1/training_runs/{run}/checkpoints/{kind}/{name}/download": download,
    "GET /api/v1/training_runs/{run}/checkpoints/{name}/download": download,
    "GET /api/v1/training_runs/{run}/checkpoints/{kind}/{name}/external_weights_urls": fileLinks,
    "GET /api/v1/training_runs/{run}/checkpoints/{kind}/{name}/files/{file}/download": file,
  };
}
