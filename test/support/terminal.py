"""Runs a program on a terminal of its own and types at it: `WAIT<TAB>KEYS` lines on standard input, KEYS as a Python string. Prints what
the terminal showed; exits with the program's code. RLCLI_TEST_COLUMNS is the terminal's width."""
import fcntl, os, pty, select, struct, sys, termios, time

script = [line.rstrip("\n").split("\t") for line in sys.stdin if line.strip()]
pid, terminal = pty.fork()
if pid == 0:
    # Here, so that the program finds it so from its beginning.
    size = struct.pack("HHHH", 40, int(os.environ.get("RLCLI_TEST_COLUMNS", "80")), 0, 0)
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    os.execvp(sys.argv[1], sys.argv[1:])
shown = b""
at = 0
deadline = time.time() + 110
while time.time() < deadline:
    if script and script[0][0].encode() in shown[at:]:
        at += shown[at:].index(script[0][0].encode()) + len(script[0][0].encode())
        os.write(terminal, script[0][1].encode().decode("unicode_escape").encode())
        script.pop(0)
    if not select.select([terminal], [], [], 0.1)[0]:
        continue
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data
sys.stdout.buffer.write(shown)
if script:
    sys.stdout.write(f"\nnever shown: {script[0][0]}\n")
    os.kill(pid, 9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
