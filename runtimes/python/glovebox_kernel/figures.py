"""matplotlib's figures: shown once each, by plt.show(), as a value, or because they are open when the code ends."""

import io
import sys

from glovebox_kernel.results import CHART, failure, say


class Figures:
    def __init__(self, kernel):
        self.kernel = kernel
        # By identity: those shown in this execution, held so that no other figure gets their place in memory.
        self.shown = {}

    def adopt(self, pyplot):
        """Makes its show() ours, whatever backend code chooses."""

        def show(*_arguments, **_options):
            """Show all open figures now."""
            self.flush(pyplot)

        show._glovebox = True
        pyplot.show = show

    def is_shown(self, figure):
        return id(figure) in self.shown and not figure.stale

    def note(self, figure):
        self.shown[id(figure)] = figure
        figure.stale = False

    def flush(self, pyplot):
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if not self.is_shown(figure):
                self.kernel.show(figure, False)
        pyplot.close("all")

    def finish(self, shows):
        """At the end of an execution; also of one that failed, for what it had drawn by then."""
        pyplot = sys.modules["matplotlib.pyplot"]
        try:
            if not getattr(pyplot.show, "_glovebox", False):
                self.adopt(pyplot)
            if shows:
                self.flush(pyplot)
            else:
                pyplot.close("all")
        except Exception as error:
            say("the figures could not be shown: %s" % failure(error))
        self.shown.clear()


def figure_bundle(figure):
    """Its picture and its data; either may fail without costing the other."""
    from glovebox_kernel import main

    figures = main.KERNEL.figures()
    if figures.is_shown(figure):
        return {}
    data = {}
    try:
        data["image/png"] = picture(figure)
    except Exception as error:
        say("the figure could not be drawn: %s" % failure(error))
    try:
        from glovebox_kernel.charts import chart_of

        data[CHART] = chart_of(figure)
    except Exception:
        data[CHART] = {"type": "unknown", "title": None}
    figures.note(figure)
    return data


def picture(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight", facecolor=figure.get_facecolor())
    return out.getvalue()
