/** What goes into a support bundle. Reads, and never fails for a file that cannot be read: what is missing is told in its place. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../diagnostic.ts";
import { readTail } from "../../files.ts";
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
  "wire.1.jsonl",
  "wire.jsonl",
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
    return { name, text: textOf(() => headOf(join(dataFolder, name)).split("\n", FIRST_ROWS).join("\n")) };
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

/** What a file says last. */
function tailOf(root: string, name: string): BundleFile {
  const read = (): string => {
    const { text, before } = readTail(join(root, name), TAIL_BYTES);
    return before === 0 ? text : `… ${before} bytes before\n${text}`;
  };
  return { name, text: textOf(read) };
}

function headOf(path: string): string {
  const fd = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(TAIL_BYTES);
    return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}

function textOf(read: () => string): string {
  try {
    return read();
  } catch (error) {
    return `cannot be read: ${messageOf(error)}\n`;
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
  return { name: `spec/${name}`, text: textOf(() => readFileSync(path, "utf8")) };
}
