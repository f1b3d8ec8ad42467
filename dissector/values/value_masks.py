"""Fields of keys and values, and headers, that are not to be shown: `value.card`, `key`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dissector.errors import UsageError
from dissector.values.json_values import compact_json

if TYPE_CHECKING:
    from dissector.values.value_reader import DecodedValue

HIDDEN = "***"
"""What is shown in place of a hidden field."""

_SIDES = ("key", "value")
_HEADER = "header"


class ValueMasks:
    """Hides fields of decoded keys and values."""

    def __init__(self, texts: Iterable[str]) -> None:
        """
        Parse paths: `key` or `value`, perhaps with names of fields behind it; `header.NAME`.

        Raises:
            UsageError: One is not such a path.
        """
        self._paths: dict[bool, list[list[str]]] = {True: [], False: []}
        for text in texts:
            side, *path = text.split(".")
            if side == _HEADER and all(path):
                continue
            if side not in _SIDES or not all(path):
                raise UsageError(f"--mask {text}: write value.FIELD, key.FIELD or header.NAME")
            self._paths[side == "key"].append(path)

    def masked(self, found: DecodedValue, *, is_key: bool) -> DecodedValue:
        """Return a decoded key or value without the hidden fields."""
        value = found.value
        for path in self._paths[is_key]:
            value = without_field(value, path)
        if value is found.value or found.text is None:
            return found
        return found._replace(value=value, text=compact_json(value), origin=None)


def hidden_headers(texts: Iterable[str]) -> Iterator[str]:
    """Yield the names of headers that masks name; of all headers an empty one."""
    for text in texts:
        side, _, name = text.partition(".")
        if side == _HEADER:
            yield name


def without_field(value: Any, path: Sequence[str]) -> Any:
    """Return a value with a field hidden, of arrays that of each item; itself if it lacks it."""
    if not path:
        return HIDDEN
    if isinstance(value, list):
        items = [without_field(each, path) for each in value]
        return (
            items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        )
    if not isinstance(value, dict) or path[0] not in value:
        return value
    inner = without_field(value[path[0]], path[1:])
    return value if inner is value[path[0]] else {**value, path[0]: inner}
