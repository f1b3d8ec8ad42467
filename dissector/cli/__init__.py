"""The command line: `kafkashark COMMAND CAPTURE... [options]`."""

import gc
import os

# What the modules of a command make stays; to look for garbage among it takes longer than to run.
gc.set_threshold(50_000)

# Before numpy is loaded: its threads for algebra, which we do none of, would spin a tenth of a
# second beside us.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dissector.cli.app import main  # noqa: E402

__all__ = ["main"]
