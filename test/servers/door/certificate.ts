/** A certificate for loopback, made anew by openssl; undefined where that is not installed. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const certificate = make();

function make(): { readonly cert: string; readonly key: string } | undefined {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-certificate-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
  try {
    const { status } = spawnSync("openssl", [...kind, ...subject, "-keyout", key, "-out", cert]);
    return status === 0 ? { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") } : undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
