"""What is done right after code has imported a module: figures without windows, passwords without a terminal."""

import os
import sys

from glovebox_kernel import errors

SHOWN_BY = {"plotly.basedatatypes": "BaseFigure", "PIL.Image": "Image"}


def give_settings_a_folder():
    """matplotlib keeps a list of fonts: not among the files of the code, and where home cannot be written somewhere else without a warning."""
    own = os.path.join(os.path.expanduser("~"), ".config", "matplotlib")
    if os.environ.get("MPLCONFIGDIR") or os.path.isdir(own) or os.environ.get("XDG_CONFIG_HOME"):
        return
    import tempfile

    try:
        # The same for all contexts, so that fonts are looked for once.
        folder = os.path.join(tempfile.gettempdir(), "matplotlib-%d" % os.getuid())
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            status = os.lstat(folder)
            if status.st_uid != os.getuid() or status.st_mode & 0o170022 != 0o040000:
                folder = tempfile.mkdtemp(prefix="matplotlib-")
        os.environ["MPLCONFIGDIR"] = folder
    except OSError:
        pass


class Hooks:
    """A finder that finds nothing itself: it lets the others find, and adds to the loading of a few modules."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.finding = False
        self.after = {
            "linecache": lambda module: kernel.sources.publish(),
            "getpass": self.after_getpass,
            "threading": self.after_threading,
            "matplotlib": self.after_matplotlib,
            "matplotlib.axes._axes": self.after_axes,
            "matplotlib.pyplot": lambda module: kernel.figures().adopt(module),
            "IPython.core.display_functions": self.after_ipython,
            "IPython.core.display": self.after_ipython,
            "IPython.display": self.after_ipython,
        }
        self.after.update({name: self.after_shown for name in SHOWN_BY})

    def install(self):
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if self.finding or name not in self.after:
            return None
        if name == "matplotlib":
            give_settings_a_folder()
        self.finding = True
        try:
            spec = self.found(name, path, target)
        finally:
            self.finding = False
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "exec_module"):
            self.follow(loader, self.after[name])
        return spec

    def found(self, name, path, target):
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                return spec
        return None

    def follow(self, loader, after):
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                after(module)
            except Exception:
                # A version of the library that is not as expected: it then works as it does anywhere else.
                pass

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass

    def after_getpass(self, module):
        module.getpass = module.unix_getpass = self.kernel.asking.make_getpass()

    def after_threading(self, module):
        """Its own hook knows no lines of code that is in no file."""

        def excepthook(told):
            if told.exc_type is SystemExit:
                return
            name = told.thread.name if told.thread is not None else "?"
            self.kernel.sources.publish()
            sys.stderr.write("Exception in thread %s:\n%s" % (name, errors.formatted(told.exc_value, errors.is_users)))

        module.excepthook = excepthook

    def after_matplotlib(self, module):
        if not os.environ.get("MPLBACKEND"):
            module.use("agg")

    def after_axes(self, module):
        from glovebox_kernel import chart_memory

        chart_memory.remember(module.Axes)

    def after_shown(self, module):
        """`show()` of these opens a program on the screen; there is none."""
        display = self.kernel.display

        def show(self, *_arguments, **_options):
            display(self)

        getattr(module, SHOWN_BY[module.__name__]).show = show

    def after_ipython(self, module):
        for name in ("display", "publish_display_data"):
            if hasattr(module, name):
                setattr(module, name, getattr(self.kernel, name))
