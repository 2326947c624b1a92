/**
 * Files that survive a crash: written whole (temporary file, fsync, rename, fsync of the folder) or appended line by
 * line with a tail that can be recovered. Everything rlcli persists goes through here.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, isAbsolute, relative } from "node:path";
import type { Writable } from "node:stream";
import { messageOf } from "./diagnostic.ts";

/** Makes a completed rename or link durable. Folders that cannot be opened for sync (some file systems) are skipped. */
export function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, "r");
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch {
    // Not every file system allows it; the rename itself has still happened.
  }
}

/** Makes what was written to a file durable. */
export function syncFile(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Writes all of `data`, also where the kernel takes it in pieces. */
export function writeFully(fd: number, data: Uint8Array): void {
  for (let at = 0; at < data.length; ) at += writeSync(fd, data, at, data.length - at);
}

/** Waits until a stream takes more, or is closed. */
export function roomIn(out: Writable): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      out.off("drain", go).off("close", go);
      resolve();
    };
    out.on("drain", go).on("close", go);
  });
}

/** A path as somebody in a folder would write it: relative, unless that is longer. What is no absolute path stays as it is. */
export function shortPath(path: string, folder: string): string {
  const short = isAbsolute(path) ? relative(folder, path) || "." : path;
  return short.length < path.length ? short : path;
}

/** A temporary name beside `path`, so that the rename stays on one file system. */
export function temporaryName(path: string): string {
  return `${path}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`;
}

/**
 * The file that a path which a user names for output stands for, through links, to be replaced as a whole; undefined for a device
 * or a pipe, which takes what is written and must stay what it is.
 */
export function replaceable(path: string): string | undefined {
  try {
    const found = statSync(path);
    return found.isFile() || found.isDirectory() ? realpathSync(path) : undefined;
  } catch {
    // Not there yet, or not to be reached: writing tells.
    return path;
  }
}

/** Replaces `path` by `data` in one step: a reader or a crash sees the old file or the new one. */
export function writeFileWhole(
  path: string,
  data: string | Uint8Array,
  options: { mode?: number; durable?: boolean } = {},
): void {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = temporaryName(path);
  try {
    const fd = openSync(temporary, "wx", options.mode ?? 0o644);
    try {
      writeFully(fd, typeof data === "string" ? Buffer.from(data) : data);
      if (options.durable !== false) fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  if (options.durable !== false) syncFolder(dirname(path));
}

/** A file's last bytes as text, from a line's start on, and how many bytes stand before them. Fails as opening it does. */
export function readTail(path: string, mostBytes: number): { readonly text: string; readonly before: number } {
  const fd = openSync(path, "r");
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, mostBytes));
    const read = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, size - bytes.length));
    const cut = size > mostBytes ? read.indexOf(10) + 1 : 0;
    return { text: read.toString("utf8", cut), before: size - bytes.length + cut };
  } finally {
    closeSync(fd);
  }
}

/** One line of a `.jsonl` file that did not parse. `line` counts from 1. */
export interface BadLine {
  readonly line: number;
  readonly offset: number;
  readonly message: string;
}

/** First line of every `.jsonl` file that rlcli keeps. */
interface Header {
  readonly formatVersion: number;
}

export function isHeader(value: unknown): value is Header {
  return typeof value === "object" && value !== null && "formatVersion" in value && Object.keys(value).length === 1;
}

export interface JsonLines<T> {
  /** Without the header. */
  readonly values: readonly T[];
  /** Of the header; undefined for a file without one. */
  readonly formatVersion: number | undefined;
  readonly bad: readonly BadLine[];
  /** Bytes after the last newline: what a crash in the middle of an append leaves. */
  readonly tornBytes: number;
  /** Length of the file up to and with its last newline. */
  readonly completeBytes: number;
}

/** A missing file is an empty one. `completeBytes` goes up to and with the last newline. */
function readComplete(path: string): { readonly bytes: Buffer; readonly completeBytes: number } {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    bytes = Buffer.alloc(0);
  }
  return { bytes, completeBytes: bytes.lastIndexOf(10) + 1 };
}

/** Reads a `.jsonl` file; a missing file is an empty one. The torn tail is reported, not parsed. */
export function readJsonLines<T>(path: string): JsonLines<T> {
  const { bytes, completeBytes } = readComplete(path);
  const values: T[] = [];
  let formatVersion: number | undefined;
  const bad: BadLine[] = [];
  let line = 0;
  for (let start = 0; start < completeBytes; ) {
    const end = bytes.indexOf(10, start);
    line += 1;
    if (end > start) {
      try {
        const value: unknown = JSON.parse(bytes.toString("utf8", start, end));
        if (line === 1 && isHeader(value)) formatVersion = value.formatVersion;
        else values.push(value as T);
      } catch (error) {
        bad.push({ line, offset: start, message: (error as Error).message });
      }
    }
    start = end + 1;
  }
  return {
    values,
    formatVersion,
    bad,
    tornBytes: bytes.length - completeBytes,
    completeBytes,
  };
}

/**
 * Appends JSON lines. A new file begins with a header that names its format. Opening cuts off a torn tail, so a line is
 * either wholly there or was never acknowledged.
 * `append` returns once the bytes are handed to the kernel; `sync` once they are on disk.
 */
export class JsonLinesFile {
  readonly path: string;
  #fd: number;
  constructor(path: string, formatVersion = 1) {
    mkdirSync(dirname(path), { recursive: true });
    this.path = path;
    const { bytes, completeBytes } = readComplete(path);
    this.#fd = openSync(path, "a");
    if (bytes.length > completeBytes) ftruncateSync(this.#fd, completeBytes);
    if (completeBytes === 0) this.append({ formatVersion } satisfies Header);
  }
  append(...values: readonly unknown[]): void {
    writeFully(this.#fd, Buffer.from(values.map((v) => `${JSON.stringify(v)}\n`).join("")));
  }
  sync(): void {
    fdatasyncSync(this.#fd);
  }
  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
  }
}

/** An error of a system call on a file: the disk, the folder or its permissions are at fault, not the program. */
export function isFileSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}

/** Why a file could not be read, to be said after its name: `does not exist`, `is a folder`, … */
export function readFault(error: unknown): string {
  switch ((error as NodeJS.ErrnoException | undefined)?.code) {
    case "ENOENT":
      return "does not exist";
    case "EISDIR":
      return "is a folder";
    case "EACCES":
    case "EPERM":
      return "may not be read by this user";
    case "ENOTDIR":
      return "does not exist: a part of its path is a file";
    default:
      return `cannot be read: ${messageOf(error)}`;
  }
}
