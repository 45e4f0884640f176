"""What matplotlib knows only while it draws: the numbers of a pie, the quartiles of a box. Kept with the artists."""

from glovebox_kernel.chart_axes import number

MOST_OUTLIERS = 5000


class Box:
    def __init__(self, stats, position, is_vertical):
        self.stats = stats
        self.position = position
        self.is_vertical = is_vertical
        self.artists = []

    def told(self, x, y):
        stats = self.stats
        across = x if self.is_vertical else y
        names = ("whislo", "q1", "med", "q3", "whishi")
        low, lower, median, upper, high = [number(stats[name]) for name in names]
        outliers = [number(one) for one in list(stats.get("fliers", []))[:MOST_OUTLIERS]]
        return {
            "label": across.slot(self.position),
            "min": low,
            "lowerQuartile": lower,
            "median": median,
            "upperQuartile": upper,
            "max": high,
            "outliers": [one for one in outliers if one is not None],
        }


def boxes_of(axes):
    return getattr(axes, "_glovebox_boxes", [])


def value_of(wedge):
    return getattr(wedge, "_glovebox_value", None)


def remember(axes_class):
    """Wraps the two methods that everything else, also of other libraries, ends up in."""
    import functools

    draw_pie, draw_boxes = axes_class.pie, axes_class.bxp

    @functools.wraps(draw_pie)
    def pie(self, x, *arguments, **options):
        drawn = draw_pie(self, x, *arguments, **options)
        try:
            wedges = getattr(drawn, "wedges", None) or drawn[0]
            for wedge, value in zip(wedges, x):
                wedge._glovebox_value = number(value)
        except Exception:
            pass
        return drawn

    @functools.wraps(draw_boxes)
    def bxp(self, bxpstats, *arguments, **options):
        bxpstats = list(bxpstats)
        drawn = draw_boxes(self, bxpstats, *arguments, **options)
        try:
            keep_boxes(self, bxpstats, drawn, arguments, options)
        except Exception:
            pass
        return drawn

    axes_class.pie, axes_class.bxp = pie, bxp


def keep_boxes(axes, stats, drawn, arguments, options):
    positions = arguments[0] if arguments else options.get("positions")
    if positions is None:
        positions = range(1, len(stats) + 1)
    vertical = options.get("vert")
    is_vertical = options.get("orientation", "vertical") == "vertical" if vertical is None else bool(vertical)
    boxes = [Box(one, float(position), is_vertical) for one, position in zip(stats, positions)]
    if boxes:
        boxes[0].artists = [artist for artists in drawn.values() for artist in artists]
    axes._glovebox_boxes = [*boxes_of(axes), *boxes]
