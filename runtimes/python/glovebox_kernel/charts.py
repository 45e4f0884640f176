"""What a matplotlib figure shows, as data: one chart for each pair of axes, in the shape of contract/charts.ts.

Read from the artists after drawing, because only then ticks have their text. What matplotlib forgets while it draws
(the numbers of a pie, the quartiles of a box) is remembered by `chart_memory`."""

from glovebox_kernel.chart_axes import Axis
from glovebox_kernel.chart_memory import boxes_of
from glovebox_kernel.chart_series import bars, is_empty, lines, pies, scatters

PLAIN = ("rectilinear",)


def chart_of(figure):
    groups = grouped([axes for axes in figure.axes if is_told(axes)])
    title = suptitle(figure)
    charts = [chart for chart in map(chart_of_group, groups) if chart is not None]
    if len(charts) == 1:
        return dict(charts[0], title=charts[0]["title"] or title)
    if charts:
        return {"type": "subplots", "title": title, "charts": charts}
    return {"type": "unknown", "title": title}


def suptitle(figure):
    text = getattr(figure, "_suptitle", None)
    return (text.get_text() or None) if text is not None else None


def is_told(axes):
    if axes.get_label() == "<colorbar>" or hasattr(axes, "_colorbar"):
        return False
    return axes.get_visible() and not (is_empty(axes) and not axes.axison)


def grouped(all_axes):
    """Axes that lie on each other, as twinx() makes them, are one chart."""
    groups = []
    for axes in all_axes:
        for group in groups:
            if group[0] in twins(axes):
                group.append(axes)
                break
        else:
            groups.append([axes])
    return groups


def twins(axes):
    grouper = getattr(axes, "_twinned_axes", None)
    return [] if grouper is None else [other for other in grouper.get_siblings(axes) if other is not axes]


def chart_of_group(group):
    if len(group) == 1:
        return guarded(group[0])
    parts = [part for axes in group for part in flattened(guarded(axes))]
    if len(parts) == 1:
        return parts[0]
    first = next((part for part in parts if part.get("title")), {"title": None})
    x, y = Axis(group[0], "x"), Axis(group[0], "y")
    return {"type": "mixed", "title": first["title"], "x": x.told(), "y": y.told(), "parts": parts}


def flattened(chart):
    if chart["type"] == "unknown":
        return []
    return chart["parts"] if chart["type"] == "mixed" else [chart]


def guarded(axes):
    """An artist that is not as expected makes its own axes unknown, and no others."""
    try:
        return chart_of_axes(axes)
    except Exception:
        return {"type": "unknown", "title": title_of(axes)}


def title_of(axes):
    for place in ("center", "left", "right"):
        title = axes.get_title(loc=place)
        if title:
            return title
    return None


def chart_of_axes(axes):
    title = title_of(axes)
    if axes.name not in PLAIN:
        return {"type": "unknown", "title": title}
    slices = pies(axes)
    if slices:
        return {"type": "pie", "title": title, "slices": slices}
    found = boxes_of(axes)
    has_slots = bool(found) or any(type(container).__name__ == "BarContainer" for container in axes.containers)
    x, y = Axis(axes, "x", has_slots), Axis(axes, "y", has_slots)
    parts = []
    for kind, key, told in (
        ("bar", "series", bars(axes, x, y)),
        ("box", "boxes", [box.told(x, y) for box in found]),
        ("line", "series", lines(axes, x, y, False)),
        ("scatter", "series", scatters(axes, x, y) + lines(axes, x, y, True)),
    ):
        if told:
            parts.append({"type": kind, "title": None, "x": x.told(), "y": y.told(), key: told})
    if not parts:
        return {"type": "unknown", "title": title, "x": x.told(), "y": y.told()}
    if len(parts) == 1:
        return dict(parts[0], title=title)
    return {"type": "mixed", "title": title, "x": x.told(), "y": y.told(), "parts": parts}
