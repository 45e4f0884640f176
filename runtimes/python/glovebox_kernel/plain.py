"""Values of builtin types as JSON."""

import math

MOST_NODES = 100_000
DEEPEST = 64


class NotPlain(Exception):
    pass


def plain_json(value, most):
    """A dict or list as application/json, where it is nothing but JSON and not too large."""
    try:
        count(value, [MOST_NODES, most], 0)
    except NotPlain:
        return {}
    return {"application/json": value}


def count(value, left, depth):
    kind = type(value)
    left[0] -= 1
    if left[0] < 0 or left[1] < 0 or depth > DEEPEST:
        raise NotPlain
    if kind is str:
        left[1] -= len(value)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise NotPlain
            left[1] -= len(key)
            count(item, left, depth + 1)
    elif kind is list:
        for item in value:
            count(item, left, depth + 1)
    elif kind is int:
        if abs(value) > 2**53:
            raise NotPlain
    elif kind is float:
        if not math.isfinite(value):
            raise NotPlain
    elif value is not None and kind is not bool:
        raise NotPlain


def sanitised(value, depth=0):
    """The nearest JSON: what has no place in it becomes null or text."""
    if depth > DEEPEST:
        return None
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= 2**53 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): sanitised(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [sanitised(item, depth + 1) for item in value]
    for method in ("tolist", "item", "isoformat"):
        call = getattr(value, method, None)
        if callable(call):
            return sanitised(call(), depth + 1)
    return str(value)
