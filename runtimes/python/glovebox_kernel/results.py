"""A value as a MIME bundle: what its methods say, what we know of its type, and all of it within bounds."""

import base64
import json
import sys

from glovebox_kernel.text import bounded_repr

METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}
BINARY = ("image/png", "image/jpeg", "image/gif", "application/pdf")
# What is dropped last when a result is too large.
FIRST = ("image/png", "application/vnd.glovebox.chart+json", "application/vnd.glovebox.table+json", "image/jpeg", "text/latex")
CHART = "application/vnd.glovebox.chart+json"
TABLE = "application/vnd.glovebox.table+json"


def say(problem):
    try:
        sys.stderr.write(problem + "\n")
    except Exception:
        pass


def failure(error):
    try:
        return "%s: %s" % (type(error).__name__, str(error)[:1000])
    except Exception:
        return type(error).__name__


def text_of(value, most):
    try:
        return bounded_repr(value, most)
    except Exception as error:
        return "<%s object whose __repr__ raised %s>" % (type(value).__name__, failure(error)), False


def asked(value, method):
    """What a method of the value's gives, or None; a tuple's second half is metadata."""
    try:
        call = getattr(value, method, None)
        given = call() if callable(call) else None
    except NotImplementedError:
        return None
    except Exception as error:
        say("%s of %s raised %s" % (method, type(value).__name__, failure(error)))
        return None
    return given[0] if isinstance(given, tuple) and given else given


def answers_everything(value):
    """Such as a mock: it has every method, and none of them means anything."""
    try:
        return getattr(value, "_glovebox_no_such_method_", None) is not None
    except Exception:
        return True


def bundle(value, most):
    """(data, types that were cut already)."""
    data = {}
    if not isinstance(value, type) and not answers_everything(value):
        data.update(special(value, most))
        is_whole = bool(data) and TABLE not in data
        if not data:
            given = asked(value, "_repr_mimebundle_")
            if isinstance(given, dict):
                data.update(given)
        if not is_whole:
            for kind, method in METHODS.items():
                if kind not in data:
                    data[kind] = asked(value, method)
    data = {kind: given for kind, given in data.items() if given is not None and isinstance(kind, str)}
    cut = []
    if not isinstance(data.get("text/plain"), str):
        data["text/plain"], was_cut = text_of(value, most)
        cut = ["text/plain"] if was_cut else []
    return data, cut


def special(value, most):
    """Of types that are known; a library that behaves unexpectedly leaves its value an ordinary one."""
    kind = type(value)
    if kind in (dict, list):
        from glovebox_kernel.plain import plain_json

        return plain_json(value, most)
    library = getattr(kind, "__module__", None)
    library = library.split(".")[0] if isinstance(library, str) else ""
    try:
        if library in ("pandas", "polars", "geopandas"):
            from glovebox_kernel.tables import table_bundle

            return table_bundle(value, library)
        from glovebox_kernel.drawings import drawing_bundle

        return drawing_bundle(value)
    except Exception as error:
        say("%s could not be shown in full: %s" % (kind.__name__, failure(error)))
        return {}


def encoded(kind, given):
    """As it is sent: JSON, UTF-8. None for what cannot be."""
    if kind.split(";")[0] in BINARY or isinstance(given, (bytes, bytearray, memoryview)):
        if not isinstance(given, str):
            given = base64.b64encode(given).decode("ascii")
    elif not (kind.endswith("json") or isinstance(given, str)):
        given = str(given)
    try:
        text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        from glovebox_kernel.plain import sanitised

        text = json.dumps(sanitised(given), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def shortened(text, room):
    """JSON of a beginning of the text that fits: cut as it is sent, and never within a character or an escape."""
    whole = encoded("text/plain", text[: max(0, room)])
    if len(whole) <= room:
        return whole
    begun = whole[: max(1, room - 1)].decode("utf-8", "ignore")
    return begun[: len(begun) - unfinished(begun)].encode("utf-8") + b'"'


def unfinished(begun):
    """How many characters at the end of cut JSON are the beginning of an escape."""
    at = begun.rfind("\\", len(begun) - 6)
    if at < 0:
        return 0
    run = at
    while run > 0 and begun[run - 1] == "\\":
        run -= 1
    rest = begun[at + 1 :]
    is_open = (at - run) % 2 == 0 and (not rest or (rest[0] == "u" and len(rest) < 5))
    return len(begun) - at if is_open else 0


def fitted(data, most, cut):
    """(JSON of the data, types that were cut): at most that many bytes together."""
    parts, others = {}, 0
    for kind, given in data.items():
        try:
            if kind != "text/plain":
                parts[kind] = encoded(kind, given)
                others += len(kind) + len(parts[kind]) + 4
        except Exception as error:
            say("%s could not be sent: %s" % (kind, failure(error)))
    order = sorted(parts, key=lambda kind: (FIRST.index(kind) if kind in FIRST else len(FIRST), len(parts[kind])))
    room = most - 2
    text = data["text/plain"]
    share = max(room // 4, room - others) - len("text/plain") - 4
    plain = encoded("text/plain", text[: share + 1])
    if len(plain) > share or len(text) > share:
        cut = [*cut, "text/plain"] if "text/plain" not in cut else cut
        plain = shortened(text, share)
    out = [b'"text/plain":' + plain]
    room -= len(out[0]) + 1
    for kind in order:
        name = json.dumps(kind).encode() + b":"
        part = parts[kind]
        if len(name) + len(part) + 1 > room:
            cut = [*cut, kind]
            if kind.endswith("json") or kind.split(";")[0] in BINARY or not isinstance(data[kind], str):
                continue
            part = shortened(data[kind], room - len(name) - 1)
            if len(name) + len(part) + 1 > room:
                continue
        out.append(name + part)
        room -= len(name) + len(part) + 1
    return b"{" + b",".join(out) + b"}", cut
