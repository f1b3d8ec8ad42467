"""The kernel and the objects correlate connections to the same rows."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.columns import END, GAP, NEVER
from dissector.engine.correlation import (
    connection_states,
    correlator,
    entries,
    framer_kernel,
    state_tables,
)
from dissector.engine.correlation.correlator import ConnectionState, Correlator
from dissector.engine.correlation.correlator_rows import ConnectionRow
from dissector.engine.correlation.entries import MAX_SUPPRESSED
from dissector.engine.correlation.state_tables import StateTables, new_connection
from dissector.engine.reading.capture import Options, Reading
from dissector.engine.tables.exchange_table import ANSWERED, NONE, Exchanges, Frames
from dissector.kernel.named_rows import row_of
from tests.corpus import each_capture
from tests.default_frames import request, response
from tests.dissector.engine.chunks import Chunk, captures, columns, connections, numbered
from tests.example_counts import examples
from tests.kernel_modes import MODES, PYTHON, running
from tests.reference.correlation.reference_correlator import ReferenceCorrelator
from tests.tcp_captures import pieces

PRODUCE, HEARTBEAT, HANDSHAKE = 0, 12, 17


def rows_of(table: Exchanges) -> Iterator[tuple[Any, ...]]:
    """Yield all columns of each exchange except the positions of its bytes."""
    for row in range(len(table)):
        yield (
            *(int(getattr(table, name)[row]) for name in ("connection", "status", "client")),
            *(int(getattr(table, name)[row]) for name in ("token", "answers_acks_0", "api_key")),
            *(int(getattr(table, name)[row]) for name in ("api_version", "correlation_id")),
            *frame(table, table.request, row),
            *frame(table, table.response, row),
            int(table.server_ns[row]),
        )


def frame(table: Exchanges, frames: Frames, row: int) -> tuple[Any, ...]:
    names = ("captured_bytes", "size", "packet", "time_ns", "offset")
    return table.frame(frames, row), *(int(getattr(frames, name)[row]) for name in names)


def correlate(
    chunks: Sequence[Chunk],
    whole: Sequence[bool],
    windows: Sequence[int] = (),
    made_by: type[Correlator | ReferenceCorrelator] = Correlator,
    **options: Any,
) -> tuple[list[tuple[Any, ...]], list[ConnectionState], int]:
    """Return the rows, the states of the connections, and the low watermark before the end."""
    fold = made_by(connections(whole), **options)
    ends = sorted({0, len(chunks), *(at for at in windows if at < len(chunks))})
    windows_of_rows = [list(rows_of(fold.feed(columns(chunks[a:b])))) for a, b in pairwise(ends)]
    low = fold.low_watermark()
    windows_of_rows.append(list(rows_of(fold.finish())))
    return [row for rows in windows_of_rows for row in rows], states_of(fold), low


def states_of(fold: Correlator | ReferenceCorrelator) -> list[ConnectionState]:
    """Return the states of connections, in the order of their start."""
    if isinstance(fold, ReferenceCorrelator):
        return [*fold]
    orders = {
        number: order
        for numbers, rows in fold.tables.parts()
        for number, order in zip(numbers.tolist(), rows["order"].tolist(), strict=True)
    }
    states = map(fold.state_of, sorted(orders, key=orders.__getitem__))
    return [state for state in states if state is not None]


def check(
    chunks: Sequence[Chunk], whole: Sequence[bool], windows: Sequence[int], **options: Any
) -> None:
    """Compare rows of the kernel, as Python and compiled, with rows of objects."""
    truth = correlate(chunks, whole, made_by=ReferenceCorrelator, **options)
    for mode in MODES:
        with running(mode, correlator):
            assert correlate(chunks, whole, windows, **options) == truth
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlator, "REST_ROWS", 1)
        patch.setattr(connection_states, "IDLE_NS", -(1 << 62))
        assert correlate(chunks, whole, windows, **options) == truth


WINDOWS = st.lists(st.integers(1, 30), max_size=8)
MANY = settings(deadline=None, max_examples=examples(150))


@given(captures(odd=False), WINDOWS)
@MANY
def test_rows_equal_those_of_objects(
    drawn: tuple[list[Chunk], list[bool]], windows: list[int]
) -> None:
    check(*drawn, windows)


@given(captures(), WINDOWS)
@MANY
def test_rows_of_irregular_connections_equal_those_of_objects(
    drawn: tuple[list[Chunk], list[bool]], windows: list[int]
) -> None:
    check(*drawn, windows)


@given(captures(), st.sampled_from([{9092}, {9093}, {9092, 9093}, {1}, {50000}]), WINDOWS)
@settings(deadline=None, max_examples=examples(60))
def test_rows_with_given_ports_equal_those_of_objects(
    drawn: tuple[list[Chunk], list[bool]], ports: set[int], windows: list[int]
) -> None:
    check(*drawn, windows, ports=frozenset(ports))


@given(captures(), WINDOWS, st.sampled_from((40, 100)), st.integers(1, 3))
@settings(deadline=None, max_examples=examples(100))
def test_limits_equal_those_of_objects(
    drawn: tuple[list[Chunk], list[bool]], windows: list[int], limit: int, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_tables, "MAX_OPEN", most)
        patch.setattr(state_tables, "MAX_OPEN_BYTES", 3 * limit)
        patch.setattr(state_tables, "MIN_RETAINED_BYTES", 20 * limit)
        check(*drawn, windows, max_frame_bytes=limit)


class Interrupted(StateTables):
    """Tables with room for little more than the next step, so that the kernel stops often."""

    def start_window(self, data: Any, count: int) -> None:
        super().start_window(data, 4)

    def make_room(self, connection: int, length: int) -> None:
        counts, row = self.counts, self.connection_rows[connection]
        added = length // 8 + 4
        self._widen_exchanges(counts.exchange_count + row.open_count + row.ready_count + added)
        grown = np.zeros(counts.entries_live + added + 4, self.entries.dtype)
        grown[: len(self.entries)] = self.entries[: len(grown)]
        self.entries = grown if len(grown) > len(self.entries) else self.entries
        super().make_room(connection, 0)


@given(captures(), WINDOWS)
@MANY
def test_rows_do_not_depend_on_interruptions(
    drawn: tuple[list[Chunk], list[bool]], windows: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlator, "StateTables", Interrupted)
        check(*drawn, windows)


@given(captures(), st.integers(1, 20))
@settings(deadline=None, max_examples=examples(50))
def test_rows_do_not_depend_on_a_copy_of_the_state(
    drawn: tuple[list[Chunk], list[bool]], at: int
) -> None:
    """The state of shards is pickled, and goes on in another process."""
    chunks, whole = drawn
    fold = Correlator(connections(whole))
    rows = list(rows_of(fold.feed(columns(chunks[:at]))))
    fold = pickle.loads(pickle.dumps(fold))
    rows += rows_of(fold.feed(columns(chunks[at:])))
    rows += rows_of(fold.finish())
    assert rows == correlate(chunks, whole)[0]


def heartbeat_request(n: int) -> bytes:
    return request(HEARTBEAT, 4, n)


def heartbeat_response(n: int) -> bytes:
    return response(HEARTBEAT, 4, n)


def test_a_gap_takes_no_memory_for_missing_bytes() -> None:
    fold = Correlator(connections([True]))
    chunks = [Chunk(0, 0, data=heartbeat_request(0)), Chunk(0, 0, GAP, missing=1 << 40)]
    assert len(fold.feed(columns(numbered(chunks)))) + len(fold.finish()) == 1


def test_regular_connections() -> None:
    """Frames divided anywhere, pipelined, responses out of order, requests without responses."""
    requests = b"".join(map(heartbeat_request, range(6))) + request(
        PRODUCE, 9, 6, acks=0, timeout_ms=1
    )
    responses = b"".join(map(heartbeat_response, (1, 0, 4, 3)))
    said = [Chunk(0, 0, data=heartbeat_request(99))]
    said += [Chunk(0, 0, data=part) for part in pieces(requests, range(0, len(requests), 7))]
    said += [Chunk(0, 1, data=part) for part in pieces(responses, range(0, len(responses), 3))]
    check(numbered(said), [True], [3, 9, 40])


@pytest.mark.parametrize(
    "said",
    [
        [Chunk(0, 0, data=heartbeat_request(1)[:8]), Chunk(0, 0, GAP, missing=3)],
        [Chunk(0, 1, data=heartbeat_response(7))],
        [Chunk(0, 1, data=b"".join(map(heartbeat_response, (0, 7, 9))))],
        [Chunk(0, 0, data=request(HANDSHAKE, 0, 1))],
        [Chunk(0, 0, data=heartbeat_request(1)[:20]), Chunk(0, 0, END)],
        [Chunk(0, 0, data=b"\xff" * 20)],
    ],
)
def test_irregular_connections(said: list[Chunk]) -> None:
    more = [Chunk(0, 0, data=heartbeat_request(n)) for n in range(9, 13)]
    check(numbered([Chunk(0, 0, data=heartbeat_request(0)), *said, *more]), [True], range(1, 6))


def test_gaps_between_frames_and_inside_one() -> None:
    """The next frame begins with a packet, or later."""
    said = [Chunk(0, 0, data=heartbeat_request(n)) for n in range(8)]
    said += [Chunk(0, 1, data=heartbeat_response(n)) for n in range(8)]
    said.insert(4, Chunk(0, 0, GAP, missing=3))
    said[10:11] = [Chunk(0, 1, GAP, missing=len(said[10].data))]
    long = request(HEARTBEAT, 4, 9, member_id="m" * 1000)
    answer = response(HEARTBEAT, 4, 9)
    said += [Chunk(0, 0, data=long[:300]), Chunk(0, 0, GAP, missing=300)]
    said += [Chunk(0, 0, data=long[600:800]), Chunk(0, 0, data=long[800:] + heartbeat_request(10))]
    said += [Chunk(0, 1, data=answer), Chunk(0, 1, data=heartbeat_response(10))]
    chunks = [*said, Chunk(0, 0, END)]
    check(numbered(chunks), [True], [3, 5, 11, 17])


def test_a_produce_behind_a_gap_is_damaged() -> None:
    """The versions of Produce are not loaded when the gap in the first one comes."""
    produce = request(PRODUCE, 0, 10, acks=0, timeout_ms=1)
    said = [
        Chunk(0, 0, GAP, missing=28),
        Chunk(0, 0, data=request(HANDSHAKE, 1, 9) + produce[:20]),
        Chunk(0, 0, GAP, missing=len(produce) - 20),
    ]
    check(numbered(said), [True], [])


GET = b"GET /items?page=1 HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + bytes(range(32, 122)) * 10


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("turns", [1, 3, 1200])
def test_other_protocols(whole: bool, turns: int) -> None:
    said = [
        Chunk(0, side, data=each) for _ in range(turns) for side, each in enumerate((GET, PAGE))
    ]
    chunks = [*said, Chunk(0, 0, END)]
    check(numbered(chunks), [whole], [2, 5])
    _, (state,), _ = correlate(numbered(chunks), [whole])
    assert state.speaks == "other"


LIKE_KAFKA = b"\0\0\1\0\0\3\0\1\0\0\0\5\0\3ab", b"\0\0\0\x08\0\0\0\1....", b"\x16\3\1\0\x20"
PARTS = GET, PAGE, bytes(15), b"\xff" * 9, heartbeat_request(1), heartbeat_response(1), *LIKE_KAFKA


@st.composite
def conversations(draw: st.DrawFn) -> list[Chunk]:
    """Draw a connection of another protocol, with bytes like Kafka's, cut anywhere."""
    chunks: list[Chunk] = []
    for _ in range(draw(st.integers(1, 6))):
        side = draw(st.integers(0, 1))
        data = b"".join(draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3)))
        cuts = draw(st.lists(st.integers(1, 60), max_size=3))
        chunks += [Chunk(0, side, data=part) for part in pieces(data, cuts) if part]
        if draw(st.integers(0, 5)) == 0:
            chunks.append(Chunk(0, draw(st.integers(0, 1)), GAP, missing=draw(st.integers(1, 50))))
    return [*chunks, Chunk(0, 0, END)] if draw(st.booleans()) else chunks


