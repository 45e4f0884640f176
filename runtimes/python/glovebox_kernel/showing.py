"""How values get out: the last expression, display(), and figures that code left open."""

import json
import sys

from glovebox_kernel.results import bundle, fitted
from glovebox_kernel.wire import LONGEST_FRAME

MOST_RESULT = 10 * 2**20


class Showing:
    """The kernel's half that shows."""

    drawn = None
    is_last_value = False

    def figures(self):
        if self.drawn is None:
            from glovebox_kernel.figures import Figures

            self.drawn = Figures(self)
        return self.drawn

    def finish_figures(self, shows):
        if "matplotlib.pyplot" in sys.modules and not self.wire.is_child():
            self.figures().finish(shows)

    def most_bytes(self):
        try:
            return min(int(self.settings.get(b"result-bytes", MOST_RESULT)), LONGEST_FRAME - 65_536)
        except ValueError:
            return MOST_RESULT

    def show_value(self, value):
        """sys.displayhook."""
        if value is None:
            return
        self.builtins_module._ = value
        self.show(value, self.is_last_value)

    def show(self, value, is_main):
        if self.wire.is_child() or self.wire.token is None:
            sys.stdout.write(repr(value) + "\n")
            return
        from glovebox_kernel import magics

        most = self.most_bytes()
        data, cut = magics.formatted(value) or bundle(value, most)
        self.send_result(data, cut, is_main)

    def send_result(self, data, cut, is_main):
        body, cut = fitted(data, self.most_bytes(), cut)
        with self.interrupts, self.wire.turn:
            if self.wire.token is None:
                return
            self.streams.flush()
            head = '{"mark":%d,"main":%s,"cut":%s,"data":' % (self.wire.mark(), "true" if is_main else "false", json.dumps(cut))
            self.wire.send(b"result", self.wire.token, head.encode() + body + b"}")

    def display(self, *values, raw=False, **_options):
        """Show values now, each in the richest form it has."""
        for value in values:
            if raw and isinstance(value, dict):
                self.publish_display_data(value)
            else:
                self.show(value, False)

    def publish_display_data(self, data, *_arguments, **_options):
        if self.wire.token is not None and not self.wire.is_child():
            self.send_result({"text/plain": "", **data}, [], False)
