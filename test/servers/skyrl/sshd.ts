/** An ssh server of the test's own on loopback, which lets the user who runs the test in by a key that was made for it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../src/servers/ports.ts";
import { fakeUv } from "./support.ts";

export const sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/opt/homebrew/sbin/sshd"].find((path) =>
  existsSync(path),
);

export interface RemoteBox {
  /** `user@name` that `command` reaches. */
  readonly host: string;
  /** For RLCLI_SSH. */
  readonly command: string;
  /** rlcli's data folder there. */
  readonly data: string;
  close(): void;
}

/** The box has a `uv`, which is the fake one. `variables` are of its environment. */
export async function startBox(variables: Readonly<Record<string, string>>): Promise<RemoteBox> {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-sshd-"));
  const [bin, data] = [join(folder, "bin"), join(folder, "data")];
  mkdirSync(bin);
  symlinkSync(fakeUv, join(bin, "uv"));
  for (const name of ["host", "user"])
    spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, name)]);
  copyFileSync(join(folder, "user.pub"), join(folder, "authorized_keys"));
  chmodSync(join(folder, "authorized_keys"), 0o600);
  const port = await freePort();
  const path = [bin, dirname(process.execPath), process.env.PATH].join(delimiter);
  const set = Object.entries({ ...variables, PATH: path, RLCLI_DATA: data }).map(
    ([name, value]) => `"${name}=${value}"`,
  );
  writeFileSync(
    join(folder, "sshd_config"),
    [
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      `HostKey ${join(folder, "host")}`,
      `AuthorizedKeysFile ${join(folder, "authorized_keys")}`,
      "PasswordAuthentication no",
      "StrictModes no",
      "PidFile none",
      `SetEnv ${set.join(" ")}`,
    ].join("\n"),
  );
  writeFileSync(
    join(folder, "ssh_config"),
    [
      "Host box",
      "  HostName 127.0.0.1",
      `  Port ${port}`,
      `  IdentityFile ${join(folder, "user")}`,
      "  IdentitiesOnly yes",
      `  UserKnownHostsFile ${join(folder, "known_hosts")}`,
      "  StrictHostKeyChecking accept-new",
      "  LogLevel ERROR",
    ].join("\n"),
  );
  // Where root runs sshd it drops its privileges into this folder.
  if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true });
  const child: ChildProcess = spawn(sshd as string, ["-D", "-f", join(folder, "sshd_config")], { stdio: "ignore" });
  const host = `${userInfo().username}@box`;
  const command = `ssh -F ${join(folder, "ssh_config")}`;
  const isThere = () =>
    spawnSync("ssh", ["-F", join(folder, "ssh_config"), "-o", "BatchMode=yes", host, "true"]).status === 0;
  for (let tries = 0; !isThere(); tries++) {
    if (tries > 300 || child.exitCode !== null) throw new Error(`sshd does not answer on port ${port}`);
    await sleep(100);
  }
  return {
    host,
    command,
    data,
    close: () => {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
