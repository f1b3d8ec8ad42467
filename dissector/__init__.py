"""
Reads Apache Kafka traffic out of packet captures.

    from kafkashark import codec, dissect, open_capture

    for exchange in dissect("a.pcap"):
        print(exchange.api, exchange.status, exchange.latency_ms)

    open_capture("a.pcap").exchanges()   # a polars.DataFrame with the columns of `kafkashark pairs`
    codec(0, 9, "request").parse(body)   # a construct.Container
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dissector.public import *  # noqa: F403


def __dir__() -> list[str]:
    """Return the public names; they are loaded on first use."""
    from dissector.public import __all__ as names

    return sorted(names)


def __getattr__(name: str) -> Any:
    """Load `dissector.public` on first use; a command may need only a part of the package."""
    # `from dissector import MODULE` calls this first, possibly while `public` is being loaded.
    if name == "__all__" or not (name.startswith("_") or find_spec(f"{__name__}.{name}")):
        public = import_module("dissector.public")
        if name == "__all__" or name in public.__all__:
            return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
