"""Plans with the schema ids of the target's registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.errors import UsageError
from dissector.protocol.records import Record, build_records, new_batch, parse_records
from dissector.values.registry.target_registry import TargetRegistry
from dissector.values.schemas.known_schema import AVRO
from dissector.values.schemas.schema_store import SchemaStore
from replay.plan.plan import Plan
from replay.plan.schema_mapping import SchemaMapping
from tests import tcp_captures
from tests.dissector.cli.cli_traffic import FETCH, PRODUCE, request_frame, response_frame
from tests.dissector.values.value_captures import (
    ENTRIES,
    KEY_ID,
    PREFIX,
    UNKNOWN_ID,
    order,
    orders,
)
from tests.replay.support.fake_registry import fake_registry

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def written(number: int) -> list[Record]:
    """Return the records of an exchange; those of each third have nothing to map."""
    if number % 3 == 2:
        return [Record(key=b"5", value=b'{"a": 1}'), Record(value=None), Record(value=b"\x00\x00")]
    named = (("__value_schema_id", b"\x00\x00\x00\x00\x07"), ("other", b"\x00\x00\x00\x00\x07"))
    by_header = Record(key=None, value=order(number), timestamp=5, headers=named)
    return [*orders(number), by_header, Record(value=UNKNOWN_ID + b"abcd", timestamp=9)]


def captured(path: Path, count: int = 9) -> Path:
    """Write a capture that produces and fetches orders, with each codec; the last batch is cut."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    entries = [Record(key=b"{}", value=json.dumps(each).encode()) for each in ENTRIES]
    written_batches = [("_schemas", new_batch(entries))] + [
        ("orders", new_batch(written(number), codec=CODECS[number % 5])) for number in range(count)
    ]
    for number, (topic, batch) in enumerate(written_batches):
        data = build_records([batch])
        part = {"index": 0, "records": data}
        connection.client(
            request_frame(
                PRODUCE, 9, number, acks=-1, topic_data=[{"name": topic, "partition_data": [part]}]
            )
        )
        answer = [{"name": topic, "partition_responses": [{"index": 0, "base_offset": number}]}]
        connection.broker(response_frame(PRODUCE, 9, number, responses=answer))
        asked = [{"topic": topic, "partitions": [{"partition": 0, "fetch_offset": number}]}]
        connection.client(request_frame(FETCH, 12, 1000 + number, topics=asked))
        found: dict[str, Any] = {"partition_index": 0, "records": data + data[:50]}
        responses = [{"topic": topic, "partitions": [found]}]
        connection.broker(response_frame(FETCH, 12, 1000 + number, responses=responses))
    tcp_captures.write(path, wire.packets)
    return path


def records_of(plan: Plan) -> tuple[list[Record], list[bytes]]:
    """Return the produced records of the topic with orders, and the fetched fields."""
    produced, fetched = [], []
    for step in plan:
        request, response = step.captured.request_message().body, step.captured.response_message()
        assert response is not None
        if step.captured.api == "Produce" and request.topic_data[0].name == "orders":
            data = request.topic_data[0].partition_data[0].records
            (batch,) = parse_records(data)
            assert not batch.problems
            assert batch.crc_ok
            produced += batch.records
        elif step.captured.api == "Fetch" and response.body.responses[0].topic == "orders":
            fetched.append(response.body.responses[0].partitions[0].records)
    return produced, fetched


def test_ids_become_those_of_the_target(tmp_path: Path) -> None:
    path = captured(tmp_path / "a.pcap")
    with fake_registry() as registry, Plan.of(path) as plain:
        mapping = SchemaMapping(
            registry.url, registers=True, topic_on_target=lambda name: f"t-{name}"
        )
        with Plan.of(path, schema_mapping=mapping) as plan:
            produced, fetched = records_of(plan)
            assert [each.number for each in plan] == [each.number for each in plain]
            (line,) = plan.problems
        before, old_fetched = records_of(plain)
    assert "no source knows id 99 (12 records): these ids stay" in line
    names = {name: json.loads(each[0]) for name, each in registry.subjects.items() if each}
    assert set(names) == {"item", "t-orders-key", "t-orders-value"}
    assert names["t-orders-value"]["references"] == [
        {"name": "Item", "subject": "item", "version": 1}
    ]
    ids = {name: registry.ids[each[0]] for name, each in registry.subjects.items() if each}
    key, value = (bytes([0, 0, 0, 0, ids[f"t-orders-{side}"]]) for side in ("key", "value"))
    for old, new in zip(before, produced, strict=True):
        assert new.timestamp == old.timestamp
        expected_key = old.key and old.key.replace(KEY_ID, key, 1)
        headers = dict(old.headers)
        if headers.get("__value_schema_id", b"")[:1] == b"\x00":
            headers["__value_schema_id"] = value
        assert (new.key, dict(new.headers)) == (expected_key, headers)
        is_prefixed = old.value is not None and old.value.startswith(PREFIX)
        assert new.value == (
            old.value and old.value.replace(PREFIX, value, 1) if is_prefixed else old.value
        )
    for old_data, data in zip(old_fetched, fetched, strict=True):
        assert data[-50:] == old_data[-50:]  # a batch that was cut
        assert [each.value for each in parse_records(data)[0].records] == [
            None if each.value is None else each.value.replace(PREFIX, value, 1)
            for each in parse_records(old_data)[0].records
        ]


def test_references_in_a_circle_are_asked_for_once() -> None:
    store = SchemaStore()
    names = [f"s{number}" for number in range(30)]
    for _ in range(2):  # the second time all that they refer to is known
        for subject in names:
            store.add(
                AVRO,
                f'"{subject}"',
                subject,
                1,
                references=tuple((each, each, 1) for each in names),
            )
    with fake_registry() as registry:
        target = TargetRegistry(registry.url, registers=True)
        for schema in [each[1] for each in store.by_subject.values()]:
            assert target.id_of(schema, ["s0"], store) is None
        assert not any(registry.subjects.values())


def test_schemas_that_the_target_lacks_are_said_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(captured(tmp_path / "a.pcap"))

    def refused(*options: str) -> str:
        assert main(["replay", path, "--to", "127.0.0.1:1", *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    with fake_registry() as registry:
        with pytest.raises(UsageError, match=r"lacks .*id 7 \(orders-value v4, 24 records\)"):
            Plan.of(path, schema_mapping=SchemaMapping(registry.url))
        line = refused("--map-schemas", registry.url)
        assert line.endswith("--register-schemas registers them")
        assert not any(registry.subjects.values())
    assert "does not answer" in refused("--map-schemas", registry.url)
    assert "needs --map-schemas" in refused("--register-schemas")
