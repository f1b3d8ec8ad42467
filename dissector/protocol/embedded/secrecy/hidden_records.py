"""Whether bytes of all records are hidden, because fields of their values are to be."""

from __future__ import annotations

from contextvars import ContextVar

_are_hidden: ContextVar[bool] = ContextVar("hide_records", default=False)


def hide_records(is_wanted: bool) -> None:
    """Hide the bytes of records, or not, until the context ends."""
    _are_hidden.set(is_wanted)


def records_are_hidden() -> bool:
    """Return whether keys and values are shown only where they are decoded."""
    return _are_hidden.get()
