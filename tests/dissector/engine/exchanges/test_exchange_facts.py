"""Facts extracted for a whole window equal those of the codecs, exchange by exchange."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector import open_capture
from dissector.engine.exchanges import exchange_facts as module
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_facts import (
    is_bulk_worthwhile,
    read_summaries,
    read_topic_names,
)
from dissector.engine.exchanges.fact_columns import ExchangeSummaries
from dissector.engine.facts.fact_kernel import NEEDS_CODEC, read_facts
from dissector.engine.facts.fact_tables import extract_facts
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.exchange_table import (
    ANSWERED,
    NO_RESPONSE,
    ORPHAN,
    UNANSWERED,
    Exchanges,
)
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis, api
from dissector.protocol.records import Record, new_batch
from tests.corpus import CAPTURES, each_capture
from tests.default_frames import request, response, sized
from tests.example_counts import examples
from tests.kernel_modes import MODES, running
from tests.reference.correlation.exchange_rows import (
    ExchangeRow,
    to_exchange_table,
)
from tests.reference.correlation.framer import Frame
from tests.tcp_captures import Wire, write
from tests.value_sources import Source, every_api, go_through, sources

MESSAGES = [(found.key, version) for found in all_apis() for version in found.request.versions]

ORDERS, PAYMENTS = UUID(int=3), UUID(int=2)


def row(
    status: int, request_frame: bytes | None, answer: bytes | None = None, **more: bool
) -> ExchangeRow:
    """Return an exchange of frames with size prefixes; their ends may be missing."""

    def frame(data: bytes | None) -> Frame | None:
        size = int.from_bytes((data or b"")[:4], "big")
        return None if data is None else Frame(0, data[4:], size, 1, 1, 0)

    return ExchangeRow(0, status, 0, frame(request_frame), frame(answer), **more)


def split(table: Exchanges, at: int) -> Exchanges:
    """Split a table's bytes between `data` and `carry_over`."""
    starts = np.concatenate((table.request.start, table.response.start))
    at = int(min((s for s in starts.tolist() if s >= at), default=len(table.carry_over)))
    return replace(
        table, data=table.carry_over[:at].copy(), carry_over=table.carry_over[at:].copy()
    )


def by_codecs(table: Exchanges) -> list[tuple[Any, ...]]:
    """Return client id, errors, topics and problems of each exchange, decoded one by one."""
    names = TopicNames()
    out = []
    for at in range(len(table)):
        each = exchange(table, at, names)
        each.learn()
        out.append((each.client_id, each.errors, each.topics, each.problems))
    return out


def by_columns(table: Exchanges) -> list[tuple[Any, ...]]:
    names = TopicNames()
    known = read_summaries(table, names)
    rows = [exchange(table, at, names, known) for at in range(len(table))]
    return [(each.client_id, each.errors, each.topics, each.problems) for each in rows]


def exchange(
    table: Exchanges, at: int, names: TopicNames, known: ExchangeSummaries | None = None
) -> Exchange:
    return Exchange(table, at, capture="", client="", broker="", names=names, summaries=known)


def rows_for_codecs(table: Exchanges) -> list[int]:
    """Return the rows that the loop leaves to the codecs."""
    return np.flatnonzero(extract_facts(table).state == NEEDS_CODEC).tolist()


