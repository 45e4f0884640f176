"""The kernel: takes one execution after the other, and sets right before each what the last one may have left."""

import os
import sys

from glovebox_kernel import errors, stdlib
from glovebox_kernel.asking import Asking
from glovebox_kernel.hooks import Hooks
from glovebox_kernel.interrupts import Interrupts
from glovebox_kernel.showing import Showing
from glovebox_kernel.source import Sources
from glovebox_kernel.streams import Streams
from glovebox_kernel.wire import Gone, Wire

MODULE_NAMES = ("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__")


class Kernel(Showing):
    def __init__(self, memory, own_folder):
        self.memory = memory
        self.interrupts = Interrupts()
        self.wire = Wire(self.interrupts)
        self.sources = Sources()
        self.asking = Asking(self)
        self.streams = Streams(self.asking.line)
        self.hooks = Hooks(self)
        self.main = sys.modules["__main__"]
        self.namespace = self.main.__dict__
        self.number = 0
        self.settings = {}
        self.variables = []
        self.loop = None
        self.begin_as_a_program(own_folder)

    def begin_as_a_program(self, own_folder):
        """What code finds is what it would find at the start of a program."""
        for name in [name for name in self.namespace if name not in MODULE_NAMES]:
            del self.namespace[name]
        sys.argv = [""]
        if own_folder:
            sys.path.insert(0, "")
        stdlib.remember(self.memory.modules_before)
        builtins = sys.modules["builtins"]
        builtins.display = self.display
        builtins.input = self.asking.make_input()
        sys.displayhook = sys.__displayhook__ = self.show_value
        self.builtins = dict(vars(builtins))
        self.finding = {name: list(getattr(sys, name)) for name in ("meta_path", "path_hooks", "path")}
        self.builtins_module = builtins
        self.excepthook = sys.excepthook
        self.recursion = sys.getrecursionlimit()

    # Before and after an execution

    def mend(self):
        """Puts back what code deleted; what it replaced on purpose stays."""
        for name, value in self.builtins.items():
            if name not in self.builtins_module.__dict__ or (callable(value) and not callable(self.builtins_module.__dict__[name])):
                setattr(self.builtins_module, name, value)
        for name in ("meta_path", "path_hooks", "path"):
            if not getattr(sys, name, None):
                setattr(sys, name, list(self.finding[name]))
        # A module that was deleted alone was meant to be: it is imported anew.
        was_cleared = "sys" not in sys.modules or "builtins" not in sys.modules
        for name, module in self.modules.items() if was_cleared else ():
            sys.modules.setdefault(name, module)
        sys.modules.update({"sys": sys, "builtins": self.builtins_module, "__main__": self.main})
        if sys.getrecursionlimit() < self.recursion:
            sys.setrecursionlimit(self.recursion)

    def prepare(self):
        self.wire.restore()
        self.streams.restore()
        self.interrupts.install()
        self.hooks.install()
        if self.memory not in sys.meta_path:
            sys.meta_path.insert(0, self.memory)
        self.namespace["__builtins__"] = self.builtins_module
        self.namespace.setdefault("__name__", "__main__")
        if self.number == 0:
            stdlib.hide_shadowed()
        self.modules = dict(sys.modules)
        self.namespace.pop("__warningregistry__", None)
        self.asking.allowed = self.settings.get(b"input") == b"asked"
        self.was = [(name, os.environb.get(name)) for name, _ in self.variables]
        os.environb.update(self.variables)

    def clean_up(self):
        self.asking.allowed = False
        for name, value in self.was:
            if value is None:
                os.environb.pop(name, None)
            else:
                os.environb[name] = value
        self.settings, self.variables = {}, []

    # One execution

    def execute(self, token, payload):
        self.prepare()
        self.number += 1
        self.wire.begin(token)
        self.interrupts.arm()
        self.wire.mark()
        outcome = self.outcome(payload)
        self.mend()
        self.clean_up()
        self.streams.flush()
        with self.wire.turn:
            done = {"mark": self.wire.mark(), "number": self.number}
            done.update(outcome)
            self.wire.send_json(b"done", done)
            self.wire.token = None

    def outcome(self, payload):
        """Whatever happens in it is an outcome, also a second interrupt while the first is being told."""
        name = "<code %d>" % (self.number)
        try:
            try:
                self.interrupts.begin()
                self.evaluate(payload, name)
                outcome = {"status": "ok"}
            except Gone:
                raise
            except BaseException as error:
                outcome = self.failed(error, name)
            if self.wire.is_child():
                self.end_child(0)
            self.interrupts.end()
            return outcome
        except Gone:
            raise
        except BaseException as error:
            self.interrupts.end()
            kind = type(error).__name__
            return {"status": "error", "error": {"name": kind, "value": "", "traceback": kind + "\n", "full": kind + "\n"}}
        finally:
            self.interrupts.end()

    def evaluate(self, payload, name):
        text = self.sources.decode(payload)
        cell = self.compiled(text, name)
        value = None
        try:
            if cell.awaits:
                value = self.event_loop().run(cell.codes, self.namespace)
            else:
                for code in cell.codes:
                    value = eval(code, self.namespace)
            sys.settrace(None)
            sys.setprofile(None)
            if cell.shows and not self.wire.is_child():
                self.is_last_value = True
                try:
                    sys.displayhook(value)
                finally:
                    self.is_last_value = False
        except KeyboardInterrupt:
            self.finish_figures(False)
            raise
        except Exception:
            self.mend()
            self.finish_figures(True)
            raise
        self.finish_figures(True)

    def compiled(self, text, name):
        try:
            return self.sources.compile(text, name)
        except SyntaxError as error:
            from glovebox_kernel import magics

            if not magics.may_be_meant(text):
                raise
            return magics.compiled(self, (text, name), error)

    def failed(self, error, name):
        sys.settrace(None)
        sys.setprofile(None)
        self.mend()
        if self.wire.is_child():
            self.end_child(error)
        if isinstance(error, SystemExit):
            return {"status": "exit", "code": self.exit_code(error)}
        self.sources.complete(error, name)
        told = errors.describe(error, name)
        if sys.excepthook is not self.excepthook:
            try:
                sys.excepthook(type(error), error, error.__traceback__)
            except Exception:
                pass
        return {"status": "error", "error": told}

    @staticmethod
    def exit_code(error):
        code = error.code
        if code is None:
            return 0
        if isinstance(code, int):
            # As Python: what fits no number of C's is none of success.
            return int(code) & 0xFF if -(2**63) <= code < 2**63 else 255
        sys.stderr.write("%s\n" % (code,))
        return 1

    def end_child(self, error):
        """The code has forked, and this is the child at its end: it goes the way of a program."""
        code = 0
        if isinstance(error, SystemExit):
            code = self.exit_code(error)
        elif error:
            sys.stderr.write(errors.formatted(error, errors.is_users))
            code = 1
        self.streams.flush()
        os._exit(code)

    def event_loop(self):
        if self.loop is None:
            from glovebox_kernel.loop import Loop

            self.loop = Loop()
        return self.loop

    # The conversation

    def serve(self):
        version = "%d.%d.%d" % sys.version_info[:3]
        self.wire.send_json(b"ready", {"language": "python", "version": version})
        while True:
            kind, token, payload = self.wire.receive()
            if kind == b"cwd":
                os.chdir(payload)
            elif kind == b"option":
                name, _, value = payload.partition(b"=")
                self.settings[name] = value
            elif kind == b"env":
                name, _, value = payload.partition(b"=")
                self.variables.append((name, value))
            elif kind == b"execute":
                self.execute(token, payload)
            elif kind not in (b"input", b"eof"):
                raise Gone


KERNEL = None


def run(memory, own_folder):
    global KERNEL
    kernel = KERNEL = Kernel(memory, own_folder)
    kernel.interrupts.install()
    try:
        import faulthandler

        # A crash of the interpreter says where the code was.
        faulthandler.enable(kernel.wire.copies[2])
    except (ImportError, ValueError, OSError):
        pass
    try:
        kernel.serve()
    except Gone:
        pass
    if not kernel.wire.is_child():
        __import__("atexit")._run_exitfuncs()
    kernel.streams.flush()
    os._exit(0)