@given(conversations(), st.booleans(), WINDOWS, st.sampled_from([40, 1 << 20]))
@MANY
def test_rows_of_other_protocols_equal_those_of_objects(
    said: list[Chunk], whole: bool, windows: list[int], retained: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_tables, "MIN_RETAINED_BYTES", retained)
        check(numbered(said), [whole], windows)


def test_ended_connections_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others one is open, and one has a request in flight."""
    monkeypatch.setattr(correlator, "REST_ROWS", 1)
    fold = Correlator(connections([True] * 3))
    said = [Chunk(number, 0, data=heartbeat_request(1)) for number in range(3)]
    said += [Chunk(number, 1, data=heartbeat_response(1)) for number in range(2)]
    fold.feed(columns(numbered([*said, Chunk(0, 0, END)])))
    fold.feed(columns([]))
    assert fold.tables.resting.has(np.arange(3)).tolist() == [True, False, False]


def test_open_connections_of_other_protocols_hold_little() -> None:
    turns, count = 50, 20
    said = [
        Chunk(number, side, data=each)
        for _ in range(turns)
        for side, each in enumerate((GET, PAGE))
        for number in range(count)
    ]
    fold = Correlator(connections([True] * count))
    chunks = numbered(said)
    for at in range(0, len(chunks), 100):
        fold.feed(columns(chunks[at : at + 100]))
        held = int(fold.tables.entries["length"].sum())
        assert held < count * (turns * len(GET) + 2000 + 2 * len(PAGE))
    assert fold.spoken() == {"": count}


@pytest.mark.parametrize("cut", [None, 3, 20])
def test_kafka_behind_another_protocol_is_found(cut: int | None) -> None:
    """The header of the request may be cut between packets."""
    kafka = GET + heartbeat_request(1)
    parts = [kafka] if cut is None else [kafka[: len(GET) + cut], kafka[len(GET) + cut :]]
    said = [Chunk(0, 0, data=GET), Chunk(0, 1, data=PAGE)]
    said += [Chunk(0, 0, data=each) for each in parts]
    said += [Chunk(0, 1, data=heartbeat_response(1)), Chunk(0, 0, END)]
    check(numbered(said), [True], [1, 2, 3, 4])
    rows, (state,), _ = correlate(numbered(said), [True])
    assert [(row[7], row[1]) for row in rows] == [(1, ANSWERED)]
    assert state.skipped == (2 * len(GET), len(PAGE))


def test_frames_wait_behind_a_barrier() -> None:
    """A response behind a barrier, and one before its request."""
    said = [
        Chunk(0, 0, data=heartbeat_request(0)),
        Chunk(0, 1, data=heartbeat_response(0), horizon=(1, NEVER)),
        Chunk(0, 1, data=heartbeat_response(2), horizon=(1, NEVER)),
        Chunk(0, 0, data=heartbeat_request(1)),
        Chunk(0, 1, data=heartbeat_response(1)),
        Chunk(0, 0, data=heartbeat_request(2)),
    ]
    chunks = numbered(said)
    check(chunks, [True], [1, 2, 3, 4, 5])
    check(chunks[:3], [True], [1, 2])


def test_only_connections_hold_packets_back() -> None:
    """The tables have room for more connections than there are."""
    waiting = Chunk(
        1, 1, data=bytes(3) + b"\x08" + bytes(8), packet=2, horizon=(1, NEVER), held=True
    )
    chunks = [Chunk(2, 1, 1, missing=1, packet=1), waiting, Chunk(0, 1, 1, missing=12, packet=3)]
    check(chunks, [True] * 3, [2])
    assert correlate(chunks, [True] * 3, [2])[2] == 1


def test_a_chunk_may_release_a_delayed_piece_that_is_longer() -> None:
    """The room for the chunk is not enough; the kernel once asked for it again and again."""
    many = b"".join(map(heartbeat_response, range(2, 500)))
    said = [
        Chunk(0, 0, data=heartbeat_request(0)),
        Chunk(0, 1, data=heartbeat_response(0)),
        Chunk(0, 1, GAP, missing=9),
        Chunk(0, 1, data=b"rest of a frame", horizon=(1, NEVER)),
        Chunk(0, 1, data=many, horizon=(1, NEVER)),
        Chunk(0, 0, data=heartbeat_request(1)),
    ]
    check(numbered(said), [True], ())


SOCKS_5 = b"\5\0", b"\5\0\0\1\x0a\1\2\3\x23\x84"
"""Source: RFC 1928, sections 3 and 6 (no authentication; connected to 10.1.2.3:9092)."""


@pytest.mark.parametrize("ports", [frozenset(), frozenset({9092})])
@pytest.mark.parametrize(
    "first",
    [SOCKS_5, (b"\0\x5a\x23\x84\x0a\1\2\3",), (b"\0\1\0\0", b"\x7f" * 4), (bytes(4) + b"\6",)],
)
@pytest.mark.parametrize("is_behind_request", [False, True])
def test_bytes_of_the_server_before_kafka_are_no_response(
    first: tuple[bytes, ...], ports: frozenset[int], is_behind_request: bool
) -> None:
    foreign = [Chunk(0, 1, data=each) for each in first]
    said = [Chunk(0, 0, data=heartbeat_request(1))]
    said = [*said, *foreign] if is_behind_request else [*foreign, *said]
    said += [Chunk(0, 1, data=heartbeat_response(1))]
    for n in range(2, 5):
        said += [Chunk(0, 0, data=heartbeat_request(n)), Chunk(0, 1, data=heartbeat_response(n))]
    chunks = numbered([*said, Chunk(0, 0, END)])
    check(chunks, [True], [1, 2, 3, 4, 5, 6], ports=ports)
    rows, (state,), _ = correlate(chunks, [True], ports=ports)
    assert [(row[7], row[1]) for row in rows] == [(n, ANSWERED) for n in range(1, 5)]
    assert state.skipped == (0, len(b"".join(first)))


def test_a_first_response_may_come_before_its_request() -> None:
    said = [
        Chunk(0, 0, data=heartbeat_request(1)),
        Chunk(0, 1, data=heartbeat_response(2)),
        Chunk(0, 0, data=heartbeat_request(2)),
        Chunk(0, 1, data=heartbeat_response(1)),
    ]
    chunks = numbered(said)
    check(chunks, [True], [1, 2, 3])
    assert sorted((row[7], row[1]) for row in correlate(chunks, [True])[0]) == [
        (1, ANSWERED),
        (2, ANSWERED),
    ]


@pytest.mark.parametrize("cut", [14, 60])
@pytest.mark.parametrize("has_gap_inside", [False, True])
@pytest.mark.parametrize("is_lost_before", [False, True])
def test_a_response_proves_that_its_request_arrived(
    cut: int, has_gap_inside: bool, is_lost_before: bool
) -> None:
    """The end of a request is lost; the gap shows when the next request comes, much later."""
    long = request(HEARTBEAT, 4, 1, member_id="m" * 1000)
    lost, inside = len(long) - cut, 500 * has_gap_inside
    chunks = [
        Chunk(0, 0, data=heartbeat_request(0), packet=0),
        Chunk(0, 1, data=heartbeat_response(0), packet=1),
        Chunk(0, 0, data=long[:cut], packet=2),
    ]
    if inside:
        chunks += [
            Chunk(0, 0, GAP, missing=inside, packet=3),
            Chunk(0, 0, data=long[cut + inside : -9], packet=3),
        ]
        lost = 9
    if is_lost_before:
        chunks.append(Chunk(0, 1, GAP, missing=9, packet=5))
    chunks += [
        Chunk(0, 1, data=heartbeat_response(1), packet=5),
        Chunk(0, 0, GAP, missing=lost, packet=200),
        Chunk(0, 0, data=heartbeat_request(2), packet=200),
        Chunk(0, 1, data=heartbeat_response(2), packet=201),
    ]
    check(chunks, [True], [3, 4, 5, 6, 7])
    rows = correlate(chunks, [True])[0]
    assert [(row[7], row[1]) for row in rows] == [(n, ANSWERED) for n in range(3)]
    assert [row[11] for row in rows] == [0, 3 if inside else 2, 200]


def test_no_request_is_later_than_its_response() -> None:
    """The gap shows so early that the response still waits for its request."""
    long = request(HEARTBEAT, 4, 1, member_id="m" * 1000)
    chunks = [
        Chunk(0, 0, data=heartbeat_request(0), packet=0),
        Chunk(0, 1, data=heartbeat_response(0), packet=1),
        Chunk(0, 0, data=long[:100], packet=2),
        Chunk(0, 1, data=heartbeat_response(1), packet=3),
        Chunk(0, 0, GAP, missing=len(long) - 100, packet=4),
        Chunk(0, 0, data=heartbeat_request(2), packet=4),
    ]
    check(chunks, [True], [1, 2, 3, 4, 5])
    rows = correlate(chunks, [True])[0]
    assert [(row[7], row[1], row[11], row[17]) for row in rows][1] == (1, ANSWERED, 3, 3)


def test_responses_between_gaps_are_paired_with_requests_behind_a_hole() -> None:
    """Two packets of the broker are lost while earlier requests wait behind a hole."""
    hole = (3, NEVER)
    chunks = [
        Chunk(0, 0, data=heartbeat_request(0), packet=0),
        Chunk(0, 1, data=heartbeat_response(0), packet=1),
        Chunk(0, 1, GAP, missing=9, packet=4, horizon=hole),
        Chunk(0, 1, data=heartbeat_response(2), packet=4, horizon=hole),
        Chunk(0, 1, GAP, missing=9, packet=6, horizon=hole),
        Chunk(0, 1, data=heartbeat_response(3), packet=6, horizon=hole),
        Chunk(0, 0, data=heartbeat_request(2), packet=3, horizon=(5, NEVER)),
        Chunk(0, 0, data=heartbeat_request(3), packet=5),
    ]
    check(chunks, [True], [3, 5, 6])
    rows, _, _ = correlate(chunks, [True])
    assert [(row[7], row[1]) for row in rows] == [(0, ANSWERED), (2, ANSWERED), (3, ANSWERED)]


def test_number_of_ids_without_expected_response_is_bounded() -> None:
    produced = [request(PRODUCE, 9, n, acks=0, timeout_ms=1) for n in range(1005)]
    said = [Chunk(0, 0, data=each) for each in produced]
    said += [Chunk(0, 1, data=response(PRODUCE, 9, n)) for n in (0, 4, 5, 1004, 7)]
    chunks = numbered(said)
    check(chunks, [True], [500, 1006])
    unasked = [row[4] for row in correlate(chunks, [True])[0][1005:]]
    assert unasked == [0, 0, 1, 1, 1]


@pytest.mark.long
def test_memory_does_not_grow_with_the_capture() -> None:
    """Requests wait, and frames arrive in parts, window after window."""
    fold = Correlator(connections([True]))
    big = request(HEARTBEAT, 4, 5, member_id="m" * 30_000)
    fold.feed(columns([Chunk(0, 0, data=heartbeat_request(1))]))
    most = 0
    for window in range(400):
        rows = [Chunk(0, 0, data=part) for part in pieces(big, [9, 25_000])]
        exchanges = fold.feed(
            columns([*rows, Chunk(0, 1, data=heartbeat_response(5)), Chunk(0, 0, data=big[:50])])
        )
        assert exchanges.frame(exchanges.request, 0) == big[4:], window
        rest = fold.feed(
            columns([Chunk(0, 0, data=big[50:]), Chunk(0, 1, data=heartbeat_response(5))])
        )
        assert rest.frame(rest.request, 0) == big[4:], window
        most = max(most, len(fold.tables.carry_over))
    assert most < 8 << 20
    # The capacity covers all frames of a chunk.
    assert len(fold.tables.entries) < 10_000
    assert [fold.low_watermark(), len(fold.finish())] == [0, 1]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("first", [b"", heartbeat_request(1)[:20]])
def test_bytes_of_an_unrecognised_stream_are_not_kept(
    whole: bool, side: int, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_tables, "MIN_RETAINED_BYTES", 5000)
    fold = Correlator(connections([whole]))
    if first:
        fold.feed(columns([Chunk(0, side, data=first)]))
    for packet in range(100):
        fold.feed(columns([Chunk(0, side, data=b"\x80" * 1000, packet=packet)]))
        kept = fold.tables.connections["sides"]["buffered_bytes"][0, side]
        assert kept <= 11_000
        assert len(fold.tables.carry_over) < 4 << 20
    fold.finish()
    assert [state.speaks for state in states_of(fold)] == ["other"]


def test_unsolicited_responses_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_tables, "MIN_RETAINED_BYTES", 5000)
    said = [Chunk(0, 0, data=heartbeat_request(1)), Chunk(0, 1, data=heartbeat_response(1))]
    said += [Chunk(0, 1, GAP, missing=7), *(Chunk(0, 1, data=b"\x80" * 1000) for _ in range(100))]
    fold = Correlator(connections([False]))
    for chunk in numbered(said):
        fold.feed(columns([chunk]))
    side = fold.tables.connections["sides"][0, 1]
    assert side["buffered_bytes"] <= 11_000
    assert side["skipped"] >= 89_000


def test_many_requests_in_flight_are_found_by_their_ids() -> None:
    """As many as may wait, with one id and with different ones, answered in any order."""
    ids = [n if n % 2 else -7 for n in range(5000)]
    asked = b"".join(map(heartbeat_request, ids))
    answered = b"".join(map(heartbeat_response, reversed(ids)))
    chunks = numbered([Chunk(0, 0, data=asked), Chunk(0, 1, data=answered), Chunk(0, 0, END)])
    check(chunks, [False], [1, 2])
    assert {row[1] for row in correlate(chunks, [False])[0]} == {ANSWERED}


def test_state_of_forgotten_connections_is_freed() -> None:
    said = [Chunk(0, 0, data=heartbeat_request(1) + heartbeat_request(2)[:9])]
    said += [Chunk(0, 0, GAP, missing=3), Chunk(0, 0, data=b"\0" * 30)]
    fold = Correlator(connections([True, True]))
    fold.feed(columns(numbered([*said, Chunk(1, 0, data=heartbeat_request(5))])))
    fold.retain(np.array([1]))
    assert fold.tables.counts.entries_live == 1
    rows = list(rows_of(fold.feed(columns([Chunk(0, 1, data=heartbeat_response(5))]))))
    assert [(row[7], row[1]) for row in rows] == [(5, ANSWERED)]
    fold.restart([0])
    assert fold.tables.counts.entries_live == 0


def test_windows_are_not_kept_in_memory() -> None:
    fold = Correlator(connections([True]))
    chunks = columns(
        [Chunk(0, 0, data=heartbeat_request(1)), Chunk(0, 1, data=heartbeat_response(1))]
    )
    exchanges = fold.feed(chunks)
    window, rows = ref(chunks.data), ref(exchanges.connection.base)
    del chunks, exchanges
    gc.collect()
    assert window() is None
    assert rows() is None


def correlate_file(
    file: Path, correlator: type[Correlator | ReferenceCorrelator], window_bytes: int
) -> tuple[list[tuple[Any, ...]], list[ConnectionState]]:
    reading = Reading([str(file)], Options(window_bytes=window_bytes))
    made: Any = correlator(reading.streams.connections)
    reading.correlator = made
    rows = [row for window in reading.windows() for row in rows_of(window.exchanges)]
    return rows, states_of(made)


@pytest.mark.thinned(4)
@each_capture("conversations")
def test_captures_give_the_rows_of_objects(path: Path) -> None:
    truth = correlate_file(path, ReferenceCorrelator, 1 << 25)
    for window_bytes in (1 << 25, 5000):
        assert correlate_file(path, Correlator, window_bytes) == truth
    with running(PYTHON, correlator):
        assert correlate_file(path, Correlator, 50_000) == truth


@pytest.mark.parametrize(
    ("rtt_ms", "resent", "expected"),
    [(5, None, 235), (5, 11, None), (5, 1, 15), (-1, None, None), (900, None, 0)],
)
def test_time_of_the_server(rtt_ms: int, resent: int | None, expected: int | None) -> None:
    """240 ms, less the RTT; from the repetition on, unless it may have been needless."""
    said = [Chunk(0, 0, data=heartbeat_request(0)), Chunk(0, 1, data=heartbeat_response(0))]
    said += [Chunk(0, 0, data=heartbeat_request(1))]
    said += [Chunk(0, 0, data=heartbeat_request(n)) for n in range(2, 13)]
    answer = Chunk(0, 1, data=heartbeat_response(1), rtt_ns=rtt_ms * 1_000_000, resent=resent)
    chunks = numbered([*said, answer])
    check(chunks, [True], [2, 7])
    rows = correlate(chunks, [True])[0]
    (found,) = (row[-1] for row in rows if row[7] == 1)
    assert found == (NONE if expected is None else expected * 1_000_000)


class Counted(np.ndarray[Any, Any]):
    """A table that counts how often it is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        Counted.reads += 1
        return int(super().__getitem__(at))


