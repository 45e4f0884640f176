"""One axis: its label, unit, scale and ticks, and what its numbers mean to a reader."""

import math
import re

SCALES = ("linear", "log", "symlog", "logit")
MOST_TICKS = 100
UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")


def number(value):
    """A finite number for JSON, else None."""
    value = float(value)
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def rounded(value):
    """Of limits and ticks, which matplotlib computes: without the last digits of its arithmetic."""
    value = number(value)
    return None if value is None else number("%.12g" % value)


RAISED = str.maketrans("0123456789-+\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁻")


def plain_text(text):
    """Of the formulas that scales label their ticks with, such as 10³."""
    if not (text.startswith("$") and text.endswith("$")):
        return text
    text = re.sub(r"\\math\w+\{(.*)\}", r"\1", text.strip("$"))
    text = re.sub(r"\^\{([^{}]*)\}", lambda found: found.group(1).translate(RAISED), text)
    return text.replace(r"\times", "×").replace(r"\cdot", "·")


class Axis:
    def __init__(self, axes, which, has_slots=False):
        self.axes = axes
        self.which = which
        self.axis = getattr(axes, which + "axis")
        self.texts = self.tick_texts()
        self.categories = self.category_names()
        self.scale = self.scale_of(has_slots)

    def converter(self):
        axis = self.axis
        return axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)

    def category_names(self):
        """Of an axis of text: position to category."""
        if type(self.converter()).__name__ != "StrCategoryConverter":
            return {}
        mapping = getattr(getattr(self.axis, "units", None), "_mapping", None) or {}
        return {position: str(name) for name, position in mapping.items()}

    def scale_of(self, has_slots):
        if self.categories:
            return "categorical"
        if self.is_dated():
            return "datetime"
        if has_slots and self.has_fixed_texts():
            return "categorical"
        scale = self.axis.get_scale()
        return scale if scale in SCALES else "linear"

    def is_dated(self):
        names = {base.__name__ for thing in (self.converter(), self.axis.get_major_formatter()) for base in type(thing).__mro__}
        dated = {"DateConverter", "ConciseDateConverter", "_SwitchableDateConverter", "DateFormatter", "AutoDateFormatter", "ConciseDateFormatter"}
        return bool(names & dated) or self.frequency() is not None

    def frequency(self):
        """pandas draws regular times as whole numbers of periods."""
        if type(self.axis.get_major_formatter()).__name__ != "TimeSeries_DateFormatter":
            return None
        return getattr(self.axis, "freq", None) or getattr(self.axes, "freq", None)

    def has_fixed_texts(self):
        """Ticks that were given names: those of bars and boxes are what the bars and boxes are called."""
        if type(self.axis.get_major_formatter()).__name__ not in ("FixedFormatter", "FuncFormatter"):
            return False
        return type(self.axis.get_major_locator()).__name__ == "FixedLocator" and any(not is_numeric(text) for _, text in self.texts)

    def tick_texts(self):
        locations = [float(place) for place in self.axis.get_majorticklocs()]
        texts = [plain_text(label.get_text()) for label in self.axis.get_majorticklabels()]
        low, high = sorted(self.axis.get_view_interval())
        margin = (high - low) * 1e-9
        pairs = zip(locations, texts + [""] * len(locations))
        return [(place, text) for place, text in pairs if low - margin <= place <= high + margin][:MOST_TICKS]

    def value(self, position):
        """What stands at a position: a number, a category or a date."""
        if self.categories:
            return self.categories.get(position, number(position))
        if self.scale == "datetime":
            return self.date(position)
        return number(position)

    def date(self, position):
        position = float(position)
        if not math.isfinite(position):
            return None
        frequency = self.frequency()
        if frequency is not None:
            import pandas

            return pandas.Period(ordinal=int(position), freq=frequency).to_timestamp().isoformat()
        from matplotlib import dates

        return dates.num2date(position).replace(tzinfo=None).isoformat()

    def slot(self, position):
        """What a bar or box at a position is called."""
        if self.categories:
            return str(self.categories.get(round(float(position)), rounded(position)))
        if self.scale == "datetime":
            return str(self.date(position))
        if self.scale == "categorical" and self.texts:
            return min(self.texts, key=lambda tick: abs(tick[0] - position))[1]
        return "%.12g" % float(position)

    def told(self):
        label = self.axis.get_label().get_text() or None
        unit = UNIT.search(label) if label else None
        return {
            "label": label,
            "unit": unit.group(1).strip() if unit else None,
            "scale": self.scale,
            "limits": self.limits(),
            "ticks": [{"value": self.tick_value(place, text), "label": text} for place, text in self.texts],
        }

    def tick_value(self, place, text):
        if self.scale == "categorical":
            return self.categories.get(place, text)
        return self.date(place) if self.scale == "datetime" else rounded(place)

    def limits(self):
        if self.scale == "categorical":
            return None
        ends = [self.date(end) if self.scale == "datetime" else rounded(end) for end in getattr(self.axes, "get_%slim" % self.which)()]
        return None if None in ends else ends


def is_numeric(text):
    try:
        float(text.replace("\u2212", "-"))
        return True
    except ValueError:
        return not text
