"""Top-level await: one event loop that lives as long as the context. Loaded at the first await."""

from glovebox_kernel.stdlib import AsLibrary, stdlib


class Loop:
    def __init__(self):
        self.loop = None

    def open(self):
        asyncio = stdlib("asyncio")
        if self.loop is None or self.loop.is_closed():
            # It imports more of itself when it begins.
            with AsLibrary():
                self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop

    def run(self, codes, namespace):
        """The value of the last; tasks that earlier executions began go on meanwhile."""
        loop = self.open()

        async def execution():
            value = None
            for code in codes:
                value = eval(code, namespace)
                if code.co_flags & 0x80:
                    value = await value
            return value

        task = loop.create_task(execution())
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt as interrupt:
            self.cancel(task, interrupt)
            raise

    def cancel(self, task, interrupt):
        """Lets the code clean up, and tells of the interrupt where the code was waiting."""
        if task.done():
            if not task.cancelled():
                task.exception()
            return
        task.cancel()
        cancelled = stdlib("asyncio").CancelledError
        try:
            self.loop.run_until_complete(task)
        except cancelled as error:
            interrupt.with_traceback(error.__traceback__)
        except Exception as error:
            interrupt.__cause__ = error
