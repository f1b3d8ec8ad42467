"""Filters over whole tables, compared with the same filters row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.filter import BodyPath, parse
from dissector.filter.evaluate import predicate
from dissector.filter.masks import rows_passing
from dissector.filter.nodes import Node
from tests.dissector.filter.filter_rows import FakeRow, produce
from tests.dissector.filter.filter_strategies import nodes
from tests.dissector.filter.test_evaluate import rows as some_rows


class FakeTable:
    """A table of rows; columns of `numeric` are returned as numbers."""

    def __init__(self, rows: Sequence[FakeRow], numeric: Sequence[str] = ()) -> None:
        self.rows = rows
        self.numeric = numeric
        self.bodies_asked = 0

    def __len__(self) -> int:
        return len(self.rows)

    def number_column(self, name: str, rows: Any) -> Any:
        if name not in self.numeric:
            return None
        found = [self.rows[row].columns[name] for row in rows]
        kind = np.float64 if any(isinstance(each, float) for each in found) else np.int64
        there = np.array([each is not None for each in found], np.bool_)
        return np.array([each or 0 for each in found], kind), there

    def distinct_values(self, name: str, rows: Any) -> Any:
        found = [self.rows[row].columns[name] for row in rows]
        values = [each for at, each in enumerate(found) if each not in found[:at]]
        return np.array([values.index(each) for each in found], np.int64), values

    def any_value_at(
        self,
        path: BodyPath,
        rows: Any,
        test: Callable[[object], bool],
        matches: Callable[[Any], bool],
    ) -> Any:
        self.bodies_asked += len(rows)
        return np.array([matches(self.rows[row]) for row in rows], np.bool_)


NUMERIC = st.sampled_from([(), ("api_version",), ("api_version", "correlation_id")])


@given(node=nodes(), rows=st.lists(some_rows, max_size=6), numeric=NUMERIC)
def test_tables_and_single_rows_pass_the_same_rows(
    node: Node, rows: list[FakeRow], numeric: Sequence[str]
) -> None:
    holds = predicate(node)
    expected = [number for number, row in enumerate(rows) if holds(row)]
    assert rows_passing(node, FakeTable(rows, numeric)).tolist() == expected


NUMBERS = [None, -1, 0, 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63) + 1]
LATENCIES = [None, 0.0, 0.5, 1.0, 2.0**53, 1e300, -0.25]
LITERALS = [
    *("0", "1", "-1", "0.5", "1.0", "null", "1e400", ".5", "0x10"),
    *(str(2**53 + d) for d in (-1, 0, 1)),
    *(f"{2**53}.0", f"{2**63}.0", str(2**63), str(2**63 - 1), str(-(2**63)), str(2**70)),
]


@pytest.mark.parametrize("name", ["response_bytes", "latency_ms"])
@given(
    text=st.one_of(
        st.builds("{} {}".format, st.sampled_from(["==", "!="]), st.sampled_from(LITERALS)),
        st.builds(
            "{} {}".format,
            st.sampled_from(["<", "<=", ">", ">="]),
            st.sampled_from([each for each in LITERALS if each != "null"]),
        ),
        st.builds("in {{{}, null, {}..{}}}".format, *[st.sampled_from(LITERALS[:5])] * 3),
        st.just(""),
    )
)
def test_numbers_are_compared_as_in_python(name: str, text: str) -> None:
    values = NUMBERS if name == "response_bytes" else LATENCIES
    rows = [produce(**{name: value}) for value in values]
    chosen = parse(f"{name} {text}")
    expected = [number for number, row in enumerate(rows) if chosen.matches(row)]
    assert chosen.passing(FakeTable(rows, (name,))).tolist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "error",
        "error == NONE",
        "error != 6",
        "error == 999",
        "not error == 6",
        "tcp.port == 9092",
        "tcp.srcport in {50000..50002}",
        "ip.addr == fd00::/16",
        "topic matches '^pay'",
        "api_key == Produce and kafka.len > 100",
        "capture contains b",
    ],
)
def test_columns_of_all_kinds(text: str) -> None:
    rows = [
        produce(),
        produce(errors=[], topics=[], broker="10.0.0.2:9092", capture="b.pcap"),
        produce(client="10.0.0.1:50003", api_key=None, request_bytes=None, response_bytes=None),
    ]
    chosen = parse(text)
    expected = [number for number, row in enumerate(rows) if chosen.matches(row)]
    assert chosen.passing(FakeTable(rows, ("request_bytes",))).tolist() == expected


def test_bodies_are_tested_only_if_columns_do_not_decide() -> None:
    rows = [produce(api_version=version) for version in range(10)]
    table = FakeTable(rows)
    assert parse("request.acks == -1 and api_version > 7").passing(table).tolist() == [8, 9]
    assert table.bodies_asked == 2
    assert len(parse("request.acks == 0 or api_version > 7").passing(table)) == 2
    assert table.bodies_asked == 2 + 8
