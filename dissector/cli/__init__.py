"""The command line: `kafkashark COMMAND CAPTURE... [options]`."""

from dissector.cli.app import main

__all__ = ["main"]
