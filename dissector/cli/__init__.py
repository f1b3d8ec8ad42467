"""The command line: `kafkashark COMMAND CAPTURE... [options]`."""

import gc
import os
import signal
from contextlib import suppress
from typing import Any

# Objects of a command's modules stay alive: collecting garbage takes longer than the command.
# `dissector.cli.app` sets the threshold after they are loaded.
gc.set_threshold(500_000)

# Before numpy is loaded: its threads for algebra, which we do none of, would spin a tenth of a
# second beside us.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: list[str] | None = None, plugins: Any = None) -> int:
    """Run a command; see `dissector.cli.app`."""
    before = signal.getsignal(signal.SIGINT)
    with suppress(ValueError):  # not the main thread
        if before is not signal.SIG_IGN:
            # Imports take half a second at first; a traceback of them is useless.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from dissector.cli.app import main as run

        return run(arguments, plugins)
    finally:
        if arguments is None:
            # The interpreter would search all remaining objects for garbage, a tenth of the
            # time of a small capture.
            gc.freeze()
        else:
            with suppress(ValueError):
                signal.signal(signal.SIGINT, before)


__all__ = ["main"]
