"""What of all records is hidden, because fields of their values are to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")

ALL_HEADERS = ""
"""In place of a name: all headers."""


class _Hidden(NamedTuple):
    """Whether the bytes of keys and values are hidden, and the names of hidden headers."""

    records: bool = False
    headers: frozenset[str] = frozenset()


_hidden: ContextVar[_Hidden] = ContextVar("hidden", default=_Hidden())  # noqa: B039 (immutable)


def hide_records(is_wanted: bool, headers: Iterable[str] = ()) -> None:
    """Hide the bytes of records and the values of some headers, or none, until the context ends."""
    _hidden.set(_Hidden(is_wanted, frozenset(headers)))


def iterate_hiding(headers: Iterable[str], items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items of an iterable, each produced while records and these headers are hidden."""
    hidden, iterator = _Hidden(True, frozenset(headers)), iter(items)
    while True:
        token = _hidden.set(hidden)
        try:
            item = next(iterator)
        except StopIteration:
            return
        finally:
            _hidden.reset(token)
        yield item
        del item


def records_are_hidden() -> bool:
    """Return whether keys and values are shown only where they are decoded."""
    return _hidden.get().records


def hides_headers() -> bool:
    """Return whether the value of any header is hidden."""
    return bool(_hidden.get().headers)


def header_is_hidden(name: str) -> bool:
    """Return whether the value of a header is hidden."""
    names = _hidden.get().headers
    return name in names or ALL_HEADERS in names
