/** What a server says about how it wants to be talked to. Flags that it leaves out have the SDK's defaults. */

import { DEFAULT_BILLING } from "./billing.ts";
import { type ChunkLimits, DEFAULT_LIMITS } from "./chunks.ts";

export interface ServerConfig {
  /** The credential is exchanged for a short-lived one. */
  readonly exchangesCredential: boolean;
  /** Bodies of forward_backward may be compressed. */
  readonly compressesPasses: boolean;
  readonly limits: ChunkLimits;
  /** Samples in flight at a time. */
  readonly samplesAtOnce: number;
  /** How long calls wait for an account to be in credit again. */
  readonly billingPauseMs: number;
  /** Whether a failed submission of a sample may be tried again. */
  readonly retriesSamples: boolean;
}

export const DEFAULT_CONFIG: ServerConfig = {
  exchangesCredential: false,
  compressesPasses: false,
  limits: DEFAULT_LIMITS,
  samplesAtOnce: 2000,
  retriesSamples: true,
  billingPauseMs: DEFAULT_BILLING.mostMs,
};

/** The answer of `client/config`; a flag of another type counts as left out. */
export function readConfig(flags: Readonly<Record<string, unknown>>): ServerConfig {
  const flag = (name: string, fallback: boolean) => (typeof flags[name] === "boolean" ? flags[name] : fallback);
  const count = (name: string, fallback: number) => {
    const value = flags[name];
    return Number.isInteger(value) && (value as number) > 0 ? (value as number) : fallback;
  };
  return {
    exchangesCredential: flag("pjwt_auth_enabled", false),
    compressesPasses: flag("proto_compress_fwdbwd", false),
    limits: {
      datums: count("fwdbwd_max_chunk_len", DEFAULT_LIMITS.datums),
      bytes: count("fwdbwd_max_chunk_bytes_count", DEFAULT_LIMITS.bytes),
    },
    samplesAtOnce: count("sample_max_concurrent_requests", DEFAULT_CONFIG.samplesAtOnce),
    billingPauseMs: 1000 * count("billing_exception_max_pause_duration_sec", DEFAULT_CONFIG.billingPauseMs / 1000),
    retriesSamples: !flag("sample_no_retries", false),
  };
}
