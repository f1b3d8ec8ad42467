"""Stand-in brokers that answer clients from a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serve.public import Cassette

__all__ = ["Cassette"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from serve import public

        return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
