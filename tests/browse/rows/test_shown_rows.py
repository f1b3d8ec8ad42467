"""Selection and order of shown rows while more arrive."""

from __future__ import annotations

import numpy as np

from browse.rows.packet_lookup import place_of_packet
from browse.rows.row_parts import RowParts
from browse.rows.shown_rows import ShownRows
from dissector.cli.sorting import SortKey
from dissector.engine.tables.column_types import Coded, Columns, Integers
from dissector.engine.tables.columns_of import columns_of


def part(*rows: tuple[str | None, int | None]) -> Columns:
    named = [{"name": name, "packet": packet} for name, packet in rows]
    return columns_of(named, {"packet": Integers})


def even(columns: Columns) -> np.ndarray:
    packets = columns["packet"]
    assert isinstance(packets, Integers)
    return np.flatnonzero(packets.values % 2 == 0)


def names(shown: ShownRows) -> list[str]:
    return [shown.parts.value(shown.number(place), "name") for place in range(len(shown))]


def test_rows_arrive_in_parts() -> None:
    parts = RowParts()
    shown = ShownRows(parts)
    assert not shown.update()
    parts.append(part(("a", 1), ("b", 2)))
    parts.append(part())
    parts.append(part(("c", None)))
    assert len(shown) == 0
    assert shown.update()
    assert names(shown) == ["a", "b", "c"]
    assert parts.cells(2, ("packet", "name", "absent")) == [None, "c", None]
    assert parts.row(1) == {"name": "b", "packet": 2}
    assert shown.place_of(2) == 2
    assert shown.place_of(3) is None


def test_a_filter_applies_to_later_rows() -> None:
    parts = RowParts()
    shown = ShownRows(parts)
    parts.append(part(("a", 1), ("b", 2)))
    shown.filter_by(even)
    assert names(shown) == ["b"]
    parts.append(part(("c", 3), ("d", 4)))
    shown.update()
    assert names(shown) == ["b", "d"]
    assert shown.place_of(0) is None
    assert shown.nearest(2) == 0 or shown.nearest(2) == 1
    shown.filter_by(None)
    assert len(shown) == 4


def test_an_order_applies_to_later_rows() -> None:
    parts = RowParts()
    shown = ShownRows(parts, key=("packet",))
    parts.append(part(("a", 5), ("b", 1)))
    shown.update()
    assert names(shown) == ["b", "a"]
    parts.append(part(("c", 3), (None, 2)))
    shown.update()
    assert names(shown) == ["b", None, "c", "a"]
    shown.sort_by(SortKey("name", True))
    assert names(shown) == ["c", "b", "a", None]
    shown.filter_by(even)
    assert names(shown) == [None]
    found = [columns["packet"].value(0) for columns in shown.columns()]
    assert found == [2]


def test_rows_found_by_a_thread() -> None:
    parts = RowParts()
    shown = ShownRows(parts)
    parts.append(part(("a", 1), ("b", 2)))
    shown.begin_given()
    assert len(shown) == 0
    shown.give(np.array([1, 2]))
    assert names(shown) == ["b"], "the other one is not in the list yet"
    parts.append(part(("c", 3), ("d", 4)))
    shown.update()
    assert names(shown) == ["b", "c"]


def test_a_column_read_later() -> None:
    parts = RowParts()
    parts.append(part(("a", 1), ("b", 2)))
    parts.append(part(("c", 3)))
    parts.add_column(2, "field", Coded(np.array([0]), ["x"]))
    parts.add_column(1, "field", Coded(np.array([0]), ["no part begins here"]))
    assert [parts.value(row, "field") for row in range(3)] == [None, None, "x"]
    shown = ShownRows(parts)
    shown.update()
    shown.sort_by(SortKey("field", True))
    assert names(shown)[0] == "c"


def test_the_row_of_a_packet() -> None:
    parts = RowParts()
    shown = ShownRows(parts)
    assert place_of_packet(shown, ("packet",), 1) is None
    parts.append(part(("a", 1), ("b", 5), ("c", None)))
    shown.update()
    assert place_of_packet(shown, ("packet",), 5) == (1, True)
    assert place_of_packet(shown, ("packet",), 2) == (1, False)
    assert place_of_packet(shown, ("packet",), 6) == (2, False)
    assert place_of_packet(shown, (), 6) is None
