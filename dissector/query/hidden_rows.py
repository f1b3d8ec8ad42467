"""Rows without the records, fields and headers that a user wants to be hidden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from dissector.errors import UsageError
from dissector.protocol.embedded.secrecy.hidden_records import iterate_hiding
from dissector.values.value_masks import hidden_headers
from dissector.values.value_settings import ValueSettings

Item = TypeVar("Item")


def iterate_hidden(
    settings: ValueSettings | None, items: Iterable[Item], *, show_secrets: bool = False
) -> Iterator[Item]:
    """
    Yield the items of an iterable, each produced while what the masks name is hidden.

    Raises:
        UsageError: There are masks, though secrets are to be shown.
    """
    if settings is None or not settings.masks:
        return iter(items)
    if show_secrets:
        raise UsageError("masks and show_secrets exclude each other")
    return iterate_hiding(hidden_headers(settings.masks), items)
