"""DataFrames and Series of pandas and polars as columns: types kept, rows capped, the true count told."""

import datetime
import sys

from glovebox_kernel.plain import sanitised
from glovebox_kernel.results import TABLE

MOST_ROWS = 1000
MOST_COLUMNS = 2000
MOST_CELLS = 200_000
LONGEST_OTHER = 200
OF_KIND = {"i": "integer", "u": "integer", "f": "number", "b": "boolean", "M": "datetime", "m": "duration"}
INFERRED = {"string": "string", "boolean": "boolean", "integer": "integer", "floating": "number", "mixed-integer-float": "number", "decimal": "number"}
INFERRED.update({"date": "datetime", "datetime": "datetime", "datetime64": "datetime", "timedelta": "duration", "empty": "other"})
OF_POLARS = {"Boolean": "boolean", "Utf8": "string", "String": "string", "Date": "datetime", "Datetime": "datetime", "Duration": "duration"}
OF_POLARS.update({"Categorical": "category", "Enum": "category", "Decimal": "number"})


def table_bundle(value, library):
    kind = {base.__name__ for base in type(value).__mro__}
    is_frame = "DataFrame" in kind
    if not is_frame and "Series" not in kind:
        return {}
    table = polars_table(value, is_frame) if library == "polars" else pandas_table(value, is_frame)
    if not table:
        return {}
    data = {TABLE: table}
    if not is_frame and hasattr(value, "to_frame") and not hasattr(value, "_repr_html_"):
        data["text/html"] = value.to_frame()._repr_html_()
    return data


def rows_told(columns):
    return min(MOST_ROWS, MOST_CELLS // max(1, columns))


def pandas_table(value, is_frame):
    width = value.shape[1] if is_frame else 1
    if width > MOST_COLUMNS:
        return None
    head = value.iloc[: rows_told(width)]
    if is_frame:
        columns = [pandas_column(name, head.iloc[:, at]) for at, name in enumerate(head.columns)]
    else:
        columns = [pandas_column("" if value.name is None else value.name, head)]
    index = head.index
    name = "" if index.name is None else index.name
    if getattr(index, "nlevels", 1) > 1:
        name = ", ".join("" if level is None else str(level) for level in index.names)
    return {"columns": columns, "rows": int(value.shape[0]), "index": pandas_column(name, index)}


def pandas_column(name, values):
    kind = pandas_type(values)
    return {"name": column_name(name), "type": kind, "values": [cell(one, kind) for one in values.tolist()]}


def pandas_type(values):
    dtype = values.dtype
    if str(dtype) == "category":
        return "category"
    if str(dtype) in ("string", "str"):
        return "string"
    kind = OF_KIND.get(getattr(dtype, "kind", "O"))
    if kind:
        return kind
    if getattr(values, "nlevels", 1) > 1:
        return "other"
    return INFERRED.get(sys.modules["pandas"].api.types.infer_dtype(values, skipna=True), "other")


def column_name(name):
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def polars_table(value, is_frame):
    width = value.width if is_frame else 1
    if width > MOST_COLUMNS:
        return None
    head = value.head(rows_told(width))
    columns = [polars_column(one) for one in (head.get_columns() if is_frame else [head])]
    return {"columns": columns, "rows": int(value.height if is_frame else len(value))}


def polars_column(series):
    name = str(series.dtype).split("(")[0].split("[")[0]
    kind = OF_POLARS.get(name)
    if kind is None:
        kind = "integer" if name.lstrip("U").startswith("Int") else "number" if name.startswith("Float") else "other"
    return {"name": series.name, "type": kind, "values": [cell(one, kind) for one in series.to_list()]}


def is_missing(value):
    """None, NaN, NaT, NA: nothing equals itself less clearly."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ in ("NAType", "NaTType")


def cell(value, kind):
    if is_missing(value):
        return None
    if kind == "datetime":
        return value.isoformat() if hasattr(value, "isoformat") else str(value)
    if kind == "duration":
        return iso_duration(value)
    if kind == "number" and not isinstance(value, (int, float)):
        return float(value)
    if kind == "other" and not isinstance(value, (bool, int, float, str)):
        return str(value)[:LONGEST_OTHER]
    if kind == "category" and hasattr(value, "isoformat"):
        return value.isoformat()
    return sanitised(value)


def iso_duration(value):
    """ISO 8601, as pandas writes it."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if not isinstance(value, datetime.timedelta):
        return str(value)
    seconds, sign = value.total_seconds(), ""
    if seconds < 0:
        seconds, sign = -seconds, "-"
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    return "%sP%dDT%dH%dM%gS" % (sign, days, hours, minutes, round(rest, 6))
