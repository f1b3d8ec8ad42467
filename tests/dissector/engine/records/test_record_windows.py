"""Records in columns equal the rows of exchange objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector import open_capture
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_records import COLUMNS, record_rows
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.records import (
    batch_scanner,
    checksum,
    legacy_decoder,
    record_decoder,
    record_windows,
)
from dissector.engine.tables.column_types import iter_rows
from dissector.engine.tables.exchange_table import ANSWERED, ORPHAN, UNANSWERED, Exchanges
from dissector.engine.tape import tape
from dissector.protocol.records import (
    Record,
    build_records,
    new_batch,
    new_message_set,
    parse_records,
)
from dissector.protocol.records.compression import compress
from dissector.protocol.records.record_constructs import MESSAGE_BODY
from tests.corpus import each_capture
from tests.default_frames import request, response
from tests.dissector.protocol.records.record_values import FIELDS, MESSAGE_SETS
from tests.example_counts import examples
from tests.kernel_modes import both
from tests.reference.correlation.exchange_rows import (
    ExchangeRow,
    to_exchange_table,
)
from tests.reference.correlation.framer import Frame

mode = both(batch_scanner, checksum, legacy_decoder, record_decoder, tape)

PRODUCE, FETCH, METADATA, SHARE_FETCH = 0, 1, 3, 78
IDS = [UUID(int=number) for number in (0, 2, 3, 4)]
APART = "apart"
NAMES = ["", "a", "b", APART, "\udcff"]
NAME_OF_ID = {IDS[1]: "a", IDS[2]: APART, IDS[3]: "c"}
PLAIN = new_batch([Record(value=b"v")]).to_bytes()


def exchange_row(
    request_frame: bytes | None, answer: bytes | None = None, cut: int = 0
) -> ExchangeRow:
    """Return an exchange of frames with size prefixes; their ends may be missing."""

    def frame(data: bytes | None, time_ns: int) -> Frame | None:
        if data is None:
            return None
        size = int.from_bytes(data[:4], "big")
        return Frame(0, data[4 : len(data) - cut], size, 1, time_ns, 0)

    status = ORPHAN if request_frame is None else UNANSWERED if answer is None else ANSWERED
    return ExchangeRow(7, status, 0, frame(request_frame, 5), frame(answer, 9))


def produce(version: int, *topics: tuple[str | UUID, list[bytes | None]]) -> bytes:
    data = [
        {
            "topic_id" if isinstance(topic, UUID) else "name": topic,
            "partition_data": [{"index": n, "records": each} for n, each in enumerate(fields)],
        }
        for topic, fields in topics
    ]
    return request(PRODUCE, version, 3, acks=1, timeout_ms=0, topic_data=data)


def produced(
    version: int, topics: list[tuple[str | UUID, list[bytes | None]]], answers: list[Any], cut: int
) -> ExchangeRow:
    """Return a Produce request and a response with `answers` for its partitions."""
    said = [
        {
            "topic_id" if isinstance(topic, UUID) else "name": topic,
            "partition_responses": [
                {"index": index, "error_code": code, "base_offset": base}
                | ({"log_append_time_ms": -1} if version >= 2 else {})
                | ({"log_start_offset": 0} if version >= 5 else {})
                | ({"record_errors": [], "error_message": None} if version >= 8 else {})
            ],
        }
        for topic, index, code, base in answers
    ]
    row = exchange_row(produce(version, *topics), response(PRODUCE, version, 3, responses=said))
    assert row.response is not None
    data = row.response.data
    return row._replace(response=row.response._replace(data=data[: len(data) - cut]))


def fetched(version: int, *topics: tuple[str | UUID, list[bytes | None]]) -> ExchangeRow:
    def partition(number: int, content: bytes | None) -> dict[str, Any]:
        return {
            "partition_index": number,
            "error_code": 0,
            "high_watermark": 0,
            "last_stable_offset": 0,
            "aborted_transactions": None,
            "records": content,
        }

    data = [
        {
            "topic_id" if isinstance(topic, UUID) else "topic": topic,
            "partitions": [partition(n, each) for n, each in enumerate(fields)],
        }
        for topic, fields in topics
    ]
    return exchange_row(request(FETCH, version, 4), response(FETCH, version, 4, responses=data))


def metadata(name: str, topic_id: UUID) -> ExchangeRow:
    topic = {"error_code": 0, "name": name, "topic_id": topic_id, "partitions": []}
    return exchange_row(request(METADATA, 12, 5), response(METADATA, 12, 5, topics=[topic]))


@st.composite
def contents(draw: st.DrawFn) -> bytes | None:
    data = bytearray(build_records(draw(FIELDS)))
    if draw(st.integers(0, 3)) == 0 and data:
        data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
    if draw(st.integers(0, 3)) == 0:
        data = data[: draw(st.integers(0, len(data)))]
    return draw(st.sampled_from([bytes(data)] * 5 + [None]))


LISTS = st.lists(contents(), max_size=3)
NAMED = st.lists(st.tuples(st.sampled_from(NAMES), LISTS), max_size=2)
WITH_IDS = st.lists(st.tuples(st.sampled_from(IDS), LISTS), max_size=2)


def answers_of(topics: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    codes = st.sampled_from([0, 0, 0, 6, 999])
    bases = st.sampled_from([-1, 0, 70, (1 << 62) - 1, 1 << 62, (1 << 63) - 1])
    return st.lists(st.tuples(topics, st.integers(0, 2), codes, bases), max_size=4)


CUTS = st.sampled_from([0, 0, 0, 1, 9])
ROWS = st.one_of(
    st.builds(produced, st.sampled_from([3, 9]), NAMED, answers_of(st.sampled_from(NAMES)), CUTS),
    st.builds(produced, st.just(13), WITH_IDS, answers_of(st.sampled_from(IDS)), CUTS),
    NAMED.map(lambda topics: exchange_row(produce(9, *topics))),
    NAMED.map(lambda topics: exchange_row(produce(3, *topics), response(PRODUCE, 3, 3))),
    WITH_IDS.map(lambda topics: exchange_row(produce(13, *topics))),
    st.tuples(NAMED, st.integers(1, 60)).map(lambda t: exchange_row(produce(9, *t[0]), cut=t[1])),
    NAMED.map(lambda topics: fetched(5, *topics)),
    WITH_IDS.map(lambda topics: fetched(16, *topics)),
    st.sampled_from(IDS[1:]).map(lambda topic_id: metadata(NAME_OF_ID[topic_id], topic_id)),
    st.just(exchange_row(None, response(FETCH, 4, 1))),
)


def is_apart(topic: str) -> bool:
    return topic == APART


def decoded_records(table: Exchanges, row: int, names: TopicNames) -> Iterator[dict[str, Any]]:
    exchange = Exchange(table, row, capture="", client="", broker="", names=names)
    exchange.learn()
    return record_rows(exchange)


def one_by_one(table: Exchanges, names: TopicNames) -> list[dict[str, Any]]:
    return [each for row in range(len(table)) for each in decoded_records(table, row, names)]


def in_parts(
    table: Exchanges, names: TopicNames, apart: Callable[[str], bool] = is_apart
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the rows of all parts, and the exchanges read as objects."""
    rows, exchanges = [], []
    for part in record_windows.record_parts(table, names, apart):
        between = [list(decoded_records(table, row, names)) for row in part.object_rows.tolist()]
        exchanges += part.object_rows.tolist()
        if not part.columns:
            rows += chain.from_iterable(between)
            continue
        assert tuple(part.columns) == COLUMNS
        every = list(iter_rows(part.columns))
        for at, some in reversed(list(zip(part.insert_at.tolist(), between, strict=True))):
            every[at:at] = some
        rows += every
    return rows, exchanges


