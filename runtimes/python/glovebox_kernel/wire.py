"""The descriptors: frames to and from the engine, marks in what is printed, and 0, 1 and 2 as they were."""

import fcntl
import json
import os
import select

import _thread

LONGEST_FRAME = 16 * 2**20
SCRATCH = 64 * 2**10


class Gone(BaseException):
    """The engine has ended, or code has closed the way to it: nothing is left to do."""


def high_number():
    """Out of the way of code that closes every descriptor up to some round number."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY or limit > 1016:
        limit = 1016
    return max(10, limit - 16)


def write_all(fd, data):
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            # Code may make descriptor 1 non-blocking, and ours is the same pipe.
            select.select([], [fd], [])


class Wire:
    def __init__(self, interrupts):
        self.interrupts = interrupts
        self.pid = os.getpid()
        self.token = None
        self.marks = 0
        self.buffer = bytearray()
        # Threads of the code may show values too: a mark and its frame belong together.
        self.turn = _thread.RLock()
        number = high_number()
        self.requests, self.replies = self.move(3, number), self.move(4, number)
        self.copies = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, number) for fd in (0, 1, 2)}
        self.identity = {fd: self.identify(fd) for fd in (self.requests, self.replies, *self.copies.values())}
        self.forked = False
        os.register_at_fork(after_in_child=self.leave)

    @staticmethod
    def move(fd, number):
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, number)
        os.close(fd)
        return moved

    @staticmethod
    def identify(fd):
        status = os.fstat(fd)
        return status.st_dev, status.st_ino

    def is_intact(self, fd):
        """Whether it is still what it was: a number that code has closed may be a file of its own by now."""
        try:
            return self.identify(fd) == self.identity[fd]
        except OSError:
            return False

    def is_child(self):
        return self.forked or os.getpid() != self.pid

    def leave(self):
        """In a forked child: it has no part in the conversation."""
        self.forked = True
        for fd in (self.requests, self.replies, *self.copies.values()):
            try:
                os.close(fd)
            except OSError:
                pass

    def restore(self):
        """Puts 0, 1 and 2 back, before every execution."""
        for fd, copy in self.copies.items():
            if self.is_intact(copy):
                os.dup2(copy, fd, inheritable=True)
                os.set_blocking(fd, True)

    def begin(self, token):
        self.token = token
        self.marks = 0

    def mark(self):
        """Everything printed so far is before it; the caller has flushed."""
        number = self.marks
        self.marks += 1
        mark = b"\x1e%s:%d\x1e" % (self.token, number)
        for fd in (1, 2):
            copy = self.copies[fd]
            try:
                if self.is_intact(copy):
                    write_all(copy, mark)
            except OSError:
                pass
        return number

    def send(self, kind, token, payload):
        if self.is_child():
            return
        if not self.is_intact(self.replies):
            raise Gone
        head = b"%s %s %d\n" % (kind, token or b"-", len(payload))
        try:
            if len(payload) <= SCRATCH:
                write_all(self.replies, head + payload)
            else:
                write_all(self.replies, head)
                write_all(self.replies, payload)
        except OSError:
            raise Gone from None

    def send_json(self, kind, message):
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        self.send(kind, self.token, text.encode("utf-8", "replace"))

    def fill(self):
        # Waiting may be interrupted; taking bytes out of the pipe may not, or they would be lost.
        select.select([self.requests], [], [])
        with self.interrupts:
            piece = os.read(self.requests, SCRATCH)
            self.buffer += piece
        if not piece:
            raise Gone

    def receive(self):
        """The next frame: (type, token, payload)."""
        if not self.is_intact(self.requests):
            raise Gone
        try:
            while True:
                end = self.buffer.find(b"\n")
                if end < 0 and len(self.buffer) > 64:
                    raise Gone
                if end >= 0:
                    kind, token, length = bytes(self.buffer[:end]).split(b" ")
                    whole = end + 1 + int(length)
                    if int(length) > LONGEST_FRAME:
                        raise Gone
                    if len(self.buffer) >= whole:
                        payload = bytes(memoryview(self.buffer)[end + 1 : whole])
                        del self.buffer[:whole]
                        return kind, token, payload
                self.fill()
        except (OSError, ValueError):
            raise Gone from None
