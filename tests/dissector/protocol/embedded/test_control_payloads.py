"""Control records."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.embedded.control_payloads import decode_control
from dissector.protocol.records.control import CONTROL_TYPES

VOTERS = (
    "0000 02 00000001 00000000000000000000000000000007 02 02 63 02 68 2384 00 0000 0001 00 00 00"
)
KNOWN = [
    ("0000 0000", "0000 00000005", "ABORT", "EndTxnMarker", {"coordinator_epoch": 5}),
    ("0000 0001", "0000 00000006", "COMMIT", "EndTxnMarker", {"coordinator_epoch": 6}),
    (
        "0000 0002",
        "0000 00000001 02 00000001 00 01 00",
        "LEADER_CHANGE",
        "LeaderChangeMessage",
        {"version": 0, "leader_id": 1, "voters": [{"voter_id": 1}], "granting_voters": []},
    ),
    (
        "0000 0003",
        "0000 0000018bcfe56800 00",
        "SNAPSHOT_HEADER",
        "SnapshotHeaderRecord",
        {"version": 0, "last_contained_log_timestamp": 1_700_000_000_000},
    ),
    ("0000 0004", "0000 00", "SNAPSHOT_FOOTER", "SnapshotFooterRecord", {"version": 0}),
    (
        "0000 0005",
        "0000 0001 00",
        "KRAFT_VERSION",
        "KRaftVersionRecord",
        {"version": 0, "k_raft_version": 1},
    ),
    (
        "0000 0006",
        VOTERS,
        "KRAFT_VOTERS",
        "VotersRecord",
        {
            "version": 0,
            "voters": [
                {
                    "voter_id": 1,
                    "voter_directory_id": UUID(int=7),
                    "endpoints": [{"name": "c", "host": "h", "port": 9092}],
                    "k_raft_version_feature": {
                        "min_supported_version": 0,
                        "max_supported_version": 1,
                    },
                }
            ],
        },
    ),
]


@pytest.mark.parametrize(("key", "value", "kind", "name", "body"), KNOWN)
def test_known_types(key: str, value: str, kind: str, name: str, body: dict[str, object]) -> None:
    record = decode_control(bytes.fromhex(key), bytes.fromhex(value))
    assert (record.name, record.problems) == (kind, [])
    assert record.key is not None
    assert record.key.value == {"type": int(key[-1])}
    assert record.value is not None
    assert (record.value.name, record.value.value) == (name, body)


def test_every_type_is_decoded() -> None:
    assert {kind for _, _, kind, _, _ in KNOWN} == set(CONTROL_TYPES.values())


def test_a_newer_marker_is_decoded_as_the_newest_known() -> None:
    record = decode_control(b"\0\1\0\1more", b"\0\7\0\0\0\1more")
    assert record.problems == []
    assert record.value is not None
    assert record.value.value == {"coordinator_epoch": 1}
    assert (record.value.left, record.value.written_version) == (b"more", 7)


UNREADABLE = [
    (None, b"", "control record", ["the key of a control record must have a version and a type"]),
    (
        b"\0\0\0",
        b"",
        "control record",
        ["the key of a control record must have a version and a type"],
    ),
    (b"\0\0\0\x09", b"", "control type 9", ["control type 9 is not known"]),
    (b"\0\0\0\1", None, "COMMIT", ["the value is null"]),
    (b"\0\0\0\1", b"\0\0\1", "COMMIT", ["EndTxnMarker v0: 4 bytes expected, 1 left"]),
    (b"\0\0\0\2", b"", "LEADER_CHANGE", ["LeaderChangeMessage v0: 2 bytes expected, 0 left"]),
]


@pytest.mark.parametrize(("key", "value", "name", "problems"), UNREADABLE)
def test_undecodable_bytes_are_a_problem(
    key: bytes | None, value: bytes | None, name: str, problems: list[str]
) -> None:
    record = decode_control(key, value)
    assert record.name == name
    assert [p.what for p in record.problems] == problems


@given(kind=st.integers(-1, 8), value=st.none() | st.binary(max_size=50))
def test_hostile_bytes(kind: int, value: bytes | None) -> None:
    record = decode_control(b"\0\0" + kind.to_bytes(2, "big", signed=True), value)
    assert record.problems or (record.value is not None and record.value.value is not None)