@settings(max_examples=examples(40))
@given(st.lists(ROWS, max_size=8), st.booleans(), st.sampled_from([1, 5, 50_000]))
def test_parts_equal_the_rows_of_exchanges(rows: list[ExchangeRow], asks: bool, most: int) -> None:
    table = to_exchange_table(rows)
    ask = NAME_OF_ID.copy if asks else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_windows, "PART_RECORDS", most)
        found, exchanges = in_parts(table, TopicNames(ask))
    assert found == one_by_one(table, TopicNames(ask))
    assert exchanges == sorted(set(exchanges))


def test_valid_batches_stay_on_the_fast_path() -> None:
    batch = new_batch(
        [Record(key=b"k", value=b"v", headers=(("h", b"x"), ("n", None)))] * 3,
        codec="lz4",
        producer_id=5,
        producer_epoch=1,
        base_sequence=(1 << 31) - 2,
        transactional=True,
        base_offset=70,
    ).to_bytes()
    control = new_batch([Record(key=b"\0\0\0\1", value=b"")], base_offset=73)
    control.attributes |= 0x30
    commit = control.to_bytes(fix_crc=True)
    table = to_exchange_table(
        [
            exchange_row(produce(9, ("a", [batch, None, b""]), ("b", [PLAIN]))),
            fetched(16, (IDS[1], [batch + commit + batch[:-1]]), (IDS[0], [PLAIN])),
        ]
    )
    names = TopicNames()
    names.learn({IDS[1]: "c"})
    rows, exchanges = in_parts(table, names)
    assert exchanges == []
    assert rows == one_by_one(table, names)
    assert [row["topic"] for row in rows] == [*"aaab", *"cccc", None]
    assert [row["control"] for row in rows[4:]] == [None, None, None, "COMMIT", None]
    assert [row["sequence"] for row in rows[:3]] == [(1 << 31) - 2, (1 << 31) - 1, 0]


