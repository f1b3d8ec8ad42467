"""The command `kafkashark`, also as `python -m kafkashark`."""

import sys

from kafkashark._packages import require


def main() -> int:
    """Run the command; return its exit status, or 2 if a foreign module shadows `dissector`."""
    try:
        require("dissector")
    except ImportError as error:
        print(f"kafkashark: {error}", file=sys.stderr)
        return 2
    from dissector.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
