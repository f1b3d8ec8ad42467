"""Texts of filters: verdicts, suggestions, literals, history."""

from __future__ import annotations

import numpy as np
import pytest

from browse.filtering.filter_check import check
from browse.filtering.filter_history import FilterHistory
from browse.filtering.filter_texts import joined, literal
from browse.filtering.filter_words import FilterWords
from browse.rows.byte_spool import ByteSpool, spool_bytes
from browse.rows.row_parts import RowParts
from dissector.engine.tables.column_kinds import column_of
from dissector.engine.tables.column_types import Coded, Headers
from dissector.filter import parse


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("  ", "empty"),
        ("api == Produce", "valid"),
        ("api ==", "unfinished"),
        ("api == Produce and", "unfinished"),
        ("ap", "unfinished"),
        ("nonsense == 3 and api == Fetch", "invalid"),
        ("api = Fetch and status", "invalid"),
    ],
)
def test_verdicts(text: str, state: str) -> None:
    verdict = check(text)
    assert verdict.state == state
    assert (verdict.filter is not None) == (state == "valid")
    assert bool(verdict.message) == (state not in ("valid", "empty"))


@pytest.mark.parametrize(
    "value",
    ["plain", "two words", 'a "quote"', "null", "and", "", "-1", "é", "\x1b", "\u202e", "\udcff"],
)
def test_literals_stand_for_their_values(value: str) -> None:
    class Row:
        def column(self, name: str) -> object:
            return value

        def body(self, kind: str) -> None:
            return None

    assert parse(f"client_id == {literal(value)}").matches(Row())
    assert literal(value).isprintable()
    assert literal(5) == "5"


def test_several_filters_become_one() -> None:
    assert joined([]) == ""
    assert joined(["", "api == Fetch"]) == "api == Fetch"
    assert joined(["a or b", " ", "c"]) == "(a or b) and (c)"


def test_history() -> None:
    history = FilterHistory(["one", "two", "one"])
    assert history.texts == ["two", "one"]
    assert history.older("typed") == "one"
    assert history.older("one") == "two"
    assert history.older("two") == "two"
    assert history.newer("two") == "one"
    assert history.newer("one") == "typed"
    assert history.newer("typed") == "typed"


def test_suggestions() -> None:
    parts, words = RowParts(), FilterWords()
    codes = np.array([0, 1])
    parts.append(
        {"client_id": Coded(codes, ["shop", "two words"]), "errors": Coded(codes, [[], ["X_Y"]])}
    )
    assert words.suggestions("api", parts) == [], "names are not listed yet"
    words.prepare()
    assert words.suggestions("lat", parts) == ["latency_ms"]
    assert words.suggestions("not request.ac", parts)[:2] == [
        *("not request.ack_when_committed", "not request.acks")
    ]
    assert "api == Produce" in words.suggestions("api == prod", parts)
    assert words.suggestions("client_id == ", parts) == [
        "client_id == shop",
        'client_id == "two words"',
    ]
    assert words.suggestions("error == x", parts) == ["error == X_Y"]
    assert words.suggestions("offse", parts, records=True) == ["offset"]
    assert words.suggestions("api == Fetch ", parts) == []


def test_suggestions_of_headers_are_those_of_the_first_records() -> None:
    parts, words = RowParts(), FilterWords()
    lists = [[], [{"key": "trace", "value": b"7f"}, {"key": "tenant", "value": None}]]
    lists.append([{"key": "content-type", "value": b""}])
    parts.append(spool_bytes({"headers": column_of(lists, Headers)}, ByteSpool()))
    words.prepare()
    assert words.suggestions("header.t", parts, records=True) == ["header.tenant", "header.trace"]
    assert words.suggestions("a and headers.tr", parts, records=True) == ["a and headers.trace"]
    assert words.suggestions("headers.", parts, records=True) == [
        *("headers.key", "headers.tenant", "headers.trace", "headers.value")
    ]
    assert parse(words.suggestions("header.tr", parts, records=True)[0], records=True)
