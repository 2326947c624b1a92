import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { copyCheckpoints, enterCheckpoints } from "../../src/servers/transfer.ts";
import { python } from "./skyrl/support.ts";

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-transfer-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const everything = (folder: string): readonly string[] => readdirSync(folder, { recursive: true }).map(String).sort();

test("checkpoints of both forms are copied once, whole, and what is missing is told", () => {
  const folder = scratch();
  const [from, to] = [join(folder, "a"), join(folder, "b")];
  write(join(from, "checkpoints/run_1/run.json"), "{}");
  write(join(from, "checkpoints/run_1/weights/step-2/checkpoint.json"), "{}");
  write(join(from, "checkpoints/run_1/weights/step-2/model.safetensors"), "weights");
  write(join(from, "checkpoints/model_2/step-3.tar.gz/checkpoint_0"), "archive");
  const paths = ["tinker://run:1/weights/step-2", "tinker://model_2/weights/step-3", "tinker://model_2/weights/gone"];
  expect(copyCheckpoints(from, to, paths)).toEqual(paths.slice(0, 2));
  expect(everything(to)).toEqual(everything(from));
  // The source is gone, as after a move that was cut off; what has arrived counts.
  rmSync(from, { recursive: true });
  expect(copyCheckpoints(from, to, paths)).toEqual(paths.slice(0, 2));
});

const TABLE = `CREATE TABLE checkpoints (model_id VARCHAR NOT NULL, checkpoint_id VARCHAR NOT NULL, checkpoint_type VARCHAR(8) NOT NULL,
  status VARCHAR(9) NOT NULL, created_at DATETIME NOT NULL, completed_at DATETIME, error_message VARCHAR,
  PRIMARY KEY (model_id, checkpoint_id, checkpoint_type))`;

test.skipIf(python === undefined)("a SkyRL server's database lists what was brought, once", async () => {
  const folder = scratch();
  const environment = join(folder, "environment");
  mkdirSync(join(environment, "bin"), { recursive: true });
  symlinkSync(python as string, join(environment, "bin/python"));
  const query = (sql: string): string =>
    execFileSync(
      python as string,
      [
        "-c",
        "import sqlite3, sys, json\nc = sqlite3.connect(sys.argv[1])\nprint(json.dumps(c.execute(sys.argv[2]).fetchall()))\nc.commit()",
        join(folder, "skyrl.db"),
        sql,
      ],
      { encoding: "utf8" },
    );
  const paths = ["tinker://model_2/weights/step-3", "tinker://model_2/sampler_weights/step-3"];
  await expect(enterCheckpoints(folder, environment, paths)).rejects.toThrow(/RL5014.*no such table/s);
  query(TABLE);
  await enterCheckpoints(folder, environment, paths);
  await enterCheckpoints(folder, environment, paths);
  expect(JSON.parse(query("SELECT model_id, checkpoint_id, checkpoint_type, status FROM checkpoints"))).toEqual([
    ["model_2", "step-3", "TRAINING", "COMPLETED"],
    ["model_2", "step-3", "SAMPLER", "COMPLETED"],
  ]);
  expect(existsSync(join(folder, "skyrl.db"))).toBe(true);
});
