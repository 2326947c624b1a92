/** Which hub is asked, and as whom. */
import { type DiagnosticOptions, fail } from "../diagnostic.ts";
import { credentialIn, withoutCredentials } from "../url.ts";

export interface HubSettings {
  /** Without a slash at its end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly isOffline: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

const HUB = "https://huggingface.co";

/** `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE`, as the hub's own tools read them. */
export function hubSettings(env: Environment, place: DiagnosticOptions = {}): HubSettings {
  const endpoint = (env.HF_ENDPOINT?.trim() || HUB).replace(/\/+$/, "");
  if (!/^https?:\/\/[^/]/.test(endpoint))
    fail(
      "RL6020",
      `HF_ENDPOINT is \`${withoutCredentials(endpoint)}\`, which is no address: it begins with https:// or http://.`,
      place,
    );
  const secret = credentialIn(endpoint);
  if (secret !== undefined)
    fail(
      "RL6020",
      `HF_ENDPOINT has ${secret}, which is not sent. Give the address alone, and a token in HF_TOKEN.`,
      place,
    );
  const token = env.HF_TOKEN?.trim() || undefined;
  return { endpoint, token, isOffline: /^(1|true|yes|on)$/i.test(env.HF_HUB_OFFLINE ?? "") };
}