def test_suppressed_ids_are_found_in_few_steps() -> None:
    """Among many, and among those that came again or were forgotten."""
    most = MAX_SUPPRESSED
    tables = Correlator(connections([True])).tables
    tables.suppressed = tables.suppressed.view(Counted)
    state: Any = tables.state()
    state = state._replace(counts=tables.counts, secret=state.secret.tolist())
    row = row_of(new_connection(start_captured=True, client=0), ConnectionRow)
    ids = [1000 * n for n in (*range(3 * most), *range(2 * most, 3 * most, 7))]
    for each in ids:
        entries.suppress(state, row, each)
    Counted.reads = 0
    asked = [*range(0, 1000 * 3 * most, 500)]
    found = {each for each in asked if entries.is_suppressed(state, row, each)}
    assert found == set(ids[-most:])
    assert Counted.reads < 5 * len(asked)


def test_waiting_requests_are_compared_with_the_first_response_once() -> None:
    """Requests wait behind a barrier while the response has no request yet."""
    count = 300
    said = [Chunk(0, 0, data=heartbeat_request(0)), Chunk(0, 1, data=heartbeat_response(50))]
    said += [
        Chunk(0, 0, data=heartbeat_request(n), horizon=(NEVER, 2)) for n in range(100, 100 + count)
    ]
    checks = [Chunk(0, 1, data=heartbeat_response(n), horizon=(NEVER, 2)) for n in range(count)]
    check(numbered([*said, *checks]), [True], [30, 300, 301])
    fold, reads = Correlator(connections([True])), 0
    tables = fold.tables

    def counted(state: Any, number: int, correlation_id: int) -> bool:
        nonlocal reads
        walked = tables.connection_rows[number].awaited_id != correlation_id
        reads += walked
        return may_have_asked(state, number, correlation_id)

    may_have_asked = entries.may_have_asked
    with running(PYTHON, correlator), pytest.MonkeyPatch.context() as patch:
        patch.setattr(framer_kernel, "may_have_asked", counted)
        fold.feed(columns(numbered([*said, *checks])))
    assert 0 < reads < 5
