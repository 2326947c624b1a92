/** What `rlcli import` reads: files and globs here, standard input, and files at addresses, which are streamed. */
import type { LineSource } from "../../datasets/convert.ts";
import { findSources, openChunks, openSource } from "../../datasets/sources.ts";
import { tableForm } from "../../datasets/tables.ts";
import { fail } from "../../diagnostic.ts";
import type { RemoteFile } from "../../remote/file.ts";
import type { RemoteFiles } from "../../remote/remote.ts";
import { isRemoteAddress } from "../../url.ts";
import type { CommandContext } from "../context.ts";
import { cacheFolder } from "../project.ts";

/** Closed when nothing more is read. */
export class ImportSources {
  readonly #context: CommandContext;
  #remote: RemoteFiles | undefined;

  constructor(context: CommandContext) {
    this.#context = context;
  }

  /** Fails with RL6001 or RL6002 (files), RL6030 to RL6034 (addresses), RL9003 or RL9005. */
  async open(names: readonly string[]): Promise<LineSource[]> {
    const sources: LineSource[] = [];
    for (const name of names) {
      if (name === "-") sources.push(this.#stdin());
      else if (isRemoteAddress(name)) sources.push(...(await this.#atAddress(name)));
      else sources.push(...(await findSources([name], this.#context.cwd)).map((found) => openSource(found)));
    }
    return sources;
  }

  async close(): Promise<void> {
    await this.#remote?.close();
  }

  #stdin(): LineSource {
    if (process.stdin.isTTY) fail("RL9003", "`-` reads from standard input, and nothing is piped in.");
    return { name: "<stdin>", bytes: process.stdin };
  }

  /** Loaded late: most imports are of files here. */
  async #atAddress(name: string): Promise<LineSource[]> {
    if (/^[^/?#]*:\/\/[^/?#]*@/.test(name))
      fail(
        "RL1308",
        "An address on the command line has a user's name or a password before its `@`, which web servers are not sent. Leave them out.",
      );
    const { RemoteFiles } = await import("../../remote/remote.ts");
    const { env, outputClosed } = this.#context;
    this.#remote ??= new RemoteFiles({ env, signal: outputClosed });
    const remote = this.#remote;
    const sources: LineSource[] = [];
    for (const file of await remote.find(name)) sources.push(await this.#source(remote, file));
    return sources;
  }

  async #source(remote: RemoteFiles, file: RemoteFile): Promise<LineSource> {
    const { nameOf } = await import("../../remote/file.ts");
    const name = nameOf(file);
    return tableForm(name) === "parquet"
      ? this.#downloaded(remote, file, name)
      : openChunks(name, () => remote.chunks(file));
  }

  /** Parquet is read from its end, so it has to be here whole. */
  async #downloaded(remote: RemoteFiles, { address }: RemoteFile, name: string): Promise<LineSource> {
    const [{ BlobCache }, { identityOf }, { cacheRemote, remoteBlobs }] = await Promise.all([
      import("../../remote/cache.ts"),
      import("../../remote/file.ts"),
      import("../../kinds/remote.ts"),
    ]);
    const blobs = new BlobCache(remoteBlobs(cacheFolder(this.#context.env)));
    const [pinned] = await remote.pinned([{ address }]);
    if (!pinned) throw new Error("a file was pinned to nothing");
    await cacheRemote(blobs, remote, pinned, {});
    return openSource({ name, path: blobs.path(identityOf(pinned)) });
  }
}
