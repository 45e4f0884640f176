# What an interpreter that was there before its program does as one that was just started with it: its environment, its code, and what nothing caught. What is
# sent into a cell is this and, behind it, what says how the interpreter comes by its program: zygote.py or begun.py.
import os
import sys

INTERRUPTED = -2


def import_ahead(names):
    for name in names:
        try:
            __import__(name)
        except BaseException as error:
            sys.exit(f"import {name}: {type(error).__name__}: {error}")


def take_environment(entries):
    """Only what differs is changed: what is written is copied."""
    wanted = dict(entry.partition(b"=")[::2] for entry in entries)
    for name in [name for name in os.environb if name not in wanted]:
        del os.environb[name]
    for name, value in wanted.items():
        if os.environb.get(name) != value:
            os.environb[name] = value
    if b"TZ" in wanted:
        import time

        time.tzset()


def code_of(argv):
    """The code, and what becomes of the module, of `-c CODE` and `FILE`."""
    main = sys.modules["__main__"].__dict__
    if argv[1] == "-c":
        sys.argv = ["-c", *argv[3:]]
        sys.path[0] = ""
        return argv[2], "<string>", main
    path = argv[1]
    sys.argv = argv[1:]
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        shown = os.path.join(os.getcwd(), path)
        print(f"{argv[0]}: can't open file {shown!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(2)
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    main.update(__file__=path, __cached__=None, __loader__=loader)
    return source, path, main


def report(error, frames):
    """As an interpreter does with what nothing caught: the exit status."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, frames
    try:
        sys.excepthook(type(error), error, frames)
    except SystemExit as leaving:
        return status_of(leaving)
    except BaseException as worse:
        print("Error in sys.excepthook:", file=sys.stderr)
        # What called the hook is no frame of the program's, and the original is told below.
        worse.__context__ = None if worse.__context__ is error else worse.__context__
        worse.__traceback__ = worse.__traceback__.tb_next
        sys.__excepthook__(type(worse), worse, worse.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, frames)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def status_of(leaving):
    code = leaving.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    try:
        print(code, file=sys.stderr)
    except BaseException:
        pass
    return 1


def compiled_usually(source, name):
    return compile(source, name, "exec", dont_inherit=True)


def execute(argv, compiled=compiled_usually):
    """A text is compiled where it is executed, which is sooner done."""
    try:
        source, name, main = code_of(argv)
        code = source if isinstance(source, str) else compiled(source, name)
    except SystemExit as leaving:
        return status_of(leaving)
    except BaseException as error:
        error.__traceback__ = None
        return report(error, None)
    try:
        exec(code, main)
    except SystemExit as leaving:
        return status_of(leaving)
    except BaseException as error:
        # Its first frame is this one; what cannot be compiled has no other.
        error.__traceback__ = error.__traceback__.tb_next
        return report(error, error.__traceback__)
    return 0
