"""
Recording of traffic without capturing packets: clients connect to us, and we to the cluster.

`Recorder` is the Python interface, `kafkashark record` the command, `kafka_recording` the fixture
of pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from record.public import Recorder

__all__ = ["Recorder"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from record import public

        return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
