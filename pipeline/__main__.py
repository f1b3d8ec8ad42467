"""
`python -m pipeline`, and what `spark-submit` is given: the command by itself.

Where workers get the package as an archive nothing is installed, and no command registered.
"""

import sys

# Who runs this as a file, as spark-submit does, would take our module `numbers` for Python's own.
sys.path[:] = [folder for folder in sys.path if folder != __file__.rpartition("/")[0]]

from dissector.cli import main  # noqa: E402
from pipeline.cli import pipeline  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["pipeline", *sys.argv[1:]], [("pipeline", pipeline)]))
