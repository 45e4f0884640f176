"""SIGINT: a KeyboardInterrupt while code runs, nothing between executions, and never in the middle of a frame."""

# Not `signal`: that imports enum, which the code may never need.
import _signal
import _thread


class Interrupts:
    def __init__(self):
        self.running = False
        self.pending = False
        self.held = 0
        self.thread = _thread.get_ident()
        self.handler = self.on_signal

    def install(self):
        """Before every execution, because code may have set or blocked it."""
        if _signal.getsignal(_signal.SIGINT) is not self.handler:
            _signal.signal(_signal.SIGINT, self.handler)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGINT])

    def on_signal(self, _signal_number, _frame):
        if not self.running:
            return
        if self.held:
            self.pending = True
            return
        raise KeyboardInterrupt

    def arm(self):
        """Before anyone is told that code runs: whoever interrupts it then is heard, once it does."""
        self.pending = False
        self.held = 1
        self.running = True

    def begin(self):
        self.held = 0
        if self.pending:
            self.pending = False
            raise KeyboardInterrupt

    def end(self):
        self.running = False

    def __enter__(self):
        """What is inside is done as a whole; an interrupt is raised after it."""
        self.held += 1

    def __exit__(self, *_error):
        self.held -= 1
        if self.pending and not self.held:
            self.pending = False
            if _thread.get_ident() != self.thread:
                _thread.interrupt_main()
            elif self.running:
                raise KeyboardInterrupt
