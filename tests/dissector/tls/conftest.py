"""Commands, as in the tests of `dissector.cli`."""

from tests.dissector.cli.conftest import good, run

__all__ = ["good", "run"]
