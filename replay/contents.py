"""Records of two answers: those that both have are compared, by their offsets in the capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dissector.protocol.records import Row, iter_records, parse_records
from dissector.view.bodies import mask_record_row
from dissector.view.values import text_or_hex
from replay.outcome import Difference

_COMPARED = ("key", "value", "headers", "control")


@dataclass(slots=True)
class Contents:
    """
    How the records of two `records` fields compare.

    Attributes:
        differences: Between records that both have, or the one that says that one side has none.
        same_extent: Whether both have the same offsets.
    """

    differences: list[Difference]
    same_extent: bool


def compare_contents(
    path: str,
    topic: str | None,
    captured: bytes | None,
    live: bytes | None,
    translate: Callable[[int], int],
    show_secrets: bool = False,
) -> Contents:
    """
    Compare two `records` fields: an answer may bring more or fewer records than the captured one.

    Args:
        path: Of the field.
        topic: Whose records they are.
        captured: What was captured.
        live: What the target answered.
        translate: Gives the captured offset that one of the target stands for.
        show_secrets: Whether credentials in Kafka's own records may be shown.
    """
    before = {row.offset: row for row in _rows(captured)}
    after = {translate(row.offset): row for row in _rows(live)}
    both = before.keys() & after.keys()
    if before and not both:
        extents = _extent(before), _extent(after)
        return Contents([Difference(path, *extents)], False)
    differences: list[Difference] = []
    for offset in sorted(both):
        shown = "" if show_secrets else topic or ""
        at = f"{path}[{offset}]"
        differences += _record(at, before[offset], after[offset], shown)
    return Contents(differences, before.keys() == after.keys())


def _rows(data: bytes | None) -> Iterator[Row]:
    return iter_records(parse_records(data)) if data else iter(())


def _extent(rows: dict[int, Row]) -> str:
    if not rows:
        return "no records"
    count = f"{len(rows):,} record{'s' * (len(rows) != 1)}"
    return f"{count}, offsets {min(rows)} to {max(rows)}"


def _record(path: str, before: Row, after: Row, topic: str) -> Iterator[Difference]:
    """Yield what differs; what brokers write into control records themselves is not looked at."""
    names = ("control",) if before.control and after.control else _COMPARED
    if all(getattr(before, name) == getattr(after, name) for name in names):
        return
    shown = [_shown(row, topic) for row in (before, after)]
    for name in names:
        if getattr(before, name) != getattr(after, name):
            yield Difference(f"{path}.{name}", shown[0][name], shown[1][name])


def _shown(row: Row, topic: str) -> dict[str, Any]:
    record: dict[str, Any] = {"key": row.key, "value": row.value}
    if topic:
        mask_record_row(topic, record)
    return {
        "key": text_or_hex(record["key"]),
        "value": text_or_hex(record["value"]),
        "headers": [[key, text_or_hex(value)] for key, value in row.headers],
        "control": row.control,
    }
