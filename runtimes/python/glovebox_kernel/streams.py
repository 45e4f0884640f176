"""sys.stdout, sys.stderr and sys.stdin: written as it comes, in the order in which code wrote to both."""

import fcntl
import io
import os
import select
import sys
import time

FIONREAD = 0x541B
TIOCOUTQ = 0x5411
LONGEST_WAIT = 0.02


class Order:
    """Two pipes have no order between them: before one is written after the other, the other is let be read."""

    def __init__(self):
        self.last = None

    def turn_to(self, fd):
        last, self.last = self.last, fd
        if last is None or last == fd:
            return
        end = time.monotonic() + LONGEST_WAIT
        while is_unread(last) and time.monotonic() < end:
            time.sleep(0.0002)


def is_unread(fd):
    """Of a pipe or a socket: whether the other side has yet to read something."""
    for request in (FIONREAD, TIOCOUTQ):
        try:
            if any(fcntl.ioctl(fd, request, b"\0\0\0\0")):
                return True
        except OSError:
            pass
    return False


class Outlet(io.RawIOBase):
    """Descriptor 1 or 2, whatever it is at the moment. It cannot be closed: the next execution needs it."""

    def __init__(self, fd, order):
        super().__init__()
        self.fd = fd
        self.order = order
        self.name = "<stdout>" if fd == 1 else "<stderr>"
        self.mode = "wb"

    def fileno(self):
        return self.fd

    def writable(self):
        return True

    def isatty(self):
        return False

    def close(self):
        pass

    def write(self, data, put=os.write):
        fd = self.fd
        if self.order.last != fd:
            self.order.turn_to(fd)
        view = data
        if type(data) is bytes:
            # Nearly always; print() comes here twice a line.
            try:
                sent = put(fd, data)
                if sent == len(data):
                    return sent
                view = memoryview(data)[sent:]
            except BlockingIOError:
                pass
        self.write_rest(memoryview(view).cast("B"))
        return memoryview(data).nbytes

    def write_rest(self, view):
        while view:
            try:
                view = view[os.write(self.fd, view) :]
            except BlockingIOError:
                select.select([], [self.fd], [])


class Inlet(io.TextIOBase):
    """sys.stdin: a line is asked for, where the engine takes questions; else it is at its end."""

    encoding = "utf-8"
    errors = "strict"
    name = "<stdin>"
    mode = "r"

    def __init__(self, ask):
        super().__init__()
        self.ask = ask

    def fileno(self):
        return 0

    def readable(self):
        return True

    def isatty(self):
        return False

    def close(self):
        pass

    def readline(self, size=-1):
        line = self.ask()
        if line is None:
            return ""
        line += "\n"
        return line if size is None or size < 0 else line[:size]

    def read(self, size=-1):
        if size is not None and size >= 0:
            return self.readline(size)
        return "".join(self)


class Streams:
    def __init__(self, ask):
        self.order = Order()
        self.out, self.error, self.input = self.open(1), self.open(2), Inlet(ask)

    def open(self, fd):
        errors = "surrogateescape" if fd == 1 else "backslashreplace"
        return io.TextIOWrapper(Outlet(fd, self.order), encoding="utf-8", errors=errors, newline="\n", write_through=True)

    def mended(self, stream, fd):
        try:
            stream.write("")
            # Not what it was made with where code has reconfigured or detached it.
            if isinstance(stream.buffer, Outlet) and stream.write_through and stream.encoding == "utf-8":
                return stream
        except Exception:
            pass
        return self.open(fd)

    def restore(self):
        """Before every execution, because code may have replaced, closed or detached them."""
        self.out, self.error = self.mended(self.out, 1), self.mended(self.error, 2)
        self.order.last = None
        sys.stdout = sys.__stdout__ = self.out
        sys.stderr = sys.__stderr__ = self.error
        sys.stdin = sys.__stdin__ = self.input

    def flush(self):
        """Also whatever stands in their place now."""
        for stream in (getattr(sys, "stdout", None), getattr(sys, "stderr", None)):
            try:
                if stream is not None and stream is not self.out and stream is not self.error:
                    stream.flush()
            except Exception:
                pass
