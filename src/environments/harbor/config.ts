/** What a task.toml says, typed. Seconds, MiB and texts as Harbor's format has them; templates in `env` are not resolved yet. */

export interface TaskConfig {
  /** `org/name` of `[task]`; the folder's name where it has none. */
  readonly name: string;
  readonly description: string;
  /** For people and filters; nothing reads it. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly artifacts: readonly Artifact[];
  readonly strategy: "mean" | "final";
  readonly agent: PhaseConfig;
  readonly verifier: VerifierConfig;
  readonly environment: EnvironmentConfig;
  readonly solution: { readonly env: EnvTable };
  /** Empty for a task of one step. */
  readonly steps: readonly StepConfig[];
}

export type EnvTable = Readonly<Record<string, string>>;
export type Network = "public" | "no-network";

export interface PhaseConfig {
  /** Seconds; no limit where absent. */
  readonly timeoutSec?: number;
  /** Of the image where absent. */
  readonly user?: string;
  /** The environment's where absent. */
  readonly network?: Network;
}

export interface VerifierConfig extends PhaseConfig {
  readonly timeoutSec: number;
  readonly env: EnvTable;
  readonly collect: readonly CollectHook[];
  /** Tests run in a container of their own. */
  readonly isSeparate: boolean;
  /** Of that container, as this very table says; see `verifierPlace` for where it comes from else. */
  readonly environment?: EnvironmentConfig;
}

export interface CollectHook {
  readonly command: string;
  readonly timeoutSec: number;
  readonly user?: string;
}

export interface EnvironmentConfig {
  /** A prebuilt image: the Dockerfile is then not used. */
  readonly image?: string;
  /** Building and starting. */
  readonly buildTimeoutSec: number;
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly gpus?: number;
  readonly network: Network;
  readonly env: EnvTable;
  /** Working directory of every command; the image's where absent. */
  readonly workdir?: string;
  readonly healthcheck?: HealthcheckConfig;
}

export interface HealthcheckConfig {
  readonly command: string;
  readonly intervalSec: number;
  readonly timeoutSec: number;
  readonly startPeriodSec: number;
  readonly startIntervalSec: number;
  /** Failures in a row that end it. */
  readonly retries: number;
}

export interface Artifact {
  /** In the container, absolute. */
  readonly source: string;
  /** Under the folder of artifacts; the source's own path where absent. */
  readonly destination?: string;
  readonly exclude: readonly string[];
}

export interface StepConfig {
  readonly name: string;
  readonly agent: PhaseConfig;
  readonly verifier: VerifierConfig;
  /** The next step is not begun below this: of the key `reward`, or of each key. */
  readonly minReward?: number | Readonly<Record<string, number>>;
  readonly healthcheck?: HealthcheckConfig;
  readonly artifacts: readonly Artifact[];
}