@pytest.fixture(autouse=True)
def _any_window_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the tape for small windows too."""
    monkeypatch.setattr(module, "MIN_BULK_EXCHANGES", 1)


@pytest.mark.thinned(4)
@each_capture("knowledge")
def test_facts_equal_those_of_the_codecs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_tape = [exchange.row() for exchange in open_capture(path)]
    monkeypatch.setattr(module, "MIN_BULK_EXCHANGES", 10**9)
    assert by_tape == [exchange.row() for exchange in open_capture(path)]


@pytest.mark.thinned(2)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=30), source=sources())
@pytest.mark.parametrize("mode", MODES)
def test_every_message(mode: str, chosen: list[tuple[int, int]], source: Source) -> None:
    """Exchanges of all APIs and versions, valid and damaged."""
    with running(mode, read_facts):
        check(
            to_exchange_table([some_exchange(key, version, source) for key, version in chosen]),
            source,
        )


@pytest.mark.thinned(6)
@every_api
def test_each_version(found: Api) -> None:
    go_through(exchanges_of(found), check_one, times=2)


def exchanges_of(found: Api) -> list[tuple[int, int]]:
    return [(found.key, version) for version in found.request.versions]


def check_one(message: tuple[int, int], source: Source) -> None:
    check(to_exchange_table([some_exchange(*message, source)]), source)


def check(table: Exchanges, source: Source) -> None:
    table = split(table, source.chance.randint(0, len(table.carry_over)))
    assert by_columns(table) == by_codecs(table)


def some_exchange(key: int, version: int, source: Source) -> ExchangeRow:
    """Make a valid or damaged exchange."""
    found, chance = api(key), source.chance
    assert found is not None
    values = source.value(found.request, version)
    answer = source.value(found.response, version) if version in found.response.versions else {}
    name = chance.choice([None, "", "me", "you", "\udcff"])
    request_frame = request(key, version, 1, name, **values)
    if chance.randrange(5) == 0:
        newer = found.request.versions.high + chance.choice([1, 2, 90])
        request_frame = of_version(request_frame, newer)
    if chance.randrange(6) == 0:
        return row(UNANSWERED, _damaged(request_frame, source))
    response_frame = response(key, version, 1, **answer)
    token, unasked = (chance.randrange(10) == 0 for _ in range(2))
    if chance.randrange(10) == 0:
        return row(
            ORPHAN, None, _damaged(response_frame, source), token=token, answers_acks_0=unasked
        )
    frames = _damaged(request_frame, source), _damaged(response_frame, source)
    return row(ANSWERED, *frames, token=token, answers_acks_0=unasked)


def of_version(frame: bytes, version: int) -> bytes:
    """Return a request with another version in its header only."""
    return frame[:6] + version.to_bytes(2, "big") + frame[8:]


def _damaged(frame: bytes, source: Source) -> bytes:
    """Return a frame unchanged, shorter, longer, changed, or with an uncaptured end."""
    if source.chance.randrange(6) == 0:
        return frame[: source.chance.randint(4, len(frame))]
    if source.chance.randrange(3) == 0:
        return frame
    body = source.damaged(frame[4:])
    return len(body).to_bytes(4, "big") + body


def test_most_exchanges_are_known() -> None:
    capture = open_capture(next(path for path in CAPTURES if path.name == "demo.pcap"))
    tables = [window.exchanges for window in capture.windows()]
    assert sum(len(rows_for_codecs(table)) for table in tables) < sum(map(len, tables)) / 4


def test_a_known_exchange() -> None:
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": None}]}
    failed = {"index": 0, "error_code": 6, "base_offset": -1, "record_errors": []}
    answers = [{"name": "orders", "partition_responses": [failed, failed]}]
    produce = request(0, 9, 7, "me", acks=1, topic_data=[topic])
    answered = row(ANSWERED, produce, response(0, 9, 7, responses=answers))
    nothing = row(UNANSWERED, request(12, 4, 2, None))
    known = read_summaries(to_exchange_table([answered, nothing, answered]), TopicNames())
    assert known.client_ids == [None, "me"]
    assert known.error_lists == [(), ("NOT_LEADER_OR_FOLLOWER",)]
    assert known.topic_lists == [(), ("orders",)]
    assert known.problem_lists == [()]
    for column in (known.client_id, known.errors, known.topics):
        assert column.tolist() == [1, 0, 1]
    assert known.problems.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "exchange",
    [
        pytest.param(row(ANSWERED, request(12, 4, 1), response(12, 4, 1)), id="plain"),
        pytest.param(
            row(ANSWERED, request(18, 3, 1), response(18, 0, 1, error_code=35)),
            id="refused version",
        ),
        pytest.param(row(ANSWERED, request(3, 12, 1), response(3, 12, 1)), id="defines names"),
        pytest.param(row(ORPHAN, None, response(3, 12, 1)), id="orphan"),
        pytest.param(row(ANSWERED, b"\0\0\0\1x", b"\0\0\0\1y", token=True), id="token"),
    ],
)
def test_read_by_the_loop(exchange: ExchangeRow) -> None:
    assert rows_for_codecs(to_exchange_table([exchange])) == []


def test_left_to_the_codecs() -> None:
    good = row(ANSWERED, request(12, 4, 2), response(12, 4, 2))
    heartbeat, answer = request(12, 4, 1), response(12, 4, 1)
    others = [
        row(ANSWERED, heartbeat, answer[:3] + b"\x08" + answer[4:] + b"x"),
        row(ANSWERED, heartbeat, answer[:-1]),
        row(UNANSWERED, heartbeat[:3] + b"\x05" + heartbeat[4:9]),
        row(UNANSWERED, heartbeat[:4] + b"\x03\xe7\0\0" + heartbeat[8:]),
        row(UNANSWERED, heartbeat[:4] + b"\x00\x0c\0\x63" + heartbeat[8:]),
        row(ORPHAN, None, answer, answers_acks_0=True),
    ]
    assert rows_for_codecs(to_exchange_table([good, *others, good])) == [1, 2, 3, 4, 5, 6]
    assert all(problems for *_, problems in by_columns(to_exchange_table(others)))


def test_invalid_records_are_left_to_the_codecs() -> None:
    data = new_batch([Record(value=b"v")]).to_bytes()
    wrong = data[:-1] + bytes((data[-1] ^ 1,))
    rows = []
    for records in (data, wrong, data[:-1]):
        topic = {"name": "t", "partition_data": [{"index": 0, "records": records}]}
        rows.append(row(NO_RESPONSE, request(0, 7, 1, topic_data=[topic])))
    table = to_exchange_table(rows)
    known = read_summaries(table, TopicNames())
    assert (known.problems > 0).tolist() == [False, True, True]
    assert by_columns(table) == by_codecs(table)


def _named(topic_id: UUID, name: str | None) -> ExchangeRow:
    topic = {
        "error_code": 0,
        "name": name,
        "topic_id": topic_id,
        "is_internal": False,
        "partitions": [],
        "topic_authorized_operations": 0,
    }
    return row(ANSWERED, request(3, 12, 1, topics=[]), response(3, 12, 1, topics=[topic]))


def _produced(*topic_ids: UUID) -> ExchangeRow:
    topics = [{"topic_id": topic_id, "partition_data": []} for topic_id in topic_ids]
    return row(UNANSWERED, request(0, 13, 1, acks=1, topic_data=topics))


NAMING = [
    _produced(ORDERS, PAYMENTS),
    _named(ORDERS, "orders"),
    _produced(ORDERS, PAYMENTS),
    _named(PAYMENTS, "payments"),
    _named(ORDERS, "renamed"),
    _produced(ORDERS, PAYMENTS),
    _named(PAYMENTS, None),
]


def test_names_come_from_the_past_on_standard_input() -> None:
    names = TopicNames()
    known = read_summaries(to_exchange_table(NAMING), names)
    assert [known.topic_lists[at] for at in known.topics.tolist()] == [
        (str(ORDERS), str(PAYMENTS)),
        ("orders",),
        ("orders", str(PAYMENTS)),
        ("payments",),
        ("renamed",),
        ("orders", "payments"),  # topics are never renamed: an id keeps its first name
        ("payments",),
    ]
    assert names.by_id == TopicNames().by_id | {ORDERS: "orders", PAYMENTS: "payments"}
    assert by_columns(to_exchange_table(NAMING)) == by_codecs(to_exchange_table(NAMING))


def test_ids_are_kept_while_names_may_follow() -> None:
    names = TopicNames(lambda: {PAYMENTS: "asked"})
    known = read_summaries(to_exchange_table(NAMING[:2]), names)
    assert known.topic_lists[int(known.topics[0])] == (ORDERS, PAYMENTS)
    assert names.by_id == TopicNames().by_id | {ORDERS: "orders"}


def test_extraction_of_names_only() -> None:
    over = response(3, 12, 1, topics=[])
    more = row(ANSWERED, request(3, 12, 1, topics=[]), over[:3] + bytes((over[3] + 1,)) + over[4:])
    assert read_topic_names(to_exchange_table([*NAMING, more])) == {
        ORDERS: "orders",
        PAYMENTS: "payments",
    }
    assert read_topic_names(to_exchange_table([])) == {}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("mode", MODES)
def test_capacity_grows(mode: str) -> None:
    """More texts, lists, topics, names and records than the initial capacity."""
    partitions = [{"index": n, "records": b""} for n in range(5000)]
    topic = {"name": "t", "partition_data": [p | {"records": b"\0"} for p in partitions]}
    many = [
        {
            "error_code": n,
            "name": f"topic-{n}" * 9,
            "topic_id": UUID(int=n + 1),
            "is_internal": False,
            "partitions": [],
            "topic_authorized_operations": 0,
        }
        for n in range(1500)
    ]
    rows = [row(ANSWERED, request(3, 12, 1, topics=[]), response(3, 12, 1, topics=many))] * 2
    rows += [
        row(UNANSWERED, request(3, 1, 1, f"client {n}", topics=[{"name": f"topic-{n}" * 9}] * 2))
        for n in range(1200)
    ]
    rows.append(row(NO_RESPONSE, request(0, 7, 1, topic_data=[topic])))
    table = to_exchange_table(rows)
    with running(mode, read_facts):
        facts = extract_facts(table)
        assert (len(facts.fields), len(facts.topic_names)) == (5000, 1500)
        assert by_columns(table) == by_codecs(table)


def test_bulk_extraction_needs_a_minimum_of_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    table = to_exchange_table([row(ANSWERED, request(12, 4, 2), response(12, 4, 2))])
    assert is_bulk_worthwhile(table)
    monkeypatch.setattr(module, "MIN_BULK_EXCHANGES", 2)
    assert not is_bulk_worthwhile(table)


def test_few_large_exchanges_are_extracted_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_BULK_EXCHANGES", 100)
    for size, is_worthwhile in [(1000, False), (200_000, True)]:
        topic = {"name": "t", "partition_data": [{"index": 0, "records": bytes(size)}]}
        table = to_exchange_table([row(UNANSWERED, request(0, 7, 1, topic_data=[topic]))])
        assert is_bulk_worthwhile(table) is is_worthwhile


def test_no_exchanges() -> None:
    assert by_columns(to_exchange_table([])) == []


@pytest.mark.parametrize("worthwhile", [1, 10**9])
def test_contradictory_names_give_the_same_rows_on_both_paths(
    worthwhile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIN_BULK_EXCHANGES", worthwhile)
    wire = Wire()
    connection = wire.connect().syn()
    for number, each in enumerate(NAMING):
        for side, frame in enumerate((each.request, each.response)):
            if frame is not None:
                at = 4 - 4 * side  # of the correlation id
                connection.send(
                    side, sized(frame.data[:at] + number.to_bytes(4) + frame.data[at + 4 :])
                )
    path = tmp_path / "named.pcap"
    write(path, wire.packets)
    rows = [exchange.row() for exchange in open_capture(path)]
    assert rows == open_capture(path).exchanges().to_dicts()
    assert [row["topics"] for row in rows if row["api"] == "Produce"] == 3 * [
        ["orders", "payments"]
    ]
