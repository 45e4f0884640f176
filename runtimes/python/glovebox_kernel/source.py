"""From bytes to code: decoding, the lines that tracebacks show, and the last expression apart from the rest."""

import sys

import _ast

from glovebox_kernel.stdlib import loaded, stdlib

AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
COROUTINE = 0x80 | 0x200
MOST_KEPT = 32 * 2**20


class Cell:
    """What one execution runs: statements, then the last expression where its value is to be shown."""

    def __init__(self, codes, shows):
        self.codes = codes
        self.shows = shows
        self.awaits = any(code.co_flags & COROUTINE for code in codes)


class Sources:
    def __init__(self):
        self.lines = {}
        self.size = 0
        self.future = 0

    def keep(self, name, text):
        """For tracebacks of functions that are called later; the oldest go when it is too much."""
        self.lines[name] = [line + "\n" for line in text.split("\n")]
        self.size += len(text)
        while self.size > MOST_KEPT and len(self.lines) > 1:
            oldest = next(iter(self.lines))
            self.size -= sum(map(len, self.lines.pop(oldest))) - 1
        self.publish([name])

    def publish(self, names=None):
        """To linecache, once something has imported it; again where code has cleared it."""
        for linecache in (sys.modules.get("linecache"), loaded("linecache")):
            if not hasattr(linecache, "cache"):
                continue
            for name in self.lines if names is None else names:
                lines = self.lines[name]
                linecache.cache[name] = (sum(map(len, lines)), None, lines, name)

    def complete(self, error, name):
        """Gives tracebacks their lines, and a SyntaxError that was found after parsing the line it is about."""
        self.publish()
        if isinstance(error, SyntaxError) and error.text is None and error.filename == name:
            lines = self.lines.get(name, [])
            if isinstance(error.lineno, int) and 0 < error.lineno <= len(lines):
                error.text = lines[error.lineno - 1]

    def decode(self, data):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            problem = SyntaxError("the source is not UTF-8: byte 0x%02x at position %d" % (data[error.start], error.start))
            problem.lineno = line
            raise problem from None
        return text[1:] if text.startswith("\ufeff") else text

    def compile(self, text, name):
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.keep(name, text)
        if "\0" in text:
            raise null_error(text, name)
        flags = self.future | AWAIT
        tree = compile(text, name, "exec", flags | _ast.PyCF_ONLY_AST, dont_inherit=True)
        last = None
        if tree.body and isinstance(tree.body[-1], _ast.Expr):
            if not ends_with_semicolon(text, tree.body[-1]):
                last = _ast.Expression(body=tree.body.pop().value)
        codes = []
        if tree.body:
            codes.append(compile(tree, name, "exec", flags, dont_inherit=True))
            if "__future__" in text:
                self.future |= codes[0].co_flags & future_flags()
        if last is not None:
            codes.append(compile(last, name, "eval", self.future | AWAIT, dont_inherit=True))
        return Cell(codes, last is not None)


def null_error(text, name):
    before = text[: text.index("\0")]
    row = before.count("\n")
    return SyntaxError("source code cannot contain null bytes", (name, row + 1, len(before.split("\n")[-1]) + 1, text.split("\n")[row]))


def future_flags():
    future = stdlib("__future__")
    flags = 0
    for name in future.all_feature_names:
        flags |= getattr(future, name).compiler_flag
    return flags


def ends_with_semicolon(text, node):
    """`x;` shows nothing, whatever comment stands behind it."""
    line = text.split("\n")[node.end_lineno - 1] if node.end_lineno > 1 else text.split("\n", 1)[0]
    return line.encode("utf-8", "replace")[node.end_col_offset :].lstrip(b" \t\f").startswith(b";")
