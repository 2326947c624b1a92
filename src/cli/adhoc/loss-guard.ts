/** Whether the server at a URL has a loss, asked before anything is planned or started for it. */
import { fail } from "../../diagnostic.ts";
import { lossNamed } from "../../losses/registry.ts";
import { TinkerClient } from "../../tinker/client.ts";
import { TinkerError } from "../../tinker/errors.ts";
import { serverFamily, serverKind } from "../../tinker/quirks/probe.ts";
import { SERVER_TRAITS, type ServerKind } from "../../tinker/quirks.ts";
import type { CommandContext } from "../context.ts";

const KIND_OF_BACKEND: Readonly<Record<string, ServerKind>> = {
  embedded: "embedded",
  hosted: "hosted",
  jax: "skyrl-jax",
  fsdp: "skyrl-fsdp",
  megatron: "skyrl-megatron",
};

export interface GuardedRun {
  readonly loss: string;
  readonly lossStrategy?: string;
  readonly baseUrl: string;
  /** What the user says the server is; it is asked where this is absent. */
  readonly backend?: string;
  readonly model?: string;
}

/** Fails with RL8011 where the server does not compute the loss and no other way to it was chosen. */
export async function checkLoss(context: CommandContext, run: GuardedRun): Promise<void> {
  const { loss, lossStrategy = "fused", backend } = run;
  if (lossStrategy !== "fused") return;
  const kind = backend === undefined ? await kindAt(context, run) : KIND_OF_BACKEND[backend];
  if (kind === undefined || SERVER_TRAITS[kind].losses.includes(loss)) return;
  const name = kind.replace("skyrl-", "");
  const others = lossNamed(loss)?.backends.join(", ");
  fail(
    "RL8011",
    `The server at ${run.baseUrl} is a ${name} server, which does not compute ${loss} itself; ${others} do. Add --loss-strategy two_pass, which gets the same gradient from a forward pass and a linear loss.`,
  );
}

const TIMEOUT_MS = 60_000;

/** Undefined where the server does not answer: the run itself will say so. */
async function kindAt(context: CommandContext, { baseUrl, loss, model }: GuardedRun): Promise<ServerKind | undefined> {
  const client = new TinkerClient({ baseUrl, retry: { deadlineMs: 5000 } });
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const family = await serverFamily(client, { signal });
    if (family !== "skyrl") return family;
    // SkyRL's backends look alike until a model is asked; only where they differ in this loss is one made for it.
    const kinds = (["skyrl-jax", "skyrl-fsdp", "skyrl-megatron"] as const).map((kind) => SERVER_TRAITS[kind].losses);
    if (kinds.every((losses) => losses.includes(loss)) || model === undefined) return undefined;
    context.err("Asking the server what it computes.\n");
    const session = await client.createSession({ tags: ["rlcli probe"] });
    const probe = await session.createModel({ baseModel: model, loraRank: 1, seed: 0 }, { signal });
    try {
      return await serverKind(client, probe, { signal });
    } finally {
      await probe.unload({ signal: AbortSignal.timeout(5000) }).catch(() => {});
    }
  } catch (error) {
    if (error instanceof TinkerError || signal.aborted) return undefined;
    throw error;
  } finally {
    await client.close();
  }
}
