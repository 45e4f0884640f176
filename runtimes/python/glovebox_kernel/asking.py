"""input(), getpass and sys.stdin: questions to whoever started the execution, or a clear refusal."""

import _thread
import sys

from glovebox_kernel.wire import Gone

REFUSAL = "%s is refused: nobody answers questions in this execution"


class Asking:
    def __init__(self, kernel):
        self.kernel = kernel
        self.thread = _thread.get_ident()
        self.allowed = False

    def line(self, prompt="", secret=False):
        """A line without its end, or None at the end of input."""
        kernel = self.kernel
        wire = kernel.wire
        if not self.can_ask():
            return None
        with kernel.interrupts, wire.turn:
            kernel.streams.flush()
            wire.send_json(b"ask", {"mark": wire.mark(), "prompt": prompt[:65_536], "secret": secret})
        while True:
            kind, token, payload = wire.receive()
            if token != wire.token or kind not in (b"input", b"eof"):
                raise Gone
            if kind == b"eof":
                return None
            return payload.decode("utf-8", "replace")

    def can_ask(self):
        return self.allowed and not self.kernel.wire.is_child() and _thread.get_ident() == self.thread

    def demand(self, prompt, secret, what):
        if not self.can_ask():
            sys.stdout.write(str(prompt))
            if self.allowed and _thread.get_ident() != self.thread:
                raise EOFError("%s works in the main thread only" % what)
            raise EOFError(REFUSAL % what)
        line = self.line(str(prompt), secret)
        if line is None:
            raise EOFError("EOF when reading a line")
        return line

    def make_input(self):
        def input(prompt="", /):
            """Read a line from whoever runs this code."""
            return self.demand(prompt, False, "input()")

        input.__module__ = "builtins"
        return input

    def make_getpass(self):
        def getpass(prompt="Password: ", stream=None, **_more):
            """Read a line from whoever runs this code, without showing it."""
            return self.demand(prompt, True, "getpass()")

        getpass.__module__ = "getpass"
        return getpass
