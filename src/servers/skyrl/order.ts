/** What a SkyRL server's supervisor is told, as JSON in its only argument. */
import type { SkyrlSettings } from "./settings.ts";

export interface RemotePlace {
  /** `user@machine`. */
  readonly host: string;
  /** SkyRL's own, on the machine's loopback. */
  readonly port: number;
  /** Where its database and checkpoints are. */
  readonly folder: string;
}

export interface SkyrlOrder {
  readonly folder: string;
  /** As the spec names it. */
  readonly model: string;
  /** What SkyRL opens and what its clients have to call it: a folder or a hub name. */
  readonly servedModel: string;
  readonly isLocalModel: boolean;
  readonly settings: SkyrlSettings;
  /** On each node; 0 is the CPU. */
  readonly gpus: number;
  /** Folder of the Python environment. */
  readonly environment: string;
  readonly uv: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly isGuarded: boolean;
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Where it runs, if not here: environment, uv and model are then paths there. */
  readonly remote?: RemotePlace;
  /** 0 never stops it. */
  readonly idleTimeoutSeconds: number;
  /** Whether a crash starts it again. */
  readonly restarts: boolean;
  /** Of all that decides how it runs: a running server with another one has to be stopped first. */
  readonly digest: string;
}
