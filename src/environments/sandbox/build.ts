/** Images by their content: built once, by whoever comes first, on this machine; a failed build leaves nothing behind. */
import { join } from "node:path";
import type Docker from "dockerode";
import { withDeadline } from "../../abort.ts";
import { fail, RlcliError } from "../../diagnostic.ts";
import { takeTurn } from "../../turn.ts";
import { BuildJournal } from "./building.ts";
import { contextEntries, contextHash, imageName, tarOf } from "./context.ts";
import { statusOf, wordsOf } from "./daemon.ts";
import { CONTEXT, CREATED, MANAGED } from "./labels.ts";
import type { ImageOrder } from "./sandbox.ts";
import type { TreeEntry } from "./tree.ts";

/** Lines of a failed build that are told. */
const TOLD_LINES = 12;
const MOST_TRIES = 3;
/** As the builder says it of an image that it has made itself, by its id. */
const LAYER_IS_GONE = /no such image: sha256|unknown parent image|layer does not exist/i;

export class ImageStore {
  readonly #docker: Docker;
  readonly #lockFolder: string;
  readonly #images = new Map<string, Promise<string>>();

  /** `lockFolder` is shared by all that use this daemon from this machine. */
  constructor(docker: Docker, lockFolder: string) {
    this.#docker = docker;
    this.#lockFolder = lockFolder;
  }

  /** Fails with RL7302, for the same content every time without trying again. */
  async image(order: ImageOrder): Promise<string> {
    if (order.prebuilt !== undefined) {
      const name = order.prebuilt;
      return this.#once(`pull ${name}`, () => this.#pull(name, order));
    }
    const entries = contextEntries(order.context);
    const name = imageName(order.label, contextHash(entries));
    return this.#once(name, () => this.#build(name, entries, order));
  }

