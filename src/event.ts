/** Everything that happens while a plan is applied, as one typed stream: terminal, JSON lines and files are its readers. */
import type { Address } from "./address.ts";
import type { Action } from "./change.ts";
import type { Diagnostic } from "./diagnostic.ts";
import type { RunEvent } from "./run-record.ts";

export const EVENT_VERSION = 1;

/**
 * How one address ended. `skipped`: something it needs failed or was interrupted, so it was not started; `waiting`: what it needs
 * goes on in the background.
 */
export type ChangeStatus = "done" | "interrupted" | "failed" | "skipped" | "detached" | "waiting";

export type EngineEvent =
  | {
      readonly type: "apply.start";
      readonly at: string;
      readonly changes: number;
    }
  | {
      readonly type: "change.start";
      readonly at: string;
      readonly address: Address;
      readonly action: Action;
    }
  /** Words about what is being waited for: `starting server`, `importing`. */
  | {
      readonly type: "change.phase";
      readonly at: string;
      readonly address: Address;
      readonly text: string;
    }
  | {
      readonly type: "change.run";
      readonly at: string;
      readonly address: Address;
      readonly event: RunEvent;
    }
  | {
      readonly type: "change.end";
      readonly at: string;
      readonly address: Address;
      readonly action: Action;
      readonly status: ChangeStatus;
      readonly seconds: number;
      readonly diagnostics: readonly Diagnostic[];
      /** For people, e.g. `240 steps, loss 0.012`. */
      readonly summary?: string;
    }
  | {
      readonly type: "apply.stopping";
      readonly at: string;
      readonly signal: string;
      readonly forced: boolean;
    }
  | {
      readonly type: "apply.end";
      readonly at: string;
      readonly counts: Readonly<Record<ChangeStatus, number>>;
      readonly seconds: number;
    };
