"""
`python -m pipeline`, and the file for `spark-submit`: the command on its own.

On workers, which get the package as an archive, no command is registered.
"""

import sys

# Run as a file, by spark-submit, our modules would shadow the standard library.
sys.path[:] = [folder for folder in sys.path if folder != __file__.rpartition("/")[0]]

from dissector.cli import main  # noqa: E402
from pipeline.cli import pipeline  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["pipeline", *sys.argv[1:]], [("pipeline", pipeline)]))