  #once(key: string, make: () => Promise<string>): Promise<string> {
    const known = this.#images.get(key);
    if (known) return known;
    const made = make();
    this.#images.set(key, made);
    // What was not the image's own fault may fare better the next time.
    made.catch((error: unknown) => {
      if (!(error instanceof RlcliError) || error.diagnostics[0]?.code !== "RL7302") this.#images.delete(key);
    });
    return made;
  }

  async #exists(name: string): Promise<boolean> {
    try {
      await this.#docker.getImage(name).inspect();
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      return fail("RL7303", `The daemon cannot look for the image ${name}: ${wordsOf(error)}.`, { cause: error });
    }
  }

  async #build(name: string, entries: readonly TreeEntry[], order: ImageOrder): Promise<string> {
    if (await this.#exists(name)) return name;
    const unlock = await takeTurn(join(this.#lockFolder, "turns", name.replace(/[^a-zA-Z0-9.-]/g, "_")), order.signal);
    try {
      if (await this.#exists(name)) return name;
      const before = new Set((await this.#docker.listImages({ all: true })).map(({ Id }) => Id));
      await new Build(this.#docker, name, order, new BuildJournal(this.#lockFolder), before).run(entries);
      return name;
    } finally {
      unlock();
    }
  }

  async #pull(name: string, { timeoutMs, signal }: ImageOrder): Promise<string> {
    if (await this.#exists(name)) return name;
    try {
      await withDeadline(timeoutMs, signal, async (limit) => {
        const stream: unknown = await this.#docker.pull(name, { abortSignal: limit } as never);
        await readProgress(stream as NodeJS.ReadableStream, () => {});
      });
    } catch (error) {
      signal?.throwIfAborted();
      fail("RL7302", `The image ${name} is not here and cannot be pulled: ${wordsOf(error)}.`, { cause: error });
    }
    return name;
  }
}

/** One build, classic first: BuildKit only where the Dockerfile needs it, since a `# syntax=` line then asks a registry. */
class Build {
  readonly #docker: Docker;
  readonly #name: string;
  readonly #order: ImageOrder;
  readonly #journal: BuildJournal;
  readonly #lines: string[] = [];
  /** Images that were there before; their layers are somebody's cache. */
  readonly #before: ReadonlySet<string>;

  constructor(docker: Docker, name: string, order: ImageOrder, journal: BuildJournal, before: ReadonlySet<string>) {
    this.#before = before;
    this.#journal = journal;
    this.#docker = docker;
    this.#name = name;
    this.#order = order;
  }

  run(entries: readonly TreeEntry[]): Promise<void> {
    const { timeoutMs, signal } = this.#order;
    return withDeadline(timeoutMs, signal, (limit) => this.#run(entries, limit));
  }

  async #run(entries: readonly TreeEntry[], limit: AbortSignal): Promise<void> {
    const { label, timeoutMs, signal } = this.#order;
    try {
      await this.#untilItStands(entries, limit);
      await this.#journal.succeeded(this.#docker);
    } catch (error) {
      await this.#journal.sweep(this.#docker);
      signal?.throwIfAborted();
      if (!limit.aborted && statusOf(error) === undefined && isConnectionLost(error))
        fail("RL7303", `The daemon ended while the image of ${label} was built: ${wordsOf(error)}.`, { cause: error });
      const why = limit.aborted ? `it took longer than ${timeoutMs / 1000} s` : wordsOf(error);
      const last = this.#lines.slice(-TOLD_LINES).map((line) => `\n  ${line}`);
      const told = last.length > 0 ? ` Its last lines:${last.join("")}` : "";
      fail("RL7302", `The image of ${label} cannot be built: ${why}.${told}`, { cause: error });
    }
  }

  /** Of builds with the same beginning one that fails may take away what another stands on: that one begins again. */
  async #untilItStands(entries: readonly TreeEntry[], limit: AbortSignal): Promise<void> {
    let version: "1" | "2" = "1";
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#try(entries, version, limit);
      } catch (error) {
        const words = wordsOf(error);
        const isOther = version === "1" && /requires BuildKit/.test(words);
        if (isOther) version = "2";
        else if (tries >= MOST_TRIES || limit.aborted || !LAYER_IS_GONE.test(words)) throw error;
        this.#lines.splice(0);
      }
    }
  }

  async #try(entries: readonly TreeEntry[], version: "1" | "2", abortSignal: AbortSignal): Promise<void> {
    const labels = {
      [MANAGED]: "1",
      [CONTEXT]: this.#name.slice(-24),
      [CREATED]: new Date().toISOString(),
    };
    const options = {
      t: this.#name,
      dockerfile: "Dockerfile",
      forcerm: true,
      rm: true,
      pull: false,
      labels,
      version,
      abortSignal,
    };
    const context = tarOf(entries) as unknown as NodeJS.ReadableStream;
    const built: unknown = await this.#docker.buildImage(context, options as never);
    const stream = built as NodeJS.ReadableStream;
    await readProgress(stream, (text) => this.#note(text));
  }

  #note(text: string): void {
    for (const line of text.split("\n")) {
      const layer = /^ ---> ([0-9a-f]{12})$/.exec(line)?.[1];
      const container = /^ ---> Running in ([0-9a-f]{12})$/.exec(line)?.[1];
      if (container !== undefined) this.#journal.addContainer(container);
      if (layer !== undefined) this.#noteLayer(layer);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colours of tools are left out.
      else if (line.trim() !== "") this.#lines.push(line.replace(/\u001b\[[0-9;]*m/g, "").trimEnd());
    }
    this.#lines.splice(0, this.#lines.length - 4 * TOLD_LINES);
  }

  #noteLayer(layer: string): void {
    const isOld = [...this.#before].some((id) => id.startsWith(`sha256:${layer}`));
    if (!isOld) this.#journal.addLayer(layer);
  }
}

const isConnectionLost = (error: unknown): boolean =>
  ["ECONNRESET", "ECONNREFUSED", "EPIPE", "ENOENT"].includes(String((error as { code?: unknown } | undefined)?.code));

/** Reads a stream of JSON lines to its end; an `error` in it is the failure that the status code did not tell. */
async function readProgress(stream: NodeJS.ReadableStream, onText: (text: string) => void): Promise<void> {
  let rest = "";
  const take = (line: string): void => {
    if (line.trim() === "") return;
    const { stream: text, status, error } = JSON.parse(line) as { stream?: string; status?: string; error?: string };
    if (error !== undefined) throw new Error(error);
    if (text ?? status) onText(text ?? (status as string));
  };
  for await (const chunk of stream) {
    rest += chunk.toString();
    const lines = rest.split("\n");
    rest = lines.pop() as string;
    for (const line of lines) take(line);
  }
  take(rest);
}
