"""IPython, where it is installed: its formatters, and `%magic`, `!command` and `object?`. Never imported for anything else."""

import os
import re
import sys

MARKS = ("%", "!", "?")


def may_be_meant(text):
    """Whether a source that is no Python has a line as IPython takes them."""
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith(MARKS) or line.endswith("?"):
            return True
        if "=" in line and line.split("=", 1)[1].lstrip().startswith(("%", "!")):
            return True
    return False


def first_magic(text):
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith(MARKS) or stripped.endswith("?"):
            return number, line
    return None


def shell_of(kernel):
    """The one IPython shell of this context, working in the same namespace; None without IPython."""
    try:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config
    except ImportError:
        return None
    if not InteractiveShell.initialized():
        import tempfile

        display, hook = kernel.builtins_module.display, sys.displayhook
        # Its history and its settings would be files among those of the code.
        config = Config()
        config.HistoryManager.enabled = False
        options = {} if "IPYTHONDIR" in os.environ else {"ipython_dir": tempfile.mkdtemp(prefix="ipython-")}
        shell = InteractiveShell.instance(config=config, user_module=kernel.main, user_ns=kernel.namespace, colors="NoColor", **options)
        shell.system = shell.system_raw
        shell.enable_gui = lambda *_arguments: None
        # The kernel shows values itself, in order and within bounds.
        kernel.builtins_module.display = display
        kernel.builtins_module.get_ipython = shell.get_ipython
        kernel.builtins["get_ipython"] = shell.get_ipython
        shell.display_pub.publish = kernel.publish_display_data
        sys.displayhook = hook
    return InteractiveShell.instance()


def compiled(kernel, source, error):
    """The cell, with magics as Python that does what they say."""
    text, name = source
    # Figures are shown anyway, so this one is understood by everyone.
    text = re.sub(r"^([ \t]*)%matplotlib\b.*$", r"\1pass", text, flags=re.MULTILINE)
    if text != source[0]:
        try:
            return kernel.sources.compile(text, name)
        except SyntaxError as other:
            if not may_be_meant(text):
                raise
            error = other
    return kernel.sources.compile(transformed(kernel, text, error), name)


def transformed(kernel, text, error):
    shell = shell_of(kernel)
    if shell is not None:
        return shell.transform_cell(text)
    found = first_magic(text)
    if found is None or (error.lineno or 1) < found[0]:
        raise error
    number, line = found
    name = line.split()[0]
    message = "%s is for IPython, which is not installed here" % name
    raise SyntaxError(message, (error.filename, number, len(line) - len(line.lstrip()) + 1, line)) from None


def formatted(value):
    """(data, cut) by the formatters of IPython's shell, where code has one; else None."""
    module = sys.modules.get("IPython.core.interactiveshell")
    if module is None or not module.InteractiveShell.initialized():
        return None
    library = getattr(type(value), "__module__", "").split(".")[0]
    if library in ("pandas", "polars", "matplotlib", "plotly", "altair", "builtins"):
        return None
    data, _ = module.InteractiveShell.instance().display_formatter.format(value)
    return (data, []) if isinstance(data.get("text/plain"), str) else None
