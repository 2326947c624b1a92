/** What hosted services have beyond training: there is one account, which pays nothing. */
import { refuse } from "./errors.ts";
import type { RouteTable } from "./router.ts";

const unsupported = (what: string) => () => refuse(400, `The embedded server does not support ${what}.`);

export function accountRoutes(): RouteTable {
  return {
    "GET /api/v1/auth/apikey/me": () => ({ user_urn: "urn:rlcli:user:local", org_urn: "urn:rlcli:org:local" }),
    "GET /api/v1/audit": () => ({ entries: [] }),
    "GET /api/v1/billing/usage/events": () => ({ data: [], sessions: {} }),
    "POST /api/v1/create_custom_loss": unsupported(
      "custom losses on the server: forward_backward_custom of the SDK computes them in the client",
    ),
  };
}
