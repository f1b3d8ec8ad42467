"""The definitions in Kafka's own JARs; skipped if Maven has not downloaded them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from dissector import Schemas, open_capture
from dissector.protocol import apis
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis
from dissector.protocol.context import using
from dissector.protocol.definitions.apis import overlay_api
from dissector.protocol.embedded.own_topics import TOPICS, record_types
from tests import default_frames, tcp_captures

MAVEN = Path.home() / ".m2/repository/org/apache/kafka"
ROOMS = (
    *("clients", "group-coordinator", "metadata", "raft", "share-coordinator"),
    *("storage", "transaction-coordinator"),
)
CORPUS = Path(__file__).parents[4] / "captures"
OLDER, NEWER = "4.3.1", "4.4.0"
CHANGED = {18: 5, 28: 6, 42: 3, 88: 1, 89: 1, 93: 0, 94: 0}
"""The APIs that 4.4 changed, and their new versions."""


def jar(version: str, room: str = "clients") -> Path:
    path = MAVEN / f"kafka-{room}/{version}/kafka-{room}-{version}.jar"
    if not path.exists():
        pytest.skip(f"{path.name} is not in Maven's cache")
    return path


def capture(path: Path, version: str) -> str:
    """Write a capture with an exchange of each API changed in 4.4."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    with using(Schemas.of(jar(version))):
        for number, (key, at) in enumerate(CHANGED.items()):
            connection.client(default_frames.request(key, at, number)).broker(
                default_frames.response(key, at, number)
            )
    return tcp_captures.write(path, wire.packets)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("version", [OLDER, NEWER])
def test_definitions_of_the_declared_release_change_nothing(version: str) -> None:
    jars = [jar(version, room) for room in ROOMS]
    schemas = Schemas.of(*jars)
    assert schemas.problems == []
    built_in = all_apis()
    with using(schemas):
        assert [each is known for each, known in zip(all_apis(), built_in, strict=True)] == [
            True for _ in built_in
        ]
        assert [record_types(topic).keys() - kinds.keys() for topic, kinds in TOPICS.items()] == [
            set() for _ in TOPICS
        ]


@pytest.mark.long
def test_an_older_and_a_newer_release_decode_like_the_declarations(tmp_path: Path) -> None:
    files = [
        capture(tmp_path / "changed.pcap", NEWER),
        *(str(CORPUS / f"kafka4-{name}.pcap") for name in ("librdkafka-group", "quorum")),
    ]
    expected = [[each.row() for each in open_capture(file)] for file in files]
    bodies = [_bodies(file, None) for file in files]
    older = Schemas.of(jar(OLDER))
    declared: dict[int, Api | None] = {}

    def of_older(key: int) -> Api | None:
        if key not in declared:
            found = overlay_api(older, key, None)
            declared[key] = found and replace(found, sources={})
        return declared[key]

    newer = Schemas.of(jar(NEWER))
    newer.derived.clear()
    with patch.object(apis, "_declared", of_older):
        found = [[each.row() for each in open_capture(file, schemas=newer)] for file in files]
        assert [_bodies(file, newer) for file in files] == bodies
    newer.derived.clear()
    for rows in found:
        for row in rows:
            foreign = [each for each in row["problems"] if each.endswith(f"-{NEWER}.jar")]
            is_changed = (row["api_key"], row["api_version"]) in CHANGED.items()
            assert bool(foreign) == is_changed
            row["problems"] = [each for each in row["problems"] if each not in foreign]
    # Kafka does not mark each field with a topic name; our declarations do.
    for rows in (*found, *expected):
        for row in rows:
            del row["topics"]
    assert found == expected


def _bodies(file: str, schemas: Schemas | None) -> list[Any]:
    return [
        [_values(message.body) for message in exchange.messages]
        for exchange in open_capture(file, schemas=schemas)
    ]


def _values(body: Any) -> Any:
    """Return a body without field names, as Kafka renamed some."""
    if isinstance(body, dict):
        return [_values(each) for each in body.values()]
    return [_values(each) for each in body] if isinstance(body, list) else body


def test_reading_a_release_takes_bounded_time() -> None:
    """It costs some 0.1 s of CPU; the bound leaves room for a slow machine."""
    path = jar(NEWER)
    begin = time.process_time()
    schemas = Schemas.of(path)
    assert schemas.with_key("request", 94)
    assert time.process_time() - begin < 5
