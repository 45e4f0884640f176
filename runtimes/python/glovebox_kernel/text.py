"""repr() that is bounded while it is made, where the type allows."""

CLOSERS = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"), dict: ("{", "}")}
FEW = 20_000


class Full(Exception):
    pass


class Writer:
    def __init__(self, most):
        self.left = most
        self.parts = []

    def write(self, text):
        if len(text) > self.left:
            self.parts.append(text[: self.left])
            self.left = 0
            raise Full
        self.parts.append(text)
        self.left -= len(text)


def bounded_repr(value, most):
    """(text, whether it was cut). Raises what `__repr__` raises."""
    if not is_large(value):
        text = repr(value)
        if not isinstance(text, str):
            raise TypeError("__repr__ returned non-string (type %s)" % type(text).__name__)
        return (text, False) if len(text) <= most else (text[:most], True)
    writer = Writer(most)
    try:
        put(value, writer, [])
    except Full:
        return "".join(writer.parts), True
    return "".join(writer.parts), False


def is_large(value):
    """Whether it is of builtin types and so large that a plain repr would be felt."""
    waiting, seen = [value], 0
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind in (str, bytes, bytearray):
            seen += len(one)
        elif kind in CLOSERS:
            seen += len(one)
            if seen <= FEW:
                waiting += one
                if kind is dict:
                    waiting += one.values()
        seen += 1
        if seen > FEW:
            return True
    return False


def put(value, writer, above):
    kind = type(value)
    if kind is bytearray:
        writer.write("bytearray(")
        put(bytes(value[: writer.left]), writer, above)
        if len(value) > writer.left:
            raise Full
        writer.write(")")
    elif kind in (str, bytes):
        writer.write(repr(value[: writer.left + 1]))
    elif kind in CLOSERS and value and len(above) < 100:
        put_items(value, writer, above)
    else:
        writer.write(repr(value))


class Piece:
    """A few small items in one go, which is much faster than one by one."""

    def __init__(self, items):
        self.items = items


def pieces(value):
    if type(value) is not list:
        yield from value
        return
    for start in range(0, len(value), 500):
        items = value[start : start + 500]
        if is_large(items):
            yield from items
        else:
            yield Piece(items)


def put_items(value, writer, above):
    kind = type(value)
    opening, closing = CLOSERS[kind]
    if id(value) in above:
        writer.write(opening + "..." + closing)
        return
    above.append(id(value))
    writer.write(opening)
    first = True
    for item in pieces(value):
        if not first:
            writer.write(", ")
        first = False
        if type(item) is Piece:
            writer.write(repr(item.items)[1:-1])
            continue
        put(item, writer, above)
        if kind is dict:
            writer.write(": ")
            put(value[item], writer, above)
    if kind is tuple and len(value) == 1:
        writer.write(",")
    writer.write(closing)
    above.pop()
