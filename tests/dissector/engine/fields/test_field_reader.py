"""Fields of messages as tables: the tape gives the same rows as the spans of the codecs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector import open_capture
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.fields import field_columns
from dissector.engine.fields.field_arrow_schema import ARROW_SCHEMA
from dissector.engine.fields.field_frame import MessageColumns, field_schema
from dissector.engine.fields.field_reader import FieldReader, message_numbers
from dissector.engine.fields.field_rows import FIELD_TYPES, field_rows
from dissector.engine.parquet.parquet_file import write_groups
from dissector.engine.parquet.row_groups import RowGroup
from dissector.engine.reading.capture import Capture, Options
from dissector.engine.tables import arrow
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape import tape
from dissector.errors import Problem
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis, api
from dissector.protocol.embedded.sasl_tokens import MASK
from tests.corpus import each_capture
from tests.default_frames import request, response
from tests.dissector.engine.exchanges.test_exchange_facts import (
    ANSWERED,
    ORPHAN,
    UNANSWERED,
    exchanges_of,
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
from tests.value_sources import Source, every_api, seeded, sources

SHORT = Path(__file__).parents[4] / "captures" / "kafka4-denied.pcap"

mode = both(field_columns, tape)


class CodecsOnly(FieldReader):
    """Leaves every message to the codecs."""

    def _steps(self, table: Exchanges, messages: MessageColumns) -> Any:
        return np.full(len(messages), -1, np.int64)


def capture_of(table: Exchanges) -> Any:
    """Return a substitute for the capture of an artificial table."""
    return SimpleNamespace(
        names=TopicNames(),
        reading=SimpleNamespace(
            files_of=lambda packets: Coded(np.zeros(len(packets), np.int64), ["a.pcap"]),
            exchange=lambda table, at, names: Exchange(
                table, at, capture="a.pcap", client="", broker="", names=names
            ),
        ),
    )


def whole(fields: FieldReader, table: Exchanges) -> polars.DataFrame:
    """Return the fields of all messages as one table."""
    return polars.concat([polars.DataFrame(schema=field_schema()), *fields.frames(table)])


def frame_of(rows: list[ExchangeRow], show_secrets: bool = False) -> polars.DataFrame:
    table = to_exchange_table(rows)
    return whole(FieldReader(capture_of(table), show_secrets), table)


def frames(path: Path, kind: type[FieldReader], show_secrets: bool) -> Iterator[polars.DataFrame]:
    capture = open_capture(path)
    fields = kind(capture, show_secrets)
    for window in capture.windows():
        yield whole(fields, window.exchanges)


def assert_same(left: polars.DataFrame, right: polars.DataFrame) -> None:
    for name in field_schema():
        assert left[name].equals(right[name], null_equal=True), (name, differing(left, right, name))
    assert left.schema == right.schema == field_schema()


def differing(left: polars.DataFrame, right: polars.DataFrame, name: str) -> Any:
    for one, other in zip(left.iter_rows(named=True), right.iter_rows(named=True), strict=False):
        if one[name] != other[name]:
            return one, other
    return len(left), len(right)


@pytest.mark.thinned(4)
@each_capture("fields", show_secrets=[False, True])
def test_rows_equal_those_of_the_codecs(path: Path, show_secrets: bool) -> None:
    for ours, theirs in zip(
        frames(path, FieldReader, show_secrets), frames(path, CodecsOnly, show_secrets), strict=True
    ):
        assert_same(ours, theirs)


MESSAGES = [(found.key, version) for found in all_apis() for version in found.request.versions]


def check(rows: list[ExchangeRow], source: Source) -> None:
    table = to_exchange_table(rows)
    table = split(table, source.chance.randint(0, len(table.carry_over)))
    show_secrets = source.chance.random() < 0.5
    assert_same(
        *(whole(kind(capture_of(table), show_secrets), table) for kind in (FieldReader, CodecsOnly))
    )


@pytest.mark.thinned(2)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=30), source=sources())
def test_every_message(chosen: list[tuple[int, int]], source: Source) -> None:
    """Exchanges of all APIs and versions, valid and damaged."""
    check([some_exchange(key, version, source) for key, version in chosen], source)


@pytest.mark.thinned(8)
@every_api
def test_each_version(found: Api) -> None:
    """All versions in one table: a failure shows the rows of one."""
    source = seeded(found.name)
    messages = [message for message in exchanges_of(found) for _ in range(2)]
    check([some_exchange(*message, source) for message in messages], source)


def values(frame: polars.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return frame.select(names).rows()


def body(frame: polars.DataFrame) -> polars.DataFrame:
    return frame.filter(~polars.col("path").cast(str).str.starts_with("header."))


TOPIC_ID = UUID(int=5)


def test_a_message() -> None:
    parts = [{"index": 3, "records": b"xyz"}, {"index": 4, "records": None}]
    topics = [
        {"name": "orders", "partition_data": parts},
        {"name": "päy", "partition_data": []},
        {"name": "last", "partition_data": parts[:1]},
    ]
    produce = request(
        0, 8, 7, "me", transactional_id=None, acks=-1, timeout_ms=9, topic_data=topics
    )
    frame = frame_of([row(UNANSWERED, produce)])
    topic, part = "topic_data", "topic_data.partition_data"
    assert values(frame, "path", "type", "item", "around", "offset", "length", "value", "text") == [
        ("header.request_api_key", "int16", 0, None, 0, 2, 0, None),
        ("header.request_api_version", "int16", 0, None, 2, 2, 8, None),
        ("header.correlation_id", "int32", 0, None, 4, 4, 7, None),
        ("header.client_id", "string", 0, None, 10, 2, None, "me"),
        ("transactional_id", "string", 0, None, 14, None, None, None),
        ("acks", "int16", 0, None, 14, 2, -1, None),
        ("timeout_ms", "int32", 0, None, 16, 4, 9, None),
        (topic, "[]struct", 0, None, 24, None, 3, None),
        (f"{topic}.name", "string", 1, 0, 26, 6, None, "orders"),
        (part, "[]struct", 1, 0, 36, None, 2, None),
        (f"{part}.index", "int32", 2, 1, 36, 4, 3, None),
        (f"{part}.records", "records", 2, 1, 44, 3, None, None),
        (f"{part}.index", "int32", 3, 1, 47, 4, 4, None),
        (f"{part}.records", "records", 3, 1, 55, None, None, None),
        (f"{topic}.name", "string", 4, 0, 57, 4, None, "päy"),
        (part, "[]struct", 4, 0, 65, None, 0, None),
        (f"{topic}.name", "string", 5, 0, 67, 4, None, "last"),
        (part, "[]struct", 5, 0, 75, None, 1, None),
        (f"{part}.index", "int32", 6, 5, 75, 4, 3, None),
        (f"{part}.records", "records", 6, 5, 83, 3, None, None),
    ]
    assert set(values(frame, "capture", "connection", "packet", "time_ns", "kind")) == {
        ("a.pcap", 0, 2, 1, "request")
    }
    assert frame["message"].n_unique() == 1
    assert set(values(frame, "api", "api_version", "correlation_id", "problem")) == {
        ("Produce", 8, 7, None)
    }


def test_values_as_text() -> None:
    protocols = [{"name": "range", "metadata": b"\x00\xfe"}]
    join = row(UNANSWERED, request(11, 2, 1, protocols=protocols))
    quota = {"entity": [], "ops": [{"key": "k", "value": 0.25, "remove": True}]}
    quotas = row(UNANSWERED, request(49, 0, 1, entries=[quota]))
    fetch = row(UNANSWERED, request(1, 13, 1, topics=[{"topic_id": TOPIC_ID, "partitions": []}]))
    topics = row(UNANSWERED, request(20, 1, 1, topic_names=["a", "\udcff", ""]))
    shown = {
        (path, word): (length, value, text)
        for path, word, length, value, text in values(
            frame_of([join, quotas, fetch]), "path", "type", "length", "value", "text"
        )
    }
    assert shown["protocols.metadata", "bytes"] == (2, None, "00fe")
    assert shown["entries.ops.value", "float64"] == (8, None, "0.25")
    assert shown["entries.ops.remove", "bool"] == (1, 1, None)
    assert shown["topics.topic_id", "uuid"] == (16, None, str(TOPIC_ID))
    assert values(body(frame_of([topics])), "path", "type", "item", "around", "text")[:4] == [
        ("topic_names", "[]string", 0, None, None),
        ("topic_names[]", "string", 1, 0, "a"),
        ("topic_names[]", "string", 2, 0, "\\xff"),
        ("topic_names[]", "string", 3, 0, ""),
    ]


def test_undecodable_messages_keep_all_bytes() -> None:
    good = request(12, 4, 1, group_id="g", member_id="m")
    cut = row(UNANSWERED, (len(good) - 4 - 2).to_bytes(4, "big") + good[4:-2])
    frame = frame_of([cut, row(ANSWERED, good, response(12, 4, 1))])
    assert [kind for kind, _ in groupby(values(frame, "path", "kind"), lambda each: each[1])] == [
        "request",
        "response",
    ]
    assert [path for (path,) in values(body(frame), "path")].count("group_id") == 2
    (*read, last) = values(body(frame)[:4], "path", "value", "text", "offset", "problem")
    assert read == [
        ("group_id", None, "g", 16, None),
        ("generation_id", 0, None, 17, None),
        ("member_id", None, "m", 22, None),
    ]
    assert last[:3] == ("group_instance_id", None, None)
    assert re.match("Heartbeat v4: .*", str(last[4])), last


@pytest.mark.thinned(6)
@pytest.mark.parametrize("window_bytes", [1, 3000, 1 << 20])
def test_message_numbers_do_not_depend_on_windows(window_bytes: int) -> None:
    def numbers(window_bytes: int) -> list[tuple[int, int, str, int | None]]:
        capture = Capture([SHORT], Options(window_bytes=window_bytes))
        fields = FieldReader(capture, False)
        frames = [whole(fields, each.exchanges) for each in capture.windows()]
        table = polars.concat(frames).filter(polars.col("item") == 0)
        columns = [table[name].to_list() for name in ("message", "packet", "kind", "connection")]
        return sorted({*zip(*columns, strict=True)})

    found = numbers(window_bytes)
    assert found == numbers(10_000)
    messages = sum(len(exchange.messages) for exchange in open_capture(SHORT))
    assert len({number for number, *_ in found}) == len(found) == messages
    assert [packet for _, packet, *_ in found] == sorted(packet for _, packet, *_ in found)


def test_numbers_of_messages() -> None:
    numbers = message_numbers(*np.array([[0, 0, 1, 1, 2], [7, 9, 5, 5, 1 << 30], [0, 0, 0, 1, 1]]))
    assert len(set(numbers.tolist())) == 5
    assert (np.diff(numbers) > 0).all()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("most_rows", [1, 50, 1000])
def test_tables_have_whole_messages_and_bounded_rows(most_rows: int) -> None:
    (window, *_) = list(open_capture(SHORT).windows())
    table = window.exchanges
    fields = FieldReader(capture_of(table), False)
    tables = list(fields.frames(table, most_rows))
    for each in tables:
        assert len(each) <= most_rows or each["message"].n_unique() == 1
    assert sum(each["message"].n_unique() for each in tables) == messages_of(tables)
    assert_same(polars.concat(tables), whole(fields, table))


def messages_of(tables: list[polars.DataFrame]) -> int:
    return polars.concat(tables)["message"].n_unique()


def test_tables_are_released_before_the_next_ones() -> None:
    (window, *_) = list(open_capture(SHORT).windows())
    table = window.exchanges
    held = []
    for each in FieldReader(capture_of(table), False).frames(table, 50):
        held.append(arrow.exported_count())
        del each
    assert len(held) > 10
    assert max(held[1:]) <= max(held[:2])


def test_orphans_and_tokens() -> None:
    orphan = row(ORPHAN, None, response(12, 4, 9))
    token = row(ANSWERED, b"\0\0\0\2xy", b"\0\0\0\0", token=True)
    shown = ("kind", "api", "api_version", "correlation_id", "path", "length", "value", "text")
    assert values(frame_of([orphan, token]), *shown) == [
        ("response", None, None, 9, "header.correlation_id", 4, 9, None),
        ("request", "SaslToken", None, None, "token", 2, None, MASK),
        ("response", "SaslToken", None, None, "token", 0, None, MASK),
    ]
    assert values(frame_of([token], show_secrets=True), "text") == [("7879",), ("",)]


@pytest.mark.thinned(4)
@each_capture("fields")
def test_a_file_has_the_rows_of_the_table(path: Path) -> None:
    capture = open_capture(path)
    fields = FieldReader(capture, False)
    groups = (
        field_rows(table)
        for window in capture.windows()
        for table in fields.tables(window.exchanges, 3000)
    )
    file = io.BytesIO()
    write_groups(groups, FIELD_TYPES, file, {"ARROW:schema": ARROW_SCHEMA}, workers=1)
    assert_same(polars.read_parquet(file.getvalue()), capture.fields())


def test_a_file_has_the_schema_of_the_table() -> None:
    file = io.BytesIO()
    polars.DataFrame(schema=field_schema()).write_parquet(file)
    assert polars.read_parquet_metadata(io.BytesIO(file.getvalue()))["ARROW:schema"] == ARROW_SCHEMA
    groups: list[RowGroup] = []
    written = io.BytesIO()
    write_groups(groups, FIELD_TYPES, written, {"ARROW:schema": ARROW_SCHEMA}, workers=1)
    assert polars.read_parquet(written.getvalue()).schema == field_schema()


def test_no_exchanges() -> None:
    frame = frame_of([])
    assert len(frame) == 0
    assert frame.schema == field_schema()


CONFIGS = [
    {
        "name": name,
        "value": value,
        "is_sensitive": marked,
        "synonyms": [{"name": "plain", "value": value, "source": 1}],
    }
    for name, value, marked in (
        ("ssl.key.password", "s1", False),
        ("plain", "s2", True),
        ("retention.ms", "9", False),
        ("sasl.jaas.config", None, False),
    )
]


def test_secrets_of_configuration_entries() -> None:
    """A field is secret by its name, its declaration, or the struct around it."""
    found = api(32)
    assert found is not None
    results = [{"resource_type": 2, "resource_name": "t", "configs": CONFIGS}]
    for version in found.response.versions:
        exchange = row(
            ANSWERED,
            request(32, version, 1),
            response(32, version, 1, results=_fitting(results, found.response.fields, version)),
        )
        texts = [
            text
            for path, text in values(frame_of([exchange]), "path", "text")
            if path.endswith(".value")
        ]
        inner = 1 if version >= 1 else 0
        assert texts == [
            *([MASK] * (1 + inner)),
            *([MASK] * (1 + inner)),
            *(["9"] * (1 + inner)),
            *([None] * (1 + inner)),
        ]
        shown = values(frame_of([exchange], show_secrets=True), "text")
        assert ("s1",) in shown
        assert ("s2",) in shown


def _fitting(values: Any, fields: Any, version: int) -> Any:
    """Return the values of a version; missing fields are zero."""
    by_name = {field.name: field for field in fields if version in field.versions}

    def fit(value: Any, inner: Any) -> dict[str, Any]:
        there = {field.name: field for field in inner if version in field.versions}
        return {
            name: [fit(each, field.fields) for each in value[name]]
            if name in value and field.fields
            else value.get(name, field.zero(version))
            for name, field in there.items()
        }

    return [fit(value, by_name["results"].fields) for value in values]


def test_problems_are_those_of_the_message() -> None:
    frame = frame_of([row(ORPHAN, None, response(12, 4, 1), answers_acks_0=True)])
    (problem,) = [text for (text,) in values(frame, "problem") if text]
    expected = Problem("response to a Produce request with acks = 0, which expects none")
    assert problem == expected.what
