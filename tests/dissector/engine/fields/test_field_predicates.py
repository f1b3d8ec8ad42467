"""Values of body fields from the tape, compared with decoded bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.engine.fields.field_predicates import matches_any_value
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape import tape
from dissector.filter.evaluate import values_at
from dissector.protocol.api import Kind
from dissector.protocol.apis import all_apis, api
from dissector.protocol.schema import Field
from tests.default_frames import request, response
from tests.dissector.engine.exchanges.test_exchange_facts import (
    ANSWERED,
    TopicNames,
    exchange,
    row,
    some_exchange,
    split,
)
from tests.example_counts import examples
from tests.kernel_modes import both
from tests.reference.correlation.exchange_rows import (
    ExchangeRow,
    to_exchange_table,
)
from tests.value_sources import Source, sources

mode = both(tape)

MESSAGES = [(found.key, version) for found in all_apis() for version in found.request.versions]


def paths(fields: tuple[Field, ...], around: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for each in fields:
        yield (*around, each.name)
        yield from paths(each.fields, (*around, each.name))


def plain(value: Any) -> Any:
    """Return a comparable value; one struct equals any other."""
    return (type(value).__name__, value) if not isinstance(value, dict) else "struct"


def check(table: Exchanges, side: Kind, path: tuple[str, ...]) -> int:
    """Compare each row with its decoded body; return the count of undecided rows."""
    rows = np.arange(len(table))
    bodies = [exchange(table, at, TopicNames()).body(side) for at in range(len(table))]
    there = [[plain(value) for value in values_at(body, path)] for body in bodies]
    wanted = {each for values in there for each in values} | {("int", 0), ("NoneType", None)}
    for one in sorted(wanted, key=repr):
        answers = matches_any_value(table, side, path, rows, lambda raw, one=one: plain(raw) == one)
        is_known = ~answers.unknown
        assert answers.passes[is_known].tolist() == [
            one in values for values, known in zip(there, is_known, strict=True) if known
        ], one
        assert not answers.passes[~is_known].any()
    return int(np.count_nonzero(answers.unknown))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), source=sources())
def test_every_message(data: st.DataObject, source: Source) -> None:
    """Any field of any API, in exchanges of this and other APIs, valid and damaged."""
    key, _ = data.draw(st.sampled_from(MESSAGES))
    found = api(key)
    assert found is not None
    of_this = [message for message in MESSAGES if message[0] == key]
    chosen = data.draw(
        st.lists(st.sampled_from(of_this) | st.sampled_from(MESSAGES), min_size=1, max_size=12)
    )
    table = to_exchange_table([some_exchange(*message, source) for message in chosen])
    table = split(table, source.chance.randint(0, len(table.carry_over)))
    side: Kind = data.draw(st.sampled_from(["request", "response"]))
    all_paths = list(dict.fromkeys(paths(found.schema(side).fields)))
    if all_paths:
        check(table, side, data.draw(st.sampled_from(all_paths)))


def produced(version: int = 9) -> ExchangeRow:
    partition = {"index": 3, "records": None}
    topics = [{"name": "orders", "partition_data": [partition]}]
    return row(ANSWERED, request(0, version, 1, acks=1, topic_data=topics), response(0, version, 1))


@pytest.mark.parametrize(
    ("side", "path", "unknown"),
    [
        ("request", ("acks",), 0),
        ("request", ("topic_data",), 0),
        ("request", ("topic_data", "name"), 0),
        ("request", ("topic_data", "partition_data", "records"), 0),
        ("response", ("throttle_time_ms",), 0),
        # A tagged field, at its default where absent.
        ("response", ("node_endpoints",), 1),
    ],
)
def test_number_of_undecided_rows(side: Kind, path: tuple[str, ...], unknown: int) -> None:
    exchanges = [produced(), produced(10), row(ANSWERED, request(12, 4, 1), response(12, 4, 1))]
    assert check(to_exchange_table(exchanges), side, path) == unknown


def test_refused_versions_are_left_to_the_codecs() -> None:
    refused = row(ANSWERED, request(18, 3, 1), response(18, 0, 1, error_code=35))
    answered = row(ANSWERED, request(18, 3, 1), response(18, 3, 1))
    newest = request(18, 4, 1)
    newer = row(ANSWERED, newest[:6] + b"\x7f\xff" + newest[8:], response(18, 0, 1, error_code=35))
    assert check(to_exchange_table([refused, answered, newer]), "response", ("error_code",)) == 2


def test_no_rows() -> None:
    table = to_exchange_table([produced()])
    none = np.zeros(0, np.int64)
    assert not len(matches_any_value(table, "request", ("acks",), none, lambda raw: True).passes)
