"""Starts a program at a terminal of its own and does as it is told on stdin, one JSON list of steps:
["expect", TEXT], ["send", TEXT], ["resize", ROWS, COLS], ["signal", NUMBER], ["close"] (the window).
Prints one JSON object: what the terminal showed, how the program ended, and whether the terminal was left as it was."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 100


def set_size(fd, rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


class Screen:
    def __init__(self, fd):
        self.fd = fd
        self.text = ""
        self.at = 0

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.text += data.decode("utf-8", "replace")
        return data != b""

    def expect(self, wanted):
        deadline = time.monotonic() + PATIENCE
        while self.text.find(wanted, self.at) < 0:
            if time.monotonic() > deadline or not self.read(0.1):
                raise TimeoutError(f"never showed {wanted!r}: {self.text[self.at:]!r}")
        self.at = self.text.find(wanted, self.at) + len(wanted)


def act(step, screen, pid):
    name, *values = step
    if name == "expect":
        screen.expect(values[0])
    elif name == "send":
        os.write(screen.fd, values[0].encode())
    elif name == "resize":
        set_size(screen.fd, *values)
    elif name == "signal":
        os.kill(pid, values[0])
    elif name == "close":
        os.close(screen.fd)


def wait(pid, screen):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if is_open(screen.fd):
            screen.read(0.02)
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise TimeoutError(f"did not end: {screen.text!r}")


def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False


def main():
    steps = json.loads(sys.stdin.read())
    master, slave = pty.openpty()
    set_size(master, 24, 80)
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        os.closerange(3, 64)
        os.execvp(sys.argv[1], sys.argv[1:])
    screen = Screen(master)
    failure = None
    try:
        for step in steps:
            act(step, screen, pid)
    except TimeoutError as error:
        failure = str(error)
        os.kill(pid, signal.SIGTERM)
    code = wait(pid, screen)
    while is_open(master) and select.select([master], [], [], 0.05)[0] and screen.read(0):
        pass
    restored = is_open(master) and termios.tcgetattr(slave) == before
    print(json.dumps({"text": screen.text, "code": code, "restored": restored, "failure": failure}))


main()
