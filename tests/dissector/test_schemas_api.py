"""Captures are read by message definitions over the built-in declarations."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from dissector import Options, Schemas, UsageError, open_capture
from dissector.engine.exchanges import exchange_facts
from dissector.engine.reading.capture import Capture
from dissector.protocol.context import using
from tests import default_frames, definitions, tcp_captures

FEW, MANY = 5, 300
"""Exchanges that are read one by one, and all at once."""

NOTES = [
    "request: VendorPing v{} is decoded by vendor",
    "response: VendorPing v{} is decoded by vendor",
]


@pytest.fixture
def vendor(tmp_path: Path) -> str:
    return definitions.vendor(tmp_path / "vendor")


def rows(path: str, schemas: Schemas | None) -> list[dict[str, Any]]:
    return [exchange.row() for exchange in open_capture(path, schemas=schemas)]


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_vendors_api_is_read(tmp_path: Path, vendor: str, count: int) -> None:
    path = definitions.write_pings(tmp_path / "a.pcap", vendor, count)
    found = list(open_capture(path, schemas=[vendor]))[1:]
    assert [(each.api, each.api_version) for each in found] == [
        ("VendorPing", number % 2) for number in range(2, count + 2)
    ]
    assert [each.topics for each in found] == [[f"t{n % 3}"] for n in range(2, count + 2)]
    assert [len(each.errors) for each in found] == [bool(n % 4) for n in range(2, count + 2)]
    assert [[str(p) for p in each.problems] for each in found] == [
        [note.format(number % 2) for note in NOTES] for number in range(2, count + 2)
    ]
    body = found[1].body("request")
    assert body is not None
    assert body == {
        "points": [{"x": 3, "topic": "t0"}],
        "access_token": "hush-hush",
        "extra": -1,
    }


def test_columns_and_objects_give_the_same_rows(
    tmp_path: Path, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = definitions.write_pings(tmp_path / "a.pcap", vendor, MANY)
    schemas = Schemas.of(vendor)
    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", 1)
    bulk = rows(path, schemas)
    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", 10**9)
    assert bulk == rows(path, schemas)
    table = open_capture(path, schemas=schemas).exchanges()
    assert table["problems"].to_list() == [row["problems"] for row in bulk]
    assert table["errors"].to_list() == [row["errors"] for row in bulk]


def test_without_definitions_the_api_is_unknown(tmp_path: Path, vendor: str) -> None:
    path = definitions.write_pings(tmp_path / "a.pcap", vendor, FEW)
    rows(path, Schemas.of(vendor))
    found = list(open_capture(path))[1:]
    assert {each.api for each in found} == {"api 600"}
    assert "api 600 is not known" in str(found[0].problems[0])


def test_concurrent_readings_are_independent(tmp_path: Path, vendor: str) -> None:
    other = dict(definitions.PING_RESPONSE)
    fields = [{"name": "Renamed", "type": "int64", "versions": "0+"}]
    other["fields"] = [definitions.PING_RESPONSE["fields"][0], *fields]
    second = definitions.written(tmp_path / "second", definitions.PING_REQUEST, other)
    path = definitions.write_pings(tmp_path / "a.pcap", vendor, MANY)
    alone = [rows(path, None), rows(path, Schemas.of(vendor)), rows(path, Schemas.of(second))]
    assert alone[0] != alone[1] != alone[2]
    captures = [iter(open_capture(path, schemas=each)) for each in (None, [vendor], [second])]
    in_turn: list[list[Any]] = [[], [], []]
    for each in zip(*captures, strict=True):
        for into, exchange in zip(in_turn, each, strict=True):
            into.append(exchange)
    # They are decoded when all have been read.
    assert [[each.row() for each in exchanges] for exchanges in in_turn] == alone
    in_threads: dict[int, list[dict[str, Any]]] = {}

    def read(number: int, schemas: Schemas | None) -> None:
        in_threads[number] = Capture([path], Options(jobs=4, schemas=schemas)).exchanges().rows()

    plain = [open_capture(path, schemas=each).exchanges().rows() for each in (None, [vendor])]
    threads = [
        threading.Thread(target=read, args=(number, schemas))
        for number, schemas in enumerate([None, Schemas.of(vendor)] * 2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [in_threads[number] for number in range(4)] == plain * 2


def test_definitions_are_sent_to_other_processes(vendor: str) -> None:
    schemas = Schemas.of(vendor)
    copy = pickle.loads(pickle.dumps(Options(schemas=schemas).schemas))
    assert copy is schemas
    assert Schemas.of(vendor) is schemas


def test_a_new_version_of_a_known_api(tmp_path: Path) -> None:
    """Version 42 of Heartbeat has another field; others are read by the built-in declarations."""
    spec = {
        "apiKey": 12,
        "type": "request",
        "name": "HeartbeatRequest",
        "validVersions": "0-42",
        "flexibleVersions": "4+",
        "fields": [
            {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
            {"name": "GenerationId", "type": "int32", "versions": "0+"},
            {"name": "MemberId", "type": "string", "versions": "0+"},
            {
                "name": "GroupInstanceId",
                "type": "string",
                "versions": "3+",
                "nullableVersions": "3+",
                "default": "null",
            },
            {"name": "ClientSecret", "type": "string", "versions": "5+"},
        ],
    }
    response = {
        "apiKey": 12,
        "type": "response",
        "name": "HeartbeatResponse",
        "validVersions": "0-42",
        "flexibleVersions": "4+",
        "fields": [
            {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": True},
            {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        ],
    }
    source = definitions.written(tmp_path / "fork", spec, response)
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    schemas = Schemas.of(source)
    with using(schemas):
        connection.client(default_frames.request(12, 4, 1)).broker(
            default_frames.response(12, 4, 1)
        )
        connection.client(default_frames.request(12, 42, 2, client_secret="s")).broker(
            default_frames.response(12, 42, 2)
        )
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    old, new = open_capture(path, schemas=schemas)
    assert old.problems == []
    assert [str(each) for each in new.problems] == [
        "request: Heartbeat v42 is decoded by fork",
        "response: Heartbeat v42 is decoded by fork",
    ]
    body = new.body("request")
    assert body is not None
    assert body["client_secret"] == "s"


def test_a_message_contradicting_its_definition(tmp_path: Path, vendor: str) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    connection.client(default_frames.request(3, 9, 1, "vendor")).broker(
        default_frames.response(3, 9, 1)
    )
    bad = bytes.fromhex("0258 0000 00000002 0006") + b"vendor" + bytes.fromhex("00000009 01")
    connection.client(default_frames.sized(bad)).broker(
        default_frames.sized(bytes.fromhex("00000002 0000 00000007 ff"))
    )
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    _, ping = open_capture(path, schemas=[vendor])
    said = [str(each) for each in ping.problems]
    assert said[0].startswith("request.points")
    assert said[1:] == [
        "response: VendorPing v0 is decoded by vendor",
        "response at byte 10: 1 bytes are left over after the body",
    ]


def test_an_invalid_list_of_schemas_is_an_error(vendor: str) -> None:
    with pytest.raises(UsageError, match="schemas takes several names"):
        open_capture("a.pcap", schemas=vendor)
    with pytest.raises(UsageError, match=r"absent: No such file"):
        open_capture("a.pcap", schemas=["absent"])
