"""Scripted connections: the bytes of each side, and the resulting exchanges."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.engine.tables.exchange_table import STATUS
from tests.default_frames import request, response, sized
from tests.example_counts import examples
from tests.reference.correlation.connection_correlator import (
    NEVER,
    ConnectionCorrelator,
)
from tests.reference.correlation.exchange_rows import ExchangeRow
from tests.reference.correlation.login_phase import is_kerberos
from tests.reference.correlation.recognition import DOUBTFUL

API_VERSIONS, METADATA, PRODUCE, FETCH, HEARTBEAT, HANDSHAKE = 18, 3, 0, 1, 12, 17


class ScriptedConnection:
    """Feeds a connection one packet at a time."""

    def __init__(self, whole: bool = True) -> None:
        self.rows: list[ExchangeRow] = []
        self.correlator = ConnectionCorrelator(7, whole, self.rows.append)
        self.packet = 0

    def client(self, *data: bytes) -> ScriptedConnection:
        return self.send(0, *data)

    def broker(self, *data: bytes) -> ScriptedConnection:
        return self.send(1, *data)

    def send(self, side: int, *data: bytes) -> ScriptedConnection:
        for each in data:
            self.correlator.add_data(side, each, self.packet, self.packet * 1000)
            self.packet += 1
        return self

    def gap(self, side: int, length: int) -> ScriptedConnection:
        self.correlator.add_gap(side, length, self.packet, self.packet * 1000)
        self.packet += 1
        return self

    def end(self) -> list[tuple[str, int | None]]:
        self.correlator.end()
        return self.statuses()

    def statuses(self) -> list[tuple[str, int | None]]:
        """List (status, correlation id) of the exchanges so far."""
        return [(STATUS[row.status], _correlation(row)) for row in self.rows]


def _correlation(row: ExchangeRow) -> int | None:
    if row.token:
        return None
    if row.request is not None:
        return int.from_bytes(row.request.data[4:8], "big")
    return int.from_bytes(row.response.data[:4], "big")


def heartbeat(n: int) -> bytes:
    return request(HEARTBEAT, 4, n, group_id="g", member_id=f"member-{n}")


def beat(n: int) -> bytes:
    return response(HEARTBEAT, 4, n)


def test_one_exchange() -> None:
    play = ScriptedConnection().client(heartbeat(1)).broker(beat(1))
    assert play.statuses() == [("answered", 1)]
    row = play.rows[0]
    assert (row.connection, row.client, row.request.packet, row.response.packet) == (7, 0, 0, 1)
    assert (row.request.time_ns, row.response.time_ns) == (0, 1000)
    assert row.request.size == len(heartbeat(1)) - 4 == len(row.request.data)
    assert play.correlator.speaks == "kafka"


def test_pipelined_requests_are_paired_by_their_ids() -> None:
    play = (
        ScriptedConnection()
        .client(heartbeat(1) + heartbeat(2) + heartbeat(3))
        .broker(beat(1) + beat(2), beat(3))
    )
    assert play.statuses() == [("answered", 1), ("answered", 2), ("answered", 3)]


def test_responses_out_of_order_are_paired() -> None:
    assert ScriptedConnection().client(heartbeat(1), heartbeat(2)).broker(
        beat(2), beat(1)
    ).statuses() == [
        ("answered", 2),
        ("answered", 1),
    ]


def test_equal_ids_in_flight_are_paired_in_order_of_sending() -> None:
    play = ScriptedConnection().client(heartbeat(5), heartbeat(5)).broker(beat(5), beat(5))
    assert [(r.request.packet, r.response.packet) for r in play.rows] == [(0, 2), (1, 3)]


def test_produce_with_acks_0_has_no_response() -> None:
    produce = request(PRODUCE, 9, 4, acks=0, timeout_ms=1)
    assert ScriptedConnection().client(heartbeat(3), produce, heartbeat(5)).broker(
        beat(3), beat(5)
    ).statuses() == [
        ("no_response", 4),
        ("answered", 3),
        ("answered", 5),
    ]


def test_response_to_acks_0_is_an_orphan_with_a_problem() -> None:
    produce = request(PRODUCE, 9, 4, acks=0, timeout_ms=1)
    play = ScriptedConnection().client(produce).broker(response(PRODUCE, 9, 4), beat(5))
    assert play.end() == [("no_response", 4), ("orphan", 4), ("orphan", 5)]
    assert [row.answers_acks_0 for row in play.rows] == [False, True, False]


def test_unanswered_and_orphan() -> None:
    play = ScriptedConnection().client(heartbeat(1), heartbeat(2)).broker(beat(9), beat(2))
    assert play.end() == [("orphan", 9), ("answered", 2), ("unanswered", 1)]


def test_sasl_tokens_after_handshake_v0() -> None:
    handshake = request(HANDSHAKE, 0, 1, mechanism="PLAIN")
    shaken = response(HANDSHAKE, 0, 1, mechanisms=["PLAIN"])
    token = sized(b"\0alice\0secret")
    play = ScriptedConnection().client(handshake).broker(shaken).client(token).broker(sized(b""))
    play.client(heartbeat(2)).broker(beat(2))
    assert play.statuses() == [("answered", 1), ("answered", None), ("answered", 2)]
    assert play.rows[1].token
    assert play.rows[1].request.data == b"\0alice\0secret"
    assert play.rows[1].response.data == b""


def test_two_pipelined_sasl_tokens() -> None:
    """A token with first bytes like an id is still paired in order."""
    handshake = request(HANDSHAKE, 0, 1, mechanism="X")
    shaken = response(HANDSHAKE, 0, 1)
    tokens = [sized(b"first token"), sized(b"second")]
    play = ScriptedConnection().client(handshake + tokens[0] + tokens[1] + heartbeat(0))
    play.broker(shaken + sized(b"\0\0\0\0reply") + sized(b"two") + beat(0))
    assert play.statuses() == [
        ("answered", 1),
        ("answered", None),
        ("answered", None),
        ("answered", 0),
    ]
    assert [row.response.data for row in play.rows[1:3]] == [b"\0\0\0\0reply", b"two"]


def kerberos(size: int) -> bytes:
    """Return a first token of Kerberos as a frame; its bodies are zeros."""
    mechanism = b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"
    body = mechanism + b"\1\0" + bytes(size)
    return sized(b"\x60\x82" + len(body).to_bytes(2, "big") + body)


@pytest.mark.parametrize("given_port", [False, True])
@pytest.mark.parametrize("has_handshake", [False, True])
def test_the_last_kerberos_token_has_no_response(has_handshake: bool, given_port: bool) -> None:
    """With SaslHandshake v0, and without any, as clients of Kafka 0.9."""
    play = ScriptedConnection()
    if given_port:
        play.correlator.assume_kafka(0)
    if has_handshake:
        play.client(request(HANDSHAKE, 0, 1, mechanism="GSSAPI")).broker(response(HANDSHAKE, 0, 1))
    play.client(kerberos(500)).broker(kerberos(100)).client(sized(b""))
    play.broker(sized(b"\5\4\4\xff\0\x0c" + bytes(26))).client(sized(b"\5\4\5\xff" + bytes(35)))
    play.client(heartbeat(2)).broker(beat(2)).client(heartbeat(3)).broker(beat(3))
    tokens = [("answered", None), ("answered", None), ("no_response", None)]
    expected = [*tokens, ("answered", 2), ("answered", 3)]
    assert play.end() == [("answered", 1)] * has_handshake + expected
    assert play.correlator.streams[0].skipped == play.correlator.streams[1].skipped == 0


@pytest.mark.parametrize("cut", [4, 5, 6, 8, 19])
def test_other_first_frames_are_no_kerberos_token(cut: int) -> None:
    token = kerberos(40)
    assert is_kerberos(token)
    damaged = bytearray(token)
    damaged[cut - 1] ^= 1
    assert not is_kerberos(damaged)
    assert not is_kerberos(token[: cut - 1])


def test_handshake_v1_is_followed_by_kafka_only() -> None:
    handshake = request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    authenticate = request(36, 2, 2, auth_bytes=b"\0a\0b")
    play = (
        ScriptedConnection()
        .client(handshake)
        .broker(response(HANDSHAKE, 1, 1))
        .client(authenticate)
    )
    assert play.broker(response(36, 2, 2)).statuses() == [("answered", 1), ("answered", 2)]
    assert not any(row.token for row in play.rows)


@pytest.mark.parametrize("known", [True, False])
def test_unknown_api_and_version_are_paired(known: bool) -> None:
    strange = request(HEARTBEAT, 4, 8, group_id="g")
    strange = strange[:4] + (b"\x03\xe7\0\0" if not known else b"\0\x0c\0\x63") + strange[8:]
    assert ScriptedConnection().client(strange).broker(beat(8)).statuses() == [("answered", 8)]
    assert ScriptedConnection().client(heartbeat(1), strange).broker(beat(1), beat(8)).statuses()[
        1
    ] == (
        "answered",
        8,
    )


def test_http_and_tls_are_not_kafka() -> None:
    http = (
        ScriptedConnection()
        .client(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        .broker(b"HTTP/1.1 200 OK\r\n\r\n")
    )
    assert http.end() == []
    assert http.correlator.speaks == "other"
    tls = ScriptedConnection().client(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300))
    tls.broker(heartbeat(1))
    assert tls.end() == []
    assert tls.correlator.speaks == "tls"


def test_zeros_are_not_kafka() -> None:
    for whole in (True, False):
        play = ScriptedConnection(whole).client(bytes(5000)).broker(bytes(5000))
        assert play.end() == []
        assert play.correlator.speaks == "other"


def test_gap_inside_a_frame_damages_only_that_frame() -> None:
    long = request(HEARTBEAT, 4, 2, group_id="g" * 500)
    play = (
        ScriptedConnection()
        .client(heartbeat(1))
        .broker(beat(1))
        .client(long[:100])
        .gap(0, 300)
        .client(long[400:])
    )
    play.client(heartbeat(3)).broker(beat(2), beat(3))
    assert play.statuses() == [("answered", 1), ("answered", 2), ("answered", 3)]
    damaged = play.rows[1].request
    assert damaged.data == long[4:100]
    assert damaged.size == len(long) - 4
    assert damaged.packet == 4, "it was complete with its last byte"


def test_a_gap_ending_with_a_frame_keeps_the_framing() -> None:
    long = request(HEARTBEAT, 4, 2, group_id="g" * 500)
    play = (
        ScriptedConnection()
        .client(heartbeat(1), long[:100])
        .gap(0, len(long) - 100)
        .client(heartbeat(3))
    )
    play.broker(beat(1), beat(2), beat(3))
    assert play.statuses() == [("answered", 1), ("answered", 2), ("answered", 3)]


def test_framing_resumes_after_a_gap_over_the_end_of_a_frame() -> None:
    play = ScriptedConnection().client(heartbeat(1), heartbeat(2)[:20]).gap(0, 60)
    play.client(b"tail of something", heartbeat(4) + heartbeat(5)).broker(
        *(beat(n) for n in (1, 2, 3, 4, 5))
    )
    assert play.end() == [
        ("answered", 1),
        ("answered", 2),
        ("orphan", 3),
        ("answered", 4),
        ("answered", 5),
    ]
    assert play.correlator.streams[0].skipped >= len(b"tail of something")


def test_gap_between_frames_of_the_broker() -> None:
    play = (
        ScriptedConnection()
        .client(*(heartbeat(n) for n in range(1, 6)))
        .broker(beat(1), beat(2)[:3])
    )
    play.gap(1, len(beat(2)) - 3 + len(beat(3))).broker(beat(4), beat(5))
    assert play.end() == [
        ("answered", 1),
        ("unanswered", 2),
        ("unanswered", 3),
        ("answered", 4),
        ("answered", 5),
    ]


def test_requests_after_a_gap_of_the_broker_are_paired_in_any_order() -> None:
    play = ScriptedConnection().client(heartbeat(1), heartbeat(2)).gap(1, len(beat(1) + beat(2)))
    play.client(*(heartbeat(n) for n in (3, 4, 5))).broker(beat(5), beat(4), beat(3))
    assert play.end() == [
        ("unanswered", 1),
        ("unanswered", 2),
        ("answered", 5),
        ("answered", 4),
        ("answered", 3),
    ]


def test_starts_in_the_middle_of_a_message() -> None:
    play = (
        ScriptedConnection(whole=False)
        .client(heartbeat(1)[30:], heartbeat(2))
        .broker(beat(1), beat(2))
    )
    assert play.end() == [("orphan", 1), ("answered", 2)]
    assert play.correlator.streams[0].skipped == len(heartbeat(1)) - 30
    assert play.correlator.streams[1].skipped == 0


def test_starts_in_the_middle_of_a_response() -> None:
    play = (
        ScriptedConnection(whole=False)
        .broker(beat(1)[7:], beat(2))
        .client(heartbeat(3))
        .broker(beat(3))
    )
    assert play.end() == [("orphan", 2), ("answered", 3)]
    assert play.correlator.streams[1].skipped == len(beat(1)) - 7


def test_client_may_be_the_second_side() -> None:
    play = ScriptedConnection(whole=False).send(1, heartbeat(1)).send(0, beat(1))
    assert play.statuses() == [("answered", 1)]
    assert play.rows[0].client == 1


def test_only_responses() -> None:
    play = ScriptedConnection(whole=False).broker(*(beat(n) for n in range(10, 15)))
    assert play.end() == [("orphan", n) for n in range(10, 15)]
    assert play.correlator.client == 0


def test_only_requests() -> None:
    assert ScriptedConnection(whole=False).client(heartbeat(1), heartbeat(2)).end() == [
        ("unanswered", 1),
        ("unanswered", 2),
    ]


def test_last_frame_is_truncated() -> None:
    play = ScriptedConnection().client(heartbeat(1)).broker(beat(1)).client(heartbeat(2)[:-5])
    assert play.end() == [("answered", 1), ("unanswered", 2)]
    assert play.rows[1].request.data == heartbeat(2)[4:-5]
    assert play.rows[1].request.size == len(heartbeat(2)) - 4


def test_bytes_after_the_end_are_processed() -> None:
    play = ScriptedConnection().client(heartbeat(1), heartbeat(2)[:20])
    play.correlator.end()
    play.client(heartbeat(2)[20:], heartbeat(3)).broker(beat(3))
    assert play.statuses()[-1] == ("answered", 3)


def test_frame_above_the_limit_is_skipped() -> None:
    rows: list[ExchangeRow] = []
    connection = ConnectionCorrelator(0, True, rows.append, max_frame_bytes=1000)
    long = request(HEARTBEAT, 4, 1, group_id="g" * 5000)
    for n, data in enumerate([long[:2000], long[2000:], heartbeat(2)]):
        connection.add_data(0, data, n, n)
    connection.add_data(1, beat(1) + beat(2), 9, 9)
    assert [(r.status, r.request.size, len(r.request.data) < 70_000) for r in rows] == [
        (0, len(long) - 4, True),
        (0, len(heartbeat(2)) - 4, True),
    ]
    assert len(rows[0].request.data) < len(long) - 4


def test_the_horizon_holds_a_response_until_its_request_arrives() -> None:
    rows: list[ExchangeRow] = []
    connection = ConnectionCorrelator(0, True, rows.append)
    connection.add_data(0, heartbeat(1), 0, 0)
    connection.add_data(1, beat(1), 1, 1)
    # Packet 3 with request 2 waits behind a hole; its response is in packet 4.
    connection.barriers = (3, NEVER)
    connection.add_data(1, beat(2), 4, 4)
    assert len(rows) == 1
    connection.barriers = (NEVER, NEVER)
    connection.add_data(0, heartbeat(2), 3, 3)
    assert [(r.status, r.request.packet) for r in rows] == [(0, 0), (0, 3)]


@given(
    cuts=st.lists(st.integers(1, 400), max_size=20),
    answers=st.lists(st.integers(1, 60), max_size=20),
    data=st.data(),
)
@settings(deadline=None, max_examples=examples(60))
def test_any_segmentation_gives_the_same_exchanges(
    cuts: list[int], answers: list[int], data: st.DataObject
) -> None:
    """The pairs do not depend on the division of frames into packets."""
    requests = b"".join(heartbeat(n) for n in range(8))
    responses = b"".join(beat(n) for n in range(8))
    play = ScriptedConnection().client(*_cut(requests, cuts)).broker(*_cut(responses, answers))
    assert play.end() == [("answered", n) for n in range(8)]


def _cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = sorted({p for p in places if p < len(data)} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=60), st.integers(0, 30)), max_size=12),
    st.booleans(),
)
@settings(deadline=None, max_examples=examples(150))
def test_garbage_never_raises(lines: list[tuple[int, bytes, int]], whole: bool) -> None:
    """Random bytes and gaps around valid frames."""
    play = ScriptedConnection(whole)
    for n, (side, data, gap) in enumerate(lines):
        play.send(side, data)
        if gap > 20:
            play.gap(side, gap)
        if gap % 3 == 0:
            play.send(0, heartbeat(n))
        if gap % 5 == 0:
            play.send(1, beat(n))
    play.end()
    bytes_in = [stream.end for stream in play.correlator.streams]
    assert all(
        stream.skipped <= end for stream, end in zip(play.correlator.streams, bytes_in, strict=True)
    )


def test_one_response_is_enough_from_a_known_broker() -> None:
    """An endpoint known as a broker from other connections needs no three responses."""
    for believed, expected in ((False, []), (True, [("orphan", 8)])):
        play = ScriptedConnection(whole=False).broker(beat(8))
        assert play.end() == []
        assert (play.correlator.doubtful_side, play.correlator.speaks) == (1, DOUBTFUL)
        play.correlator.add_data(1, beat(9), 99, 99)  # it is closed
        play.correlator.resolve_doubt(believed)
        assert play.end() == expected
        assert play.correlator.speaks == ("kafka" if believed else "other")


def test_three_responses_or_both_sides_leave_no_doubt() -> None:
    three = ScriptedConnection(whole=False).broker(beat(8), beat(9), beat(10))
    assert len(three.end()) == 3
    assert three.correlator.doubtful_side is None
    both = ScriptedConnection(whole=False).broker(beat(8)).client(beat(9))
    assert both.end() == []
    assert (both.correlator.doubtful_side, both.correlator.speaks) == (None, "other")
