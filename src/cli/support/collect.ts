/** What goes into a support bundle. Reads, and never fails for a file that cannot be read: what is missing is told in its place. */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../diagnostic.ts";
import { errorLines } from "../../servers/log.ts";

export interface BundleFile {
  /** Path within the bundle. */
  readonly name: string;
  readonly text: string;
}

export interface CollectOptions {
  /** `.rlcli` of the project. */
  readonly dataFolder: string;
  /** Only these runs; all where undefined. */
  readonly run?: string;
  /** Answers and the first rows of datasets too. */
  readonly withData: boolean;
}

/** Of a file that grows: its end, which tells what happened last. */
const TAIL_BYTES = 200_000;
/** Of one thing, the newest few: generations of a run, applies. */
const NEWEST = 3;
/** Of a dataset, with its data. */
const FIRST_ROWS = 20;

const RUN_FILES = [
  "spec.json",
  "worker.json",
  "journal.jsonl",
  "metrics.jsonl",
  "events.jsonl",
  "checkpoints.jsonl",
  "evals.jsonl",
  "log.txt",
];
const SERVER_FILES = ["log.txt", "log.1.txt", "crash.json", "stopped.json", "config.json"];

export function collect(options: CollectOptions): readonly BundleFile[] {
  const { dataFolder } = options;
  return [
    ...stateFiles(dataFolder),
    ...newest(join(dataFolder, "applies")).map((name) => tailOf(dataFolder, `applies/${name}`)),
    ...childrenOf(join(dataFolder, "runs"))
      .filter((name) => options.run === undefined || name === options.run)
      .flatMap((name) => runFiles(options, `runs/${name}`)),
    ...childrenOf(join(dataFolder, "servers")).flatMap((name) =>
      SERVER_FILES.map((file) => `servers/${name}/${file}`)
        .filter((file) => existsSync(join(dataFolder, file)))
        .map((file) => tailOf(dataFolder, file)),
    ),
    ...(options.withData ? datasetHeads(dataFolder) : []),
  ];
}

function stateFiles(dataFolder: string): BundleFile[] {
  return [
    "state/lineage.json",
    ...["records", "leases"].flatMap((kind) =>
      childrenOf(join(dataFolder, "state", kind)).map((name) => `state/${kind}/${name}`),
    ),
  ]
    .filter((name) => existsSync(join(dataFolder, name)))
    .map((name) => tailOf(dataFolder, name));
}

/** The newest generations, each with its newest incarnations. */
function runFiles({ dataFolder, withData }: CollectOptions, run: string): BundleFile[] {
  const folders = newest(join(dataFolder, run)).flatMap((generation) =>
    newest(join(dataFolder, run, generation)).map((incarnation) => `${run}/${generation}/${incarnation}`),
  );
  return folders.flatMap((folder) => {
    const rollouts = withData ? newest(join(dataFolder, folder, "rollouts")).map((name) => `rollouts/${name}`) : [];
    return [...RUN_FILES, ...rollouts]
      .map((name) => `${folder}/${name}`)
      .filter((name) => existsSync(join(dataFolder, name)))
      .map((name) => tailOf(dataFolder, name));
  });
}

function datasetHeads(dataFolder: string): BundleFile[] {
  return childrenOf(join(dataFolder, "datasets")).map((digest) => {
    const name = `datasets/${digest}/rows.jsonl`;
    const { text } = tailOf(dataFolder, name, "head");
    return { name, text: text.split("\n", FIRST_ROWS).join("\n") };
  });
}

function childrenOf(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

/** By name, which holds a time or a number, or else by nothing better. */
const newest = (folder: string): string[] => childrenOf(folder).slice(-NEWEST);

/** A file's last bytes from a line's start on, or its first ones. */
function tailOf(root: string, name: string, end: "tail" | "head" = "tail"): BundleFile {
  try {
    const fd = openSync(join(root, name), "r");
    try {
      const { size } = fstatSync(fd);
      const from = end === "tail" ? Math.max(0, size - TAIL_BYTES) : 0;
      const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
      const text = bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, from));
      return { name, text: from === 0 ? text : `… ${from} bytes before\n${text.slice(text.indexOf("\n") + 1)}` };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    return { name, text: `cannot be read: ${messageOf(error)}\n` };
  }
}

/** The lines of servers' and runs' logs that tell of faults, together, for whoever reads only one file. */
export function faultLines(files: readonly BundleFile[]): BundleFile | undefined {
  const found = files
    .filter(({ name }) => /log(\.1)?\.txt$/.test(name))
    .flatMap(({ name, text }) => errorLines(text).map((line) => `${name}: ${line}`));
  return found.length === 0 ? undefined : { name: "faults.txt", text: `${found.join("\n")}\n` };
}

/** A spec's file as it is, or why it is not there. */
export function specFile(path: string, name: string): BundleFile {
  try {
    return { name: `spec/${name}`, text: readFileSync(path, "utf8") };
  } catch (error) {
    return { name: `spec/${name}`, text: `cannot be read: ${messageOf(error)}\n` };
  }
}
