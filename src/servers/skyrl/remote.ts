/**
 * A SkyRL server on another machine, over the system's ssh: the Python environment is made there by the same recipe, SkyRL runs there
 * under the same guard, and its port is forwarded to the supervisor here, which holds the front door. The guard's standard input is
 * the ssh connection's: when that ends, for whatever reason, so does SkyRL.
 *
 * The connection is the user's own: keys, jump hosts and names come from `~/.ssh/config`. RLCLI_SSH is another command to use.
 */
import { diagnostic, messageOf, RlcliError } from "../../diagnostic.ts";
import { quoted } from "../../shell.ts";
import type { LaunchCommand } from "./command.ts";
import { GUARD, MARKER } from "./guard.ts";
import { type EnvironmentRecipe, environmentName } from "./recipe.ts";
import { HOW_TO_GET_UV } from "./uv.ts";

type Env = Readonly<Record<string, string | undefined>>;

export interface RemoteOptions {
  /** `user@machine`. */
  readonly host: string;
  readonly env: Env;
  readonly signal?: AbortSignal;
  readonly onPhase?: (text: string) => void;
}

export interface RemoteMachine {
  readonly uv: string;
  /** rlcli's data folder there. */
  readonly data: string;
  readonly gpus: number;
}

export interface RemoteEnvironment {
  /** Folder of the Python environment there. */
  readonly folder: string;
  /** A port that was free there a moment ago. */
  readonly port: number;
}

/** Never asks for a password, which nobody may be there to type; notices a dead connection within a minute. */
const SSH_OPTIONS = [
  "-T",
  "-o",
  "BatchMode=yes",
  "-o",
  "ConnectTimeout=15",
  "-o",
  "ServerAliveInterval=15",
  "-o",
  "ServerAliveCountMax=4",
];

const sshCommand = (env: Env): readonly string[] => (env.RLCLI_SSH ?? "ssh").split(/\s+/).filter((word) => word !== "");

/** What the machine has. Throws RL5025 where it cannot be reached or lacks uv. */
export async function lookAtRemote(options: RemoteOptions): Promise<RemoteMachine> {
  options.onPhase?.(`looking at ${options.host}`);
  const said = await runThere(options, LOOK);
  const [uv = "", data = "", gpus = "0"] = said.split("\t");
  if (uv === "") refuse(options.host, `it has no uv. There: ${HOW_TO_GET_UV.replace(/, or name.*$/, ".")}`);
  return { uv, data, gpus: Number(gpus) };
}

const LOOK = `
uv=$(command -v uv || ls "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" /usr/local/bin/uv 2>/dev/null | head -n 1)
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
printf '%s\\t%s\\t%s' "$uv" "\${RLCLI_DATA:-\${XDG_DATA_HOME:-$HOME/.local/share}/rlcli}" "$gpus"
`;

/** Makes the environment there, once even when two ask for it; an interrupted installation is taken up. */
export async function installRemote(
  options: RemoteOptions,
  machine: RemoteMachine,
  recipe: EnvironmentRecipe,
): Promise<RemoteEnvironment> {
  const folder = `${machine.data}/python/${environmentName(recipe)}`;
  options.onPhase?.(`making the Python environment ${folder} on ${options.host} (minutes the first time)`);
  const index = recipe.index === undefined ? [] : ["--default-index", recipe.index];
  const packages = [...index, ...recipe.arguments, ...recipe.requirements].map(quoted).join(" ");
  const script = `
set -e
folder=${quoted(folder)}; uv=${quoted(machine.uv)}; python="$folder/venv/bin/python"
mkdir -p "$folder"
exec 9>"$folder/install.lock"
if command -v flock >/dev/null; then flock 9; fi
if [ ! -e "$folder/complete.json" ]; then
  { [ -e "$folder/venv/pyvenv.cfg" ] || "$uv" venv --python ${quoted(recipe.python)} "$folder/venv"
    "$uv" pip install --python "$python" ${packages}
  } >"$folder/install.log" 2>&1 </dev/null || { tail -n 15 "$folder/install.log" >&2; exit 1; }
  echo '{"formatVersion":1}' >"$folder/complete.json"
fi
"$python" -c '
import random, socket
# Not one of those that systems hand out themselves, which is somebody else a moment later.
for port in random.sample(range(20000, 30000), 50) + [0]:
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", port))
    except OSError:
        continue
    print(s.getsockname()[1], end="")
    break
'
`;
  const port = Number(await runThere(options, script));
  if (!Number.isInteger(port) || port <= 0) refuse(options.host, "it did not name a free port");
  return { folder: `${folder}/venv`, port };
}

async function runThere({ host, env, signal }: RemoteOptions, script: string): Promise<string> {
  const { execa } = await import("execa");
  const [program, ...words] = sshCommand(env) as [string, ...string[]];
  try {
    const { stdout } = await execa(program, [...words, ...SSH_OPTIONS, host, "sh -s"], {
      input: script,
      ...(signal ? { cancelSignal: signal } : {}),
    });
    return stdout;
  } catch (error) {
    signal?.throwIfAborted();
    const { stderr } = error as { stderr?: string };
    return refuse(host, stderr?.trim() || messageOf(error));
  }
}

function refuse(host: string, what: string): never {
  throw new RlcliError(diagnostic("RL5025", `${host} cannot run the server: ${what.replace(/\.$/, "")}.`));
}

export interface RemoteLaunch {
  readonly host: string;
  /** Where the forwarded port is here and there. */
  readonly port: number;
  readonly remotePort: number;
  readonly marker: string;
  readonly graceSeconds: number;
  /** Python there that runs the guard. */
  readonly python: string;
  readonly folder: string;
}

/** The ssh command that runs SkyRL's own command there under its guard, and forwards its port. */
export function remoteCommand(command: LaunchCommand, launch: RemoteLaunch, env: Env): readonly string[] {
  const { host, port, remotePort, marker, graceSeconds, python, folder } = launch;
  const forward = ["-o", "ExitOnForwardFailure=yes", "-L", `127.0.0.1:${port}:127.0.0.1:${remotePort}`];
  const settings = Object.entries({ ...command.environment, [MARKER]: marker }).map(
    ([name, value]) => `${name}=${quoted(value)}`,
  );
  const path = `PATH=${quoted(command.path.join(":"))}:"$PATH"`;
  const words = [python, "-I", "-c", GUARD, String(graceSeconds), command.program, ...command.arguments].map(quoted);
  const there = `mkdir -p ${quoted(folder)} && cd ${quoted(folder)} && exec env ${[...settings, path, ...words].join(" ")}`;
  return [...sshCommand(env), ...SSH_OPTIONS, ...forward, host, there];
}
