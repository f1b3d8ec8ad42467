"""
`python -m pipeline`, and what `spark-submit` is given: the command by itself.

Where workers get the package as an archive nothing is installed, and no command registered.
"""

import sys

from dissector.cli import main
from pipeline.cli import pipeline

if __name__ == "__main__":
    sys.exit(main(["pipeline", *sys.argv[1:]], [("pipeline", pipeline)]))
