"""Scripted connections: the bytes of each side, and the exchanges, equal to the reference's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture.columns import END, GAP, NEVER
from dissector.capture.tcp.stream_kernel import WAIT_NS
from dissector.engine.correlation.correlator import ConnectionState
from dissector.engine.correlation.pairing_kernel import MAX_EARLY_RESPONSE_NS
from dissector.engine.tables.exchange_table import ANSWERED, STATUS
from tests.default_frames import request, response, sized
from tests.dissector.engine.chunks import HANDSHAKE, HEARTBEAT, PRODUCE, STEP_NS, Chunk, numbered
from tests.dissector.engine.correlation.test_correlator import check, correlate
from tests.example_counts import examples

Said = list[Chunk]


class Played(NamedTuple):
    """What a script gave: the columns of `rows_of` by name, and the state of the connection."""

    rows: list[dict[str, Any]]
    state: ConnectionState

    @property
    def statuses(self) -> list[tuple[str, int | None]]:
        """List (status, correlation id) of the exchanges."""
        return [
            (STATUS[row["status"]], None if row["token"] else row["correlation_id"])
            for row in self.rows
        ]


NAMES = (
    *("connection", "status", "client", "token", "answers_acks_0", "api_key", "api_version"),
    "correlation_id",
    *(
        f"{kind} {name}"
        for kind in ("request", "response")
        for name in ("data", "captured_bytes", "size", "packet", "time_ns", "offset")
    ),
    "server_ns",
)


def play(said: Said, *, whole: bool = True, **options: Any) -> Played:
    """Return what one connection gives, one packet for each chunk, in windows of any size."""
    chunks = numbered(said)
    check(chunks, [whole], range(1, 9), **options)
    rows, (state,), _ = correlate(chunks, [whole], **options)
    return Played([dict(zip(NAMES, row, strict=True)) for row in rows], state)


def client(*data: bytes) -> Said:
    return [Chunk(0, 0, data=each) for each in data]


def broker(*data: bytes) -> Said:
    return [Chunk(0, 1, data=each) for each in data]


def gap(side: int, length: int) -> Said:
    return [Chunk(0, side, GAP, missing=length)]


def asks(*ids: int) -> Said:
    return client(*map(asked, ids))


def answers(*ids: int) -> Said:
    return broker(*map(beat, ids))


def asked(n: int) -> bytes:
    return request(HEARTBEAT, 4, n, group_id="g", member_id=f"member-{n}")


def beat(n: int) -> bytes:
    return response(HEARTBEAT, 4, n)


def answered(*ids: int | None) -> list[tuple[str, int | None]]:
    return [("answered", each) for each in ids]


PRODUCED = request(PRODUCE, 9, 4, acks=0, timeout_ms=1)
LONG = request(HEARTBEAT, 4, 2, group_id="g" * 500)
SHAKEN = response(HANDSHAKE, 0, 1, mechanisms=["PLAIN"])
PLAIN = client(request(HANDSHAKE, 0, 1, mechanism="PLAIN")) + broker(SHAKEN)
AUTHENTICATE = request(36, 2, 2, auth_bytes=b"\0a\0b")
STRANGE = {
    "api": asked(8)[:4] + b"\x03\xe7\0\0" + asked(8)[8:],
    "version": asked(8)[:4] + b"\0\x0c\0\x63" + asked(8)[8:],
}

WHOLE: dict[str, tuple[Said, list[tuple[str, int | None]]]] = {
    "one exchange": (asks(1) + answers(1), answered(1)),
    "pipelined": (
        client(asked(1) + asked(2) + asked(3)) + broker(beat(1) + beat(2), beat(3)),
        answered(1, 2, 3),
    ),
    "out of order": (asks(1, 2) + answers(2, 1), answered(2, 1)),
    "acks 0 has no response": (
        asks(3) + client(PRODUCED) + asks(5) + answers(3, 5),
        [("no_response", 4), *answered(3, 5)],
    ),
    "acks 0 is answered": (
        client(PRODUCED) + broker(response(PRODUCE, 9, 4), beat(5)),
        [("no_response", 4), ("orphan", 4), ("orphan", 5)],
    ),
    "unanswered and orphan": (
        asks(1, 2) + answers(9, 2),
        [("orphan", 9), ("answered", 2), ("unanswered", 1)],
    ),
    "a token after handshake v0": (
        PLAIN + client(sized(b"\0alice\0secret")) + broker(sized(b"")) + asks(2) + answers(2),
        answered(1, None, 2),
    ),
    "handshake v1 is followed by Kafka": (
        client(request(HANDSHAKE, 1, 1, mechanism="PLAIN"))
        + broker(response(HANDSHAKE, 1, 1))
        + client(AUTHENTICATE)
        + broker(response(36, 2, 2)),
        answered(1, 2),
    ),
    "unknown api": (asks(1) + client(STRANGE["api"]) + answers(1, 8), answered(1, 8)),
    "unknown version": (asks(1) + client(STRANGE["version"]) + answers(1, 8), answered(1, 8)),
    "unknown api first": (client(STRANGE["api"]) + answers(8), answered(8)),
    "a gap ends with a frame": (
        asks(1) + client(LONG[:100]) + gap(0, len(LONG) - 100) + asks(3) + answers(1, 2, 3),
        answered(1, 2, 3),
    ),
    "a gap between responses": (
        asks(1, 2, 3, 4, 5)
        + broker(beat(1), beat(2)[:3])
        + gap(1, len(beat(2)) - 3 + len(beat(3)))
        + answers(4, 5),
        [("answered", 1), ("unanswered", 2), ("unanswered", 3), *answered(4, 5)],
    ),
    "bytes after the end": (
        asks(1)
        + client(asked(2)[:20])
        + [Chunk(0, 0, END)]
        + client(asked(2)[20:])
        + asks(3)
        + answers(3),
        [("unanswered", 1), ("unanswered", 2), ("answered", 3)],
    ),
    "requests after a gap of the broker": (
        asks(1, 2) + gap(1, len(beat(1) + beat(2))) + asks(3, 4, 5) + answers(5, 4, 3),
        [("unanswered", 1), ("unanswered", 2), *answered(5, 4, 3)],
    ),
    "a response before the first request": (answers(0) + asks(0), answered(0)),
    "a response with a past id is of no later request": (
        asks(5) + answers(5, 5) + asks(5) + answers(5),
        [("answered", 5), ("orphan", 5), ("answered", 5)],
    ),
}
EARLY = asks(1) + answers(1, 2) + asks(2) + answers(3), [*answered(1, 2), ("orphan", 3)]
WHOLE["a response before its request"] = EARLY

MIDWAY: dict[str, tuple[Said, list[tuple[str, int | None]]]] = {
    "only responses": (answers(*range(10, 15)), [("orphan", n) for n in range(10, 15)]),
    "only requests": (asks(1, 2), [("unanswered", 1), ("unanswered", 2)]),
    "from the middle of a message": (
        client(asked(1)[30:]) + asks(2) + answers(1, 2),
        [("orphan", 1), ("answered", 2)],
    ),
    "from the middle of a response": (
        broker(beat(1)[7:], beat(2)) + asks(3) + answers(3),
        [("orphan", 2), ("answered", 3)],
    ),
    "a response before its request": EARLY,
}

END_OF_BOTH = [Chunk(0, 0, END)]


@pytest.mark.parametrize("name", WHOLE)
def test_exchanges_of_a_connection(name: str) -> None:
    said, expected = WHOLE[name]
    assert play(said + END_OF_BOTH).statuses == expected


@pytest.mark.parametrize("name", MIDWAY)
def test_exchanges_of_a_connection_seen_midway(name: str) -> None:
    said, expected = MIDWAY[name]
    assert play(said + END_OF_BOTH, whole=False).statuses == expected


def test_rows_have_the_packets_and_bytes_of_their_frames() -> None:
    played = play(asks(1) + answers(1))
    (row,) = played.rows
    assert (row["connection"], row["client"], played.state.speaks) == (0, 0, "kafka")
    assert (row["request packet"], row["response packet"]) == (0, 1)
    assert row["request size"] == len(asked(1)) - 4 == len(row["request data"])
    played = play(asks(5, 5) + answers(5, 5))  # in the order of sending
    assert [(row["request packet"], row["response packet"]) for row in played.rows] == [
        (0, 2),
        (1, 3),
    ]


def test_a_response_to_acks_0_is_marked() -> None:
    said, _ = WHOLE["acks 0 is answered"]
    assert [row["answers_acks_0"] for row in play(said).rows] == [0, 1, 0]


def test_tokens_are_paired_in_order() -> None:
    """Also one with first bytes like an id."""
    said, _ = WHOLE["a token after handshake v0"]
    row = play(said).rows[1]
    assert (row["request data"], row["response data"]) == (b"\0alice\0secret", b"")
    tokens = sized(b"first token") + sized(b"second")
    said = client(request(HANDSHAKE, 0, 1, mechanism="X") + tokens + asked(0))
    said += broker(response(HANDSHAKE, 0, 1) + sized(b"\0\0\0\0reply") + sized(b"two") + beat(0))
    played = play(said)
    assert played.statuses == answered(1, None, None, 0)
    assert [row["response data"] for row in played.rows[1:3]] == [b"\0\0\0\0reply", b"two"]


def kerberos(size: int) -> bytes:
    """Return a first token of Kerberos as a frame; its bodies are zeros."""
    mechanism = b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"
    body = mechanism + b"\1\0" + bytes(size)
    return sized(b"\x60\x82" + len(body).to_bytes(2, "big") + body)


@pytest.mark.parametrize("ports", [frozenset(), frozenset({9092})])
@pytest.mark.parametrize("has_handshake", [False, True])
def test_the_last_kerberos_token_has_no_response(
    has_handshake: bool, ports: frozenset[int]
) -> None:
    """With SaslHandshake v0, and without any, as clients of Kafka 0.9."""
    said = client(request(HANDSHAKE, 0, 1, mechanism="GSSAPI")) + broker(response(HANDSHAKE, 0, 1))
    said = said if has_handshake else []
    said += client(kerberos(500)) + broker(kerberos(100)) + client(sized(b""))
    said += broker(sized(b"\5\4\4\xff\0\x0c" + bytes(26)))
    said += client(sized(b"\5\4\5\xff" + bytes(35)))
    played = play(said + asks(2) + answers(2) + asks(3) + answers(3), ports=ports)
    tokens = [*answered(None, None), ("no_response", None)]
    assert played.statuses == answered(1)[:has_handshake] + tokens + answered(2, 3)
    assert played.state.skipped == (0, 0)


@pytest.mark.parametrize("cut", [4, 5, 6, 8, 19])
def test_other_first_frames_are_no_kerberos_token(cut: int) -> None:
    damaged = bytearray(kerberos(40))
    damaged[cut - 1] ^= 1
    played = play(client(bytes(damaged)) + broker(kerberos(9)) + client(sized(b"")) + END_OF_BOTH)
    assert (played.statuses, played.state.speaks) == ([], "other")


@pytest.mark.parametrize(
    ("said", "whole", "speaks"),
    [
        (client(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300)), True, "tls"),
        (client(bytes(5000)) + broker(bytes(5000)), True, "other"),
        (client(bytes(5000)) + broker(bytes(5000)), False, "other"),
        (broker(beat(8)) + client(beat(9)), False, "other"),
    ],
)
def test_other_protocols_have_no_exchanges(said: Said, whole: bool, speaks: str) -> None:
    played = play(said + END_OF_BOTH, whole=whole)
    assert (played.statuses, played.state.speaks) == ([], speaks)


def test_a_gap_inside_a_frame_damages_only_that_frame() -> None:
    said = asks(1) + answers(1) + client(LONG[:100]) + gap(0, 300) + client(LONG[400:])
    played = play(said + asks(3) + answers(2, 3))
    assert played.statuses == answered(1, 2, 3)
    damaged = played.rows[1]
    assert damaged["request data"] == LONG[4:100]
    assert damaged["request size"] == len(LONG) - 4
    assert damaged["request packet"] == 4  # it was complete with its last byte


def test_framing_resumes_after_a_gap_over_the_end_of_a_frame() -> None:
    said = asks(1) + client(asked(2)[:20]) + gap(0, 60) + client(b"tail of something")
    played = play(said + client(asked(4) + asked(5)) + answers(1, 2, 3, 4, 5))
    assert played.statuses == [*answered(1, 2), ("orphan", 3), *answered(4, 5)]
    assert played.state.skipped[0] >= len(b"tail of something")


def test_bytes_before_the_first_whole_frame_are_counted() -> None:
    said, _ = MIDWAY["from the middle of a message"]
    assert play(said, whole=False).state.skipped == (len(asked(1)) - 30, 0)
    said, _ = MIDWAY["from the middle of a response"]
    assert play(said, whole=False).state.skipped == (0, len(beat(1)) - 7)


def test_the_client_may_be_the_second_side() -> None:
    played = play([Chunk(0, 1, data=asked(1)), Chunk(0, 0, data=beat(1))], whole=False)
    assert (played.statuses, played.rows[0]["client"]) == (answered(1), 1)


def test_the_last_frame_may_be_truncated() -> None:
    played = play(asks(1) + answers(1) + client(asked(2)[:-5]) + END_OF_BOTH)
    assert played.statuses == [("answered", 1), ("unanswered", 2)]
    assert played.rows[1]["request data"] == asked(2)[4:-5]
    assert played.rows[1]["request size"] == len(asked(2)) - 4


def test_a_frame_above_the_limit_is_skipped() -> None:
    long = request(HEARTBEAT, 4, 1, group_id="g" * 5000)
    said = client(long[:2000], long[2000:]) + asks(2) + broker(beat(1) + beat(2))
    played = play(said, max_frame_bytes=1000)
    assert [row["status"] for row in played.rows] == [ANSWERED, ANSWERED]
    assert [row["request size"] for row in played.rows] == [len(long) - 4, len(asked(2)) - 4]
    assert len(played.rows[0]["request data"]) < len(long) - 4


def test_a_response_waits_for_a_request_behind_a_hole() -> None:
    """Packet 3 with request 2 waits behind a hole; its response is in packet 4."""
    chunks = [
        Chunk(0, 0, data=asked(1), packet=0),
        Chunk(0, 1, data=beat(1), packet=1),
        Chunk(0, 1, data=beat(2), packet=4, horizon=(3, NEVER)),
        Chunk(0, 0, data=asked(2), packet=3),
    ]
    check(chunks, [True], [1, 2, 3])
    assert [(row[1], row[11]) for row in correlate(chunks, [True])[0]] == [(0, 0), (0, 3)]


def test_a_response_waits_for_a_limited_time() -> None:
    steps = MAX_EARLY_RESPONSE_NS // STEP_NS
    for many, expected in ((1, "answered"), (steps + 2, "orphan")):
        said = asks(1) + answers(1, 2) + asks(*[1] * many, 2)
        assert (expected, 2) in play(said).statuses


@given(
    cuts=st.lists(st.integers(1, 400), max_size=20),
    replies=st.lists(st.integers(1, 60), max_size=20),
)
@settings(deadline=None, max_examples=examples(60))
def test_any_segmentation_gives_the_same_exchanges(cuts: list[int], replies: list[int]) -> None:
    """The pairs do not depend on the division of frames into packets."""
    requests, responses = b"".join(map(asked, range(8))), b"".join(map(beat, range(8)))
    said = client(*_cut(requests, cuts)) + broker(*_cut(responses, replies))
    assert play(said).statuses == answered(*range(8))


def _cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = sorted({each for each in places if each < len(data)} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def test_responses_may_be_as_early_as_a_hole_waits() -> None:
    assert MAX_EARLY_RESPONSE_NS == 2 * WAIT_NS
