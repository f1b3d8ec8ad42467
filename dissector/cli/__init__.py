"""The command line: `kafkashark COMMAND CAPTURE... [options]`."""

import gc
import os
import signal
from contextlib import suppress
from typing import Any

# What the modules of a command make stays; to look for garbage among it takes longer than to run.
# `dissector.cli.app` sets what is in force when they are loaded.
gc.set_threshold(500_000)

# Before numpy is loaded: its threads for algebra, which we do none of, would spin a tenth of a
# second beside us.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: list[str] | None = None, plugins: Any = None) -> int:
    """Run a command; see `dissector.cli.app`."""
    before = signal.getsignal(signal.SIGINT)
    with suppress(ValueError):  # not the main thread
        if before is not signal.SIG_IGN:
            # What is loaded first takes half a second; a traceback of that helps nobody.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from dissector.cli.app import main as run

        return run(arguments, plugins)
    finally:
        if arguments is None:
            # The interpreter would look for garbage among all that is still there, a tenth of the
            # time of a small capture.
            gc.freeze()
        else:
            with suppress(ValueError):
                signal.signal(signal.SIGINT, before)


__all__ = ["main"]
