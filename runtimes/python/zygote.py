# The zygote of Python: imports what it was told to, and then is forked for each run. Nothing that came from a run is ever here, but in those forks.
#
# A fork goes on as if it were a python3 that was just started with the arguments of its run, so far as that can be had: what is left are the modules
# that are there already, the seed of str hashes, and one frame below the program's own.
#
# What is here is in the memory of every cell that has Python ready: so little is imported, and its source is compiled by a child, whose end takes along what that needs.
import _imp
import atexit
import gc
import os
import sys

# Programs are to find only what they import themselves.
del sys.modules["atexit"]

SOCKET, LIBRARY = 3, 4
INTERRUPTED = -2


def prepare(names):
    for name in names:
        try:
            __import__(name)
        except BaseException as error:
            sys.exit(f"import {name}: {type(error).__name__}: {error}")
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"import {' '.join(names)}: {threads - 1} threads were started, and no fork would have them")
    # It was for the libraries that were imported, and no program has it unless it says so.
    for name in [name for name in os.environ if name.endswith("_NUM_THREADS")]:
        del os.environ[name]


def serve():
    spec = type(sys.implementation)(name="_glovebox", origin=f"/proc/self/fd/{LIBRARY}")
    library = _imp.create_dynamic(spec)
    sys.modules.pop(spec.name, None)
    os.close(LIBRARY)
    gc.collect()
    gc.freeze()
    library.greet(SOCKET)
    print(f"ready {sys.executable}", flush=True)
    argv, envp = library.serve(SOCKET)
    return library, [os.fsdecode(each) for each in argv], envp


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


def renumber():
    threading = sys.modules.get("threading")
    if threading is not None:
        threading.main_thread()._set_native_id()


def reseed():
    mtrand = sys.modules.get("numpy.random.mtrand")
    if mtrand is not None:
        mtrand.seed()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)


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


def flush():
    whole = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException as error:
            if stream is sys.stdout:
                whole = False
                print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr)
    return whole


def finish(main):
    """What is left of a program when its code is done. Modules that were there before it stay as they are: to take them apart would copy all that forks share."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    if not flush():
        return False
    for name in [name for name in main if name != "__builtins__"]:
        main[name] = None
    gc.collect()
    return flush()


def begin(names):
    prepare(names)
    library, argv, envp = serve()
    if envp is not None:
        take_environment(envp)
    renumber()
    reseed()
    sys.orig_argv = argv
    return library, argv


def code_from(library, source, name):
    """The builtin that compiles makes every class of the ast first, which takes longer than all else here. exec() of a text does not, nor does the library."""
    if isinstance(source, str):
        return source
    return compile(source, name, "exec", dont_inherit=True) if b"\0" in source else library.compile(source, os.fsencode(name))


def execute(library, argv):
    try:
        source, name, main = code_of(argv)
        code = code_from(library, source, name)
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


def run(names):
    library, argv = begin(names)
    status = execute(library, argv)
    try:
        whole = finish(sys.modules["__main__"].__dict__)
    except BaseException as error:
        report(error, error.__traceback__)
        whole = True
    library.leave(status if whole else 120)


run(sys.argv[1:])
