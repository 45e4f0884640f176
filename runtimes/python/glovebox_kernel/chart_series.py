"""The artists of one pair of axes as series: lines, points, bars, boxes and slices."""

from glovebox_kernel.chart_axes import number
from glovebox_kernel.chart_memory import boxes_of, value_of

MOST_POINTS = 5000


def name_of(artist):
    """Its label, where it was given one: matplotlib's own begin with an underscore."""
    label = artist.get_label()
    return label if isinstance(label, str) and label and not label.startswith("_") else None


def of_legend(axes, colour):
    """What the legend calls that colour: some libraries label it alone, and not what is drawn."""
    legend = axes.get_legend()
    if legend is None:
        return None
    from matplotlib.colors import to_hex

    handles = getattr(legend, "legend_handles", None) or getattr(legend, "legendHandles", [])
    for handle, text in zip(handles, legend.get_texts()):
        for method in ("get_facecolor", "get_color"):
            own = getattr(handle, method, lambda: None)()
            if own is None or isinstance(own, str) and own == "none":
                continue
            own = own[0] if hasattr(own, "ndim") and own.ndim == 2 and len(own) else own
            try:
                if to_hex(own) == to_hex(colour):
                    return text.get_text() or None
            except ValueError:
                pass
    return None


def is_empty(axes):
    return not (axes.lines or axes.collections or axes.patches or axes.images or axes.containers or axes.texts)


def thinned(xs, ys):
    """Evenly fewer, where there are too many to tell."""
    step = max(1, -(-len(xs) // MOST_POINTS))
    return zip(xs[::step], ys[::step])


def helpers(axes):
    """Lines that are no data of their own: caps of error bars, the base of a stem plot, the parts of boxes."""
    found = []
    for container in axes.containers:
        kind = type(container).__name__
        if kind == "ErrorbarContainer":
            found += container[1]
        elif kind == "StemContainer":
            found.append(container.baseline)
    for box in boxes_of(axes):
        found += box.artists
    return {id(artist) for artist in found}


def lines(axes, x, y, as_points):
    """Lines proper, or those of which only the markers are drawn."""
    left_out = helpers(axes)
    told = []
    for line in axes.lines:
        is_points = line.get_linestyle() in ("None", "none", " ", "")
        if id(line) in left_out or is_points is not as_points or not line.get_visible():
            continue
        # Lines across the whole axes, as axhline() draws them, are not in the units of the data.
        if line.get_transform() != axes.transData or (is_points and line.get_marker() in ("None", "none", None, "", " ")):
            continue
        xs, ys = line.get_xdata(orig=False), line.get_ydata(orig=False)
        points = [[x.value(a), y.value(b)] for a, b in thinned(xs, ys)]
        if points:
            told.append({"label": name_of(line) or container_name(axes, line) or of_legend(axes, line.get_color()), "points": points, "count": len(xs)})
    return told


def container_name(axes, line):
    """Error bars and stems carry the label for the line in them."""
    for container in axes.containers:
        if type(container).__name__ in ("ErrorbarContainer", "StemContainer") and line in container.get_children():
            return name_of(container)
    return None


def scatters(axes, x, y):
    told = []
    for points in axes.collections:
        if type(points).__name__ != "PathCollection" or not points.get_visible():
            continue
        offsets = points.get_offsets()
        offsets = offsets.filled(float("nan")) if hasattr(offsets, "filled") else offsets
        if len(offsets):
            xs, ys = offsets[:, 0], offsets[:, 1]
            told += [point_series(label, (xs[rows], ys[rows]), (x, y)) for label, rows in by_colour(axes, points, len(xs))]
    return told


def point_series(label, places, along):
    (xs, ys), (x, y) = places, along
    return {"label": label, "points": [[x.value(a), y.value(b)] for a, b in thinned(xs, ys)], "count": len(xs)}


def by_colour(axes, points, count):
    """One series, or one for each colour where the legend has a name for all of them: (label, which of the points)."""
    whole = [(name_of(points), slice(None))]
    colours = points.get_facecolors()
    if name_of(points) or axes.get_legend() is None or len(colours) != count or count > MOST_POINTS:
        return whole
    rows = {}
    for row, colour in enumerate(map(tuple, colours)):
        rows.setdefault(colour, []).append(row)
    named = [(of_legend(axes, colour), places) for colour, places in rows.items()] if len(rows) <= 50 else []
    return named if named and all(label for label, _ in named) else whole


def bars(axes, x, y):
    return [told for told in (bar_series(container, x, y) for container in axes.containers if type(container).__name__ == "BarContainer") if told]


def bar_series(container, x, y):
    patches = [patch for patch in container.patches if hasattr(patch, "get_width")][:MOST_POINTS]
    if not patches:
        return None
    orientation = getattr(container, "orientation", None) or "vertical"
    is_vertical = orientation == "vertical"
    across = x if is_vertical else y
    spans = [(p.get_x(), p.get_width()) if is_vertical else (p.get_y(), p.get_height()) for p in patches]
    names = slot_names(across, spans)
    told = []
    for patch, label in zip(patches, names):
        value = number(patch.get_height() if is_vertical else patch.get_width())
        start = number(patch.get_y() if is_vertical else patch.get_x())
        if value is not None and start is not None:
            told.append({"label": label, "value": value, "start": start})
    # A histogram gives its label to the first of its bars.
    named = [name for name in map(name_of, patches) if name]
    label = name_of(container) or (named[0] if len(named) == 1 else None) or of_legend(x.axes, patches[0].get_facecolor())
    return {"label": label, "orientation": orientation, "bars": told}


def slot_names(axis, spans):
    """A histogram's bars touch each other and are called by what they span; others by where they stand."""
    centres = [float(start + width / 2) for start, width in spans]
    is_counted = all(abs(centre - round(centre)) < 1e-9 and abs(width - 1) < 1e-9 for centre, (_, width) in zip(centres, spans))
    if axis.scale in ("categorical", "datetime") or not touches(spans) or is_counted:
        return [axis.slot(centre) for centre in centres]
    return ["%.6g – %.6g" % (start, start + width) for start, width in spans]


def touches(spans):
    if len(spans) < 2:
        return False
    pairs = zip(spans, spans[1:])
    return all(abs(a[0] + a[1] - b[0]) <= 1e-6 * max(abs(a[1]), abs(b[1]), 1e-300) for a, b in pairs)


def pies(axes):
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    told = []
    for wedge in wedges:
        share = number("%.12g" % ((wedge.theta2 - wedge.theta1) / 360))
        value = value_of(wedge)
        told.append({"label": name_of(wedge) or "", "value": share if value is None else value, "share": share})
    return told
