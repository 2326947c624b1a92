/** Which S3 is asked, and as whom: the variables that AWS's own tools read. */
import { type DiagnosticOptions, fail } from "../diagnostic.ts";

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Settings {
  /** Of another S3 than Amazon's, without a slash at its end. */
  readonly endpoint: string | undefined;
  readonly region: string;
  /** Without them, requests are not signed. */
  readonly credentials: Credentials | undefined;
}

const DEFAULT_REGION = "us-east-1";

/**
 * `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION` (or `AWS_DEFAULT_REGION`), `AWS_ENDPOINT_URL_S3` (or
 * `AWS_ENDPOINT_URL`). Fails with RL6034 where they cannot be used.
 */
export function s3Settings(
  env: Readonly<Record<string, string | undefined>>,
  place: DiagnosticOptions = {},
): S3Settings {
  const read = (name: string): string | undefined => env[name]?.trim() || undefined;
  const endpoint = (read("AWS_ENDPOINT_URL_S3") ?? read("AWS_ENDPOINT_URL"))?.replace(/\/+$/, "");
  // What it is may hold a password, so it is not shown.
  if (endpoint !== undefined && !(/^https?:\/\/[^/@?#]+(\/[^@?#]*)?$/i.test(endpoint) && URL.canParse(endpoint)))
    fail("RL6034", "AWS_ENDPOINT_URL is no plain address: it is http:// or https:// with a host.", place);
  const accessKeyId = read("AWS_ACCESS_KEY_ID");
  const secretAccessKey = read("AWS_SECRET_ACCESS_KEY");
  const sessionToken = read("AWS_SESSION_TOKEN");
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) {
    const [set, missing] = accessKeyId
      ? ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
      : ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"];
    fail("RL6034", `${set} is set and ${missing} is not: set both, or neither to read what is open to all.`, place);
  }
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
  const region = read("AWS_REGION") ?? read("AWS_DEFAULT_REGION") ?? DEFAULT_REGION;
  if (!/^[a-z0-9-]+$/i.test(region)) fail("RL6034", "AWS_REGION is no name of a region.", place);
  return { endpoint, region, credentials };
}
