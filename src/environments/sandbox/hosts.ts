/**
 * Several Docker daemons as one host of sandboxes. Each has places of its own; a sandbox goes where most are free. One that does not
 * answer any more is left out until it does; what ran on it is lost to those attempts only.
 */
import { RlcliError } from "../../diagnostic.ts";
import { type DockerHost, type DockerOptions, openDocker } from "./docker.ts";
import type { ExpectedSandbox, ImageOrder, Sandbox, SandboxHost, SandboxOrder } from "./sandbox.ts";

/** How often a daemon that was lost is asked whether it is back. */
const ASK_AGAIN_MS = 15_000;

export interface HostsOptions extends Omit<DockerOptions, "host"> {
  /** Addresses; the usual one where there is none. */
  readonly hosts: readonly string[];
  /** Told in words when a daemon is left out, and when it is back. */
  readonly onHost?: (text: string) => void;
}

/** Fails with RL7301 where no daemon answers; some of several may be away. */
export async function openHosts({ hosts, onHost, ...options }: HostsOptions): Promise<SandboxHost> {
  if (hosts.length <= 1) return openDocker({ ...options, host: hosts[0] });
  const opened = await Promise.allSettled(hosts.map((host) => openDocker({ ...options, host })));
  const there = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  if (there.length === 0) throw (opened[0] as PromiseRejectedResult).reason;
  for (const [at, { status }] of opened.entries())
    if (status === "rejected") onHost?.(wordsOn(hosts[at] as string, false));
  return new HostPool(there, onHost);
}

const wordsOn = (address: string, isThere: boolean): string =>
  `The Docker daemon ${address} ${isThere ? "is back" : "does not answer and is left out until it does"}.`;

interface Member {
  readonly host: DockerHost;
  isAway: boolean;
  askedMs: number;
}

class HostPool implements SandboxHost {
  readonly #members: readonly Member[];
  readonly #onHost: HostsOptions["onHost"];
  /** What images are made from, by name: each daemon makes its own when it first needs one. */
  readonly #images = new Map<string, ImageOrder>();

  constructor(hosts: readonly DockerHost[], onHost: HostsOptions["onHost"]) {
    this.#members = hosts.map((host) => ({ host, isAway: false, askedMs: 0 }));
    this.#onHost = onHost;
  }

  async image(order: ImageOrder): Promise<string> {
    const name = await this.#onAny(({ host }) => host.image(order));
    this.#images.set(name, order);
    return name;
  }

  start(order: SandboxOrder, signal?: AbortSignal): Promise<Sandbox> {
    return this.#onAny((member) => this.#startOn(member, order, signal), signal);
  }

  async #startOn({ host }: Member, order: SandboxOrder, signal?: AbortSignal): Promise<Sandbox> {
    const image = this.#images.get(order.image);
    if (image) await host.image({ ...image, signal });
    return host.start(order, signal);
  }

  expect(order: SandboxOrder): ExpectedSandbox {
    const member = this.#best();
    const image = this.#images.get(order.image);
    let isCancelled = false;
    const ahead = (async () => {
      if (image) await member.host.image(image);
      const expected = member.host.expect(order);
      if (isCancelled) expected.cancel();
      return expected;
    })();
    ahead.catch(() => {});
    return {
      start: async (signal) => {
        const expected = await ahead.catch(() => undefined);
        if (!expected || member.isAway) {
          expected?.cancel();
          return this.start(order, signal);
        }
        return expected.start(signal).catch((error: unknown) => this.#elsewhere(member, error, order, signal));
      },
      cancel: () => {
        isCancelled = true;
        ahead.then(
          (expected) => expected.cancel(),
          () => {},
        );
      },
    };
  }

  async #elsewhere(member: Member, error: unknown, order: SandboxOrder, signal?: AbortSignal): Promise<Sandbox> {
    signal?.throwIfAborted();
    if (!(await this.#isLost(member))) throw error;
    return this.start(order, signal);
  }

  /** Tries one after another as long as the daemon itself was at fault. */
  async #onAny<T>(work: (member: Member) => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (const tried = new Set<Member>(); ; ) {
      const member = this.#best(tried);
      tried.add(member);
      try {
        return await work(member);
      } catch (error) {
        signal?.throwIfAborted();
        const isLast = tried.size === this.#members.length;
        if (isLast || !(error instanceof RlcliError) || !(await this.#isLost(member))) throw error;
      }
    }
  }

  /** The least loaded one that is not known to be away; if all are, the one that was asked longest ago. */
  #best(tried: ReadonlySet<Member> = new Set()): Member {
    const left = this.#members.filter((member) => !tried.has(member));
    for (const member of left) if (member.isAway) void this.#askAgain(member);
    const there = left.filter(({ isAway }) => !isAway);
    const [best] =
      there.length > 0
        ? there.toSorted((a, b) => a.host.load - b.host.load)
        : left.toSorted((a, b) => a.askedMs - b.askedMs);
    return best as Member;
  }

  async #isLost(member: Member): Promise<boolean> {
    this.#note(member, await member.host.answers());
    return member.isAway;
  }

  async #askAgain(member: Member): Promise<void> {
    if (performance.now() - member.askedMs < ASK_AGAIN_MS) return;
    member.askedMs = performance.now();
    this.#note(member, await member.host.answers());
  }

  #note(member: Member, isThere: boolean): void {
    member.askedMs = performance.now();
    if (member.isAway !== isThere) return;
    member.isAway = !isThere;
    this.#onHost?.(wordsOn(member.host.address, isThere));
  }

  /** What is on a daemon that is away ends by itself, or with the next command that reaches it. */
  async close(): Promise<void> {
    const closed = await Promise.allSettled(this.#members.map(({ host }) => host.close()));
    const failed = closed.find(
      (result, at): result is PromiseRejectedResult =>
        result.status === "rejected" && !(this.#members[at] as Member).isAway,
    );
    if (failed) throw failed.reason;
  }
}
