"""Interning: equal contents have equal numbers, whatever else is in the table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.facts import interning
from dissector.engine.facts.interning import (
    FULL,
    TOO_MANY_COLLISIONS,
    InternEntry,
    InternIndex,
    InternTable,
    InternUse,
    hash_bytes,
    hash_integers,
    intern,
)
from dissector.kernel.named_rows import row_of, rows_of


def number(table: InternTable, content: bytes | list[int], kind: int = 0) -> int:
    """Return the entry of some content, in Python."""
    pool = table.pool.data
    values = np.array(list(content), table.pool.dtype).data
    entries, used = rows_of(table.entries, InternEntry), row_of(table.used, InternUse)
    index = InternIndex(table.slots.data, entries, used)
    if table.pool.dtype == np.uint8:
        key = hash_bytes(values, 0, len(content), kind)
    else:
        key = hash_integers(values, len(content), kind)
    return intern(values, 0, len(content), kind, key, index, pool)


def entry(table: InternTable, content: bytes | list[int], kind: int = 0) -> int:
    """Return the entry of some content; the table grows if needed."""
    while (found := number(table, content, kind)) == FULL:
        table.grow()
    return found


@given(st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 2)), max_size=60))
def test_texts(drawn: list[tuple[bytes, int]]) -> None:
    table = InternTable.of(np.uint8, entries=2, pool=1)
    entries = [entry(table, content, kind) for content, kind in drawn]
    distinct = list(dict.fromkeys(drawn))
    assert entries == [distinct.index(each) for each in drawn]
    assert len(table) == len(distinct)
    for kind in range(3):
        numbers, contents = table.contents(kind)
        of_kind = [content for content, other in distinct if other == kind]
        assert [content.tobytes() for content in contents] == of_kind
        for content in of_kind:
            assert numbers[distinct.index((content, kind)) + 1] == of_kind.index(content) + 1
        assert np.count_nonzero(numbers) == len(of_kind)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), max_size=20))
def test_lists(drawn: list[list[int]]) -> None:
    table = InternTable.of(np.int64, entries=2, pool=1)
    entries = [entry(table, content) for content in drawn]
    assert [drawn[entries.index(each)] for each in entries] == drawn
    assert [content.tolist() for content in table.contents(0)[1]] == [
        list(each) for each in dict.fromkeys(map(tuple, drawn))
    ]


def test_entries_beyond_the_capacity_are_refused_until_it_grows() -> None:
    table = InternTable.of(np.uint8, entries=2, pool=4)
    assert [number(table, content) for content in (b"abc", b"de", b"d")] == [0, FULL, 1]
    assert number(table, b"") == FULL
    table.grow()
    assert [number(table, content) for content in (b"abc", b"d", b"")] == [0, 1, 2]


def test_the_table_is_crowded_after_many_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = InternTable.of(np.uint8, entries=4)
    for content in (b"a", b"b", b"c"):
        assert number(table, content) >= 0
    monkeypatch.setattr(interning, "MAX_PROBES", 2)
    # Every slot is taken by other contents.
    table.slots[:] = [1, 2] * 4
    assert number(table, b"other") == TOO_MANY_COLLISIONS
