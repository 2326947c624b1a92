/**
 * The program between a supervisor and SkyRL, in the Python of SkyRL's own environment so that it runs wherever SkyRL does, also at
 * the other end of an ssh connection. It starts SkyRL in a session of its own and ends it, with all that it has started (engine,
 * samplers, Ray's processes), when its standard input closes, when it is signalled, or when SkyRL ends by itself. Its standard
 * input is a pipe from the supervisor: a supervisor that is killed closes it.
 *
 * Processes are found by their group and by an environment variable that they inherit, since Ray's leave the group. What an
 * earlier life left behind is ended first.
 *
 *     python -I -c GUARD GRACE_SECONDS PROGRAM ARGUMENTS…      with RLCLI_SERVER in its environment
 */
export const MARKER = "RLCLI_SERVER";

export const GUARD = String.raw`
import os, select, signal, subprocess, sys, time

GRACE = float(sys.argv[1])
MARK = b"RLCLI_SERVER=" + os.fsencode(os.environ["RLCLI_SERVER"])


def environments():
    if os.path.isdir("/proc/self"):
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open("/proc/" + name + "/environ", "rb") as file:
                        yield int(name), file.read().split(b"\0")
                except OSError:
                    pass
    else:
        lines = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], capture_output=True).stdout.splitlines()
        for line in lines:
            pid, _, rest = line.strip().partition(b" ")
            yield int(pid), rest.split(b" ")


def ours():
    return [pid for pid, words in environments() if MARK in words and pid != os.getpid()]


def end(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def sweep():
    deadline = time.monotonic() + 10
    while ours() and time.monotonic() < deadline:
        end(ours(), signal.SIGKILL)
        time.sleep(0.05)


reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
    signal.signal(number, lambda *_: None)

sweep()
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, start_new_session=True)
asked = False
while child.poll() is None and not asked:
    readable, _, _ = select.select([0, reader], [], [])
    if 0 in readable and os.read(0, 4096) == b"":
        asked = True
    if reader in readable and any(n != signal.SIGCHLD for n in os.read(reader, 512)):
        asked = True

def wait(seconds, is_over):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_over():
        time.sleep(0.05)


if child.poll() is None:
    try:
        os.killpg(child.pid, signal.SIGTERM)
    except OSError:
        pass
    wait(GRACE, lambda: child.poll() is not None)
# What is outside of the group, or had no word yet.
end(ours(), signal.SIGTERM)
wait(2, lambda: child.poll() is not None and not ours())
sweep()
code = child.wait()
sys.exit(code if code >= 0 else 128 - code)
`;
