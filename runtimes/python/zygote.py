# The zygote of Python: imports what it was told to, and then is forked for each run. Nothing that came from a run is ever here, but in those forks.
#
# A fork goes on as program.py says, which is sent before this; what is left of the zygote are the modules that are there already, the seed of str hashes, and a few
# frames below the program's own.
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


class Sparing:
    """Asked before all others where a module is, and finds none: but what OpenSSL is loaded with is known before it is used."""

    def __init__(self, library):
        self.library = library

    def find_spec(self, name, path=None, target=None):
        if name in ("_hashlib", "_ssl"):
            spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, path)
            if spec is not None and spec.origin:
                self.library.spare(os.fsencode(spec.origin))


def prepare(library, names):
    sparing = Sparing(library)
    if names:
        library.gather(1)
        sys.meta_path.insert(0, sparing)
    import_ahead(names)
    if names:
        sys.meta_path.remove(sparing)
        library.gather(0)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"import {' '.join(names)}: {threads - 1} threads were started, and no fork would have them")


def load():
    spec = type(sys.implementation)(name="_glovebox", origin=f"/proc/self/fd/{LIBRARY}")
    library = _imp.create_dynamic(spec)
    sys.modules.pop(spec.name, None)
    os.close(LIBRARY)
    return library


def serve(library):
    gc.collect()
    gc.freeze()
    library.greet(SOCKET)
    print(f"ready {sys.executable}", flush=True)
    argv, envp = library.serve(SOCKET)
    return [os.fsdecode(each) for each in argv], envp


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


def begin(own, names):
    library = load()
    prepare(library, names)
    # It was for the libraries that were imported, and no program has it unless it says so.
    for name in own:
        del os.environ[name]
    argv, envp = serve(library)
    if envp is not None:
        take_environment(envp)
    renumber()
    reseed()
    sys.orig_argv = argv
    return library, argv


def compiled(library, source, name):
    """The builtin that compiles makes every class of the ast first, which takes longer than all else here; the library does not."""
    return compile(source, name, "exec", dont_inherit=True) if b"\0" in source else library.compile(source, os.fsencode(name))


def run(own, names):
    library, argv = begin(own, names)
    status = execute(argv, lambda source, name: compiled(library, source, name))
    try:
        whole = finish(sys.modules["__main__"].__dict__)
    except BaseException as error:
        report(error, error.__traceback__)
        whole = True
    library.leave(status if whole else 120)


run([name for name in sys.argv[1].split(",") if name], sys.argv[2:])