def test_invalid_batches_take_the_slow_path_in_order() -> None:
    wrong = bytearray(PLAIN)
    wrong[-2] ^= 1
    inner = new_message_set([Record(value=b"v")], magic=0)
    (old,) = new_message_set([Record(value=b"v")], codec="gzip")
    old.payload = MESSAGE_BODY.build({"key": None, "value": compress(1, build_records(inner))})
    old.message_size = len(old.to_bytes()) - 12
    odd = new_batch([Record(value=b"v")], base_offset=-(1 << 63)).to_bytes()
    (inside,) = parse_records(new_batch([Record(value=b"v")] * 2, codec="gzip").to_bytes())
    inside.records_count = 3
    table = to_exchange_table(
        [
            exchange_row(produce(9, ("a", [PLAIN]), ("b", [content, PLAIN])))
            for content in (
                PLAIN,
                bytes(wrong),
                PLAIN,
                old.to_bytes(fix_crc=True),
                odd,
                PLAIN,
                inside.to_bytes(fix_crc=True),
            )
        ]
    )
    rows, exchanges = in_parts(table, TopicNames())
    assert exchanges == [1, 3, 4, 6]
    assert rows == one_by_one(table, TopicNames())


@st.composite
def message_sets_of_brokers(draw: st.DrawFn) -> bytes:
    """Message sets, also with log append time, unusual times, and null values."""
    messages = draw(MESSAGE_SETS)
    for each in messages:
        each.attributes |= draw(st.sampled_from((0, 8, 0x70)))
        if each.magic and draw(st.booleans()):
            each.timestamp = draw(st.integers(-1, 1 << 50))
        if draw(st.integers(0, 3)) == 0:
            each.offset = draw(st.sampled_from((0, each.offset + 5)))
    data = b"".join(each.to_bytes(fix_crc=True) for each in messages)
    return data + draw(st.sampled_from((b"", data[:-1], PLAIN)))


@settings(max_examples=examples(40))
@given(st.lists(message_sets_of_brokers(), min_size=1, max_size=4), st.integers(1, 9))
def test_message_sets_are_read_as_columns(fields: list[bytes], most: int) -> None:
    rows = [fetched(5, ("a", [each, PLAIN])) for each in fields]
    rows.append(fetched(5, ("a", list(fields))))
    table = to_exchange_table(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_windows, "PART_RECORDS", most)
        found, asked_for = in_parts(table, TopicNames())
    assert found == one_by_one(table, TopicNames())
    assert asked_for == []


def test_bytes_in_both_buffers() -> None:
    table = to_exchange_table([exchange_row(produce(9, ("a", [PLAIN]))) for _ in range(4)])
    at = int(table.request.start[2])
    split = Exchanges(
        **{
            name: getattr(table, name)
            for name in table.__dataclass_fields__
            if name not in ("data", "carry_over")
        },
        data=np.array(table.carry_over[:at]),
        carry_over=np.array(table.carry_over[at:]),
    )
    assert in_parts(split, TopicNames()) == (one_by_one(table, TopicNames()), [])


@pytest.mark.thinned(4)
@each_capture("record parts")
def test_records_of_captures(path: Path) -> None:
    capture = open_capture(path)
    for window in capture.windows():
        names = TopicNames()
        rows, _ = in_parts(window.exchanges, names, lambda _: False)
        assert rows == one_by_one(window.exchanges, TopicNames())


def test_produced_records_have_the_offsets_of_the_response() -> None:
    """Two batches in one field: offsets of the second follow the first."""
    pair, three = (new_batch([Record(value=b"v")] * n).to_bytes() for n in (2, 3))
    data = [("a", [pair + three, PLAIN]), ("b", [PLAIN, PLAIN])]
    # The response has another order, and omits `b` 1.
    answers = [("b", 0, 6, -1), ("a", 1, 0, 7), ("a", 0, 0, 100)]
    table = to_exchange_table([produced(9, data, answers, 0), exchange_row(produce(9, *data))])
    rows, exchanges = in_parts(table, TopicNames())
    assert exchanges == []
    assert rows == one_by_one(table, TopicNames())
    found = [(row["topic"], row["partition"], row["offset"], row["error"]) for row in rows]
    assert found[:8] == [
        *(("a", 0, offset, "NONE") for offset in range(100, 105)),
        ("a", 1, 7, "NONE"),
        ("b", 0, None, "NOT_LEADER_OR_FOLLOWER"),
        ("b", 1, None, None),
    ]
    assert {(offset, error) for _, _, offset, error in found[8:]} == {(None, None)}
