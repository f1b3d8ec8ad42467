"""A capture that stands in for a broker: clients get what was answered then."""

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
