"""Other schema ids in place of those that a record carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from dissector.values.carriers.schema_headers import APICURIO_IDS, CONFLUENT_ID
from dissector.values.carriers.schema_prefixes import PREFIX_END

RecordHeaders: TypeAlias = Sequence[tuple[str, bytes | None]]
NewId: TypeAlias = Callable[[int], int | None]
"""Returns the id in place of an id; None: it is no known one."""

_PLAIN_ID = 0


def with_other_ids(
    data: bytes | None, headers: RecordHeaders, new_id: NewId, *, is_key: bool
) -> tuple[bytes | None, RecordHeaders]:
    """
    Return a key or a value, and the headers of its record, with other ids of its schema.

    Args:
        data: The key or the value.
        headers: All headers of the record.
        new_id: Is asked for each id.
        is_key: Whether it is the key.
    """
    is_named, changed = False, list(headers)
    for at, (name, content) in enumerate(headers):
        if name not in (CONFLUENT_ID[is_key], *APICURIO_IDS[is_key]):
            continue
        is_named = True
        if name == CONFLUENT_ID[is_key] and content and content[0] == _PLAIN_ID:
            changed[at] = name, _replaced(content, 1, PREFIX_END, new_id) or content
        elif name != CONFLUENT_ID[is_key] and content:
            changed[at] = name, _replaced(content, 0, 8, new_id) or content
    if data and not is_named and data[0] == _PLAIN_ID:
        data = _replaced(data, 1, PREFIX_END, new_id) or _replaced(data, 1, 9, new_id) or data
    return data, changed


def _replaced(data: bytes, start: int, end: int, new_id: NewId) -> bytes | None:
    """Return bytes with another id in [start, end); None if there is no known one."""
    if len(data) < end:
        return None
    new = new_id(int.from_bytes(data[start:end], "big"))
    return None if new is None else data[:start] + new.to_bytes(end - start, "big") + data[end:]
