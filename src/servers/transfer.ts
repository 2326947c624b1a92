/**
 * Checkpoints from one server's folder to another's on this machine. The path of a checkpoint names the model that saved it and not
 * the server, so it stays the same. Each appears by one rename, complete or not at all, and a second call goes on where the first ended.
 */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { fail } from "../diagnostic.ts";
import { syncFolder, temporaryName } from "../files.ts";
import { archivePath, type CheckpointPath, checkpointFolder, parseCheckpointPath, runFolder } from "./checkpoints.ts";
import { databasePath } from "./skyrl/command.ts";

const execute = promisify(execFile);

/** Copies what is there of `paths` and not yet in `to`; returns the paths that are in `to` now. */
export function copyCheckpoints(from: string, to: string, paths: readonly string[]): readonly string[] {
  return paths.filter((path) => {
    const parsed = parseCheckpointPath(path);
    if (!parsed) return false;
    const places = [checkpointFolder, archivePath];
    const isThere = places.some((placeIn) => copyWhole(placeIn(from, parsed), placeIn(to, parsed)));
    return isThere && copyRunInfo(from, to, parsed);
  });
}

/** True where the target is there in the end. */
function copyWhole(source: string, target: string): boolean {
  if (existsSync(target)) return true;
  if (!existsSync(source)) return false;
  const temporary = temporaryName(target);
  mkdirSync(dirname(target), { recursive: true });
  try {
    cpSync(source, temporary, { recursive: true, preserveTimestamps: true });
    renameSync(temporary, target);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  syncFolder(dirname(target));
  return true;
}

/** What the embedded server knows of the model that saved it; SkyRL has that in its database. */
function copyRunInfo(from: string, to: string, { run }: CheckpointPath): true {
  copyWhole(join(runFolder(from, run), "run.json"), join(runFolder(to, run), "run.json"));
  return true;
}

/**
 * Enters checkpoints into the database of a SkyRL server, which loads only what is listed there (table `checkpoints` of
 * skyrl/tinker/db_models.py at the pinned commit). Its own Python does it, with the module for SQLite that every Python has.
 */
const ENTER = `
import json, sqlite3, sys
from datetime import datetime, timezone
database, rows = sys.argv[1], json.loads(sys.argv[2])
now = datetime.now(timezone.utc).replace(tzinfo=None).isoformat(" ")
with sqlite3.connect(database, timeout=30) as connection:
    connection.executemany(
        "INSERT OR IGNORE INTO checkpoints (model_id, checkpoint_id, checkpoint_type, status, created_at, completed_at)"
        " VALUES (?, ?, ?, 'COMPLETED', ?, ?)",
        [(model, name, kind, now, now) for model, name, kind in rows],
    )
`;

/** `environment` is the folder of the server's Python environment. The server must have been started once. */
export async function enterCheckpoints(folder: string, environment: string, paths: readonly string[]): Promise<void> {
  const rows = paths
    .map((path) => parseCheckpointPath(path))
    .filter((parsed) => parsed !== undefined)
    .map(({ run, kind, name }) => [run, name, kind === "weights" ? "TRAINING" : "SAMPLER"]);
  if (rows.length === 0) return;
  try {
    await execute(join(environment, "bin", "python"), ["-c", ENTER, databasePath(folder), JSON.stringify(rows)]);
  } catch (error) {
    const words = (error as { stderr?: string }).stderr?.trim().split("\n").at(-1) ?? "";
    fail("RL5014", `Checkpoints could not be entered into ${databasePath(folder)}: ${words}. Apply again.`, {
      cause: error,
    });
  }
}
