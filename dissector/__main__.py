"""`python -m dissector` is the command `kafkashark`."""

import sys

from dissector.cli import main

if __name__ == "__main__":
    sys.exit(main())
