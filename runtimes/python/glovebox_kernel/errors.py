"""What is told of an exception: the user's own frames, all frames, and where in this execution's source it was."""

import os
import sys

from glovebox_kernel.stdlib import FOLDER, stdlib

MOST = 65_536
OURS = "glovebox_kernel/"


def shorten(text, most=MOST):
    """The beginning and the end say most."""
    if len(text) <= most:
        return text
    half = (most - 64) // 2
    return "%s\n… %d characters left out …\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def is_users(filename):
    """Code that was executed, and files that are neither of the interpreter nor of a package."""
    if filename.startswith("<code "):
        return True
    # Compiled extensions name files that are not here, relative to where they were built.
    if not os.path.isabs(filename) or "-packages" + os.sep in filename:
        return False
    return not (filename.startswith(FOLDER) or filename.startswith(sys.prefix + "/lib/python"))


def cut(told, keep):
    """Leaves out frames, here and in everything that is chained to it; what happened only among those goes with them."""
    seen, waiting = set(), [told]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        reduce(one, keep)
        for link in ("__cause__", "__context__"):
            before = getattr(one, link)
            if before is not None and id(before) not in seen and reduce(before, keep):
                setattr(one, link, None)
        waiting += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or [])]


def reduce(one, keep):
    """Whether it had frames, and has none now."""
    had = bool(one.stack)
    if had:
        one.stack[:] = [frame for frame in one.stack if keep(frame.filename)]
    return had and not one.stack


def formatted(error, keep):
    stdlib("linecache")
    traceback = stdlib("traceback")
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    cut(told, keep)
    return shorten("".join(told.format()))


def place(error, name):
    """Line and column of the innermost frame that is of this execution's source."""
    if isinstance(error, SyntaxError) and error.filename in (name, None):
        return error.lineno, error.offset
    line = column = None
    tb = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename == name:
            line, column = tb.tb_lineno, column_of(code, tb.tb_lasti)
        tb = tb.tb_next
    return line, column


def column_of(code, instruction):
    positions = getattr(code, "co_positions", None)
    if positions is None or instruction < 0:
        return None
    for index, position in enumerate(positions()):
        if index == instruction // 2:
            line, _, offset, _ = position
            if line is None or offset is None:
                return None
            # It counts bytes, and readers count characters.
            before = stdlib("linecache").getline(code.co_filename, line).encode("utf-8", "replace")[:offset]
            return len(before.decode("utf-8", "ignore")) + 1
    return None


def describe(error, name):
    """The error of a `done` frame. Runs code of the user's (`__str__`), so it may be interrupted or fail itself."""
    kind = type(error)
    told = {"name": kind.__name__}
    try:
        value = str(error.msg) if isinstance(error, SyntaxError) else str(error)
    except Exception as inner:
        value = "<str() of it raised %s>" % type(inner).__name__
    told["value"] = shorten(value)
    try:
        told["traceback"] = formatted(error, is_users)
        told["full"] = formatted(error, lambda filename: not filename.startswith(OURS))
    except Exception as inner:
        told["traceback"] = told["full"] = "%s: %s\n<its traceback raised %s>\n" % (told["name"], told["value"], type(inner).__name__)
    line, column = place(error, name)
    if isinstance(line, int) and line > 0:
        told["line"] = line
        if isinstance(column, int) and column > 0:
            told["column"] = column
    return told
