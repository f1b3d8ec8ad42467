"""`dissect -T json` and `-T ek`: the shapes and values of tshark."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dissector.filter import wireshark_names
from tests.corpus import FOLDER as CAPTURES
from tests.dissector.cli.conftest import Run

DEMO = CAPTURES / "demo.pcap"
BROKERS = (21863, 23590, 27891)
NAMES = {
    *wireshark_names.COLUMNS,
    *wireshark_names.BODIES,
    *wireshark_names.RECORDS,
    *wireshark_names.BATCHES,
}

SCENES = (
    *("kafka39-kafka-python-as-0.11", "kafka39-kafka-python-as-2.4", "kafka39-sweep-admin"),
    *("kafka39-sweep-clients-1", "kafka39-sweep-clients-2", "kafka39-sweep-clients-3"),
    *("kafka39-sweep-groups", "kafka39-sweep-sasl", "kafka39-sweep-zookeeper"),
)

READ_WRONG = {
    *((0, version, "request") for version in range(3)),
    *((1, version, "response") for version in range(4)),
    *((6, version, "request") for version in range(4)),
    *((api, None, None) for api in (19, 34, 37, 43)),
    (15, None, "response"),
}
"""
API, version and kind of messages that TShark 4.0 reads wrong without saying so: of message sets
the first message only, of several topics, groups or brokers the second at a wrong place.
"""

ONCE = {"kafka.topic_name", "kafka.replica_id"}
"""Names whose repeated values may be missing."""

ELSEWHERE = {
    "kafka.leader_epoch",  # of Fetch and ListOffsets: here `kafka.current_leader_epoch`
    "kafka.consumer_group",  # of FindCoordinator v0: here `kafka.coordinator_key` alone
    "kafka.batch_first_timestamp",  # TShark 4.0 takes milliseconds for seconds
    "kafka.batch_last_timestamp",
}
"""Names with other values here."""


def kafka_layers(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the Kafka layers of documents by number of the packet; repeated keys as arrays."""

    def merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            found.setdefault(key, []).append(value)
        return {key: each[0] if len(each) == 1 else each for key, each in found.items()}

    layers: dict[str, list[dict[str, Any]]] = {}
    for document in json.loads(text, object_pairs_hook=merged):
        found = document["_source"]["layers"]
        kafka = found["kafka"]
        of_packet = layers.setdefault(found["frame"]["frame.number"], [])
        of_packet += kafka if isinstance(kafka, list) else [kafka]
    return layers


def values_of(layer: Any, name: str) -> list[str]:
    """Return the values of a name in a layer, at any depth."""
    if isinstance(layer, list):
        return [value for each in layer for value in values_of(each, name)]
    if not isinstance(layer, dict):
        return []
    found = layer.get(name, [])
    texts = found if isinstance(found, list) else [found]
    own = [each for each in texts if each and each != "[ Null ]"]
    return own + [each for key in layer if key != name for each in values_of(layer[key], name)]


def is_read_wrong(layer: Any) -> bool:
    """Return whether TShark has doubts about a message, or reads such messages wrong."""
    text = json.dumps(layer)
    if "_ws.expert" in text or "_ws.malformed" in text:
        return True
    kind = "request" if "kafka.request_key" in text else "response"
    (api, *_), (version, *_) = (
        values_of(layer, f"kafka.{name}") or [None] for name in (f"{kind}_key", f"{kind}.version")
    )
    if api is None or version is None:
        return True
    shapes = {(int(api), each, side) for each in (int(version), None) for side in (kind, None)}
    return not shapes.isdisjoint(READ_WRONG)


def compared_values(good: Run, path: Path) -> dict[str, list[tuple[list[str], list[str]]]]:
    """Return by name the values of TShark and ours, of each message that both read."""
    ours = kafka_layers(good("dissect", path, "-T", "json", "--show-secrets").out)
    rows = [row for row in good("streams", path, "-T", "ndjson").rows if row["speaks"] == "kafka"]
    ports = {row["b"].rpartition(":")[2] for row in rows}
    words = [word for port in ports for word in ("-d", f"tcp.port=={port},kafka")]
    command = ["tshark", "-r", str(path), *words, "-Y", "kafka", "-T", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[tuple[list[str], list[str]]]] = {}
    for number, layers in kafka_layers(done.stdout).items():
        if len(layers) != 1 or len(ours.get(number, ())) != 1 or is_read_wrong(layers):
            continue
        for name in NAMES - ELSEWHERE:
            expected, got = (
                # No time has -1, which TShark takes for a time after the year 584,000,000.
                sorted(each for each in values_of(side, name) if ", 584556019 " not in each)
                for side in (layers, ours[number])
            )
            if expected:
                found.setdefault(name, []).append((expected, got))
    return found


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize(
    "scenes",
    [("demo",), pytest.param(SCENES, marks=pytest.mark.long)],
    ids=("demo", "all"),
)
def test_values_are_those_of_tshark(good: Run, scenes: tuple[str, ...]) -> None:
    seen = set()
    for scene in scenes:
        for name, pairs in compared_values(good, CAPTURES / f"{scene}.pcap").items():
            seen.add(name)
            for expected, got in pairs:
                if name in ONCE:
                    expected, got = sorted({*expected}), sorted({*got})
                assert got == expected, (scene, name)
    assert len(seen) > (120 if scenes == SCENES else 50)


def test_documents_have_names_of_wireshark_only(good: Run) -> None:
    seen = set[str]()
    for name in ("demo.pcap", "kafka4-java-clients.pcap", "kafka39-kafka-python-as-0.10.0.pcap"):
        for layers in kafka_layers(good("dissect", CAPTURES / name, "-T", "json").out).values():
            seen.update(key for layer in layers for key in layer)
    assert seen <= NAMES
    assert len(seen) > 70
    records = {*wireshark_names.RECORDS, *wireshark_names.BATCHES} - seen
    assert records <= {"kafka.header_key", "kafka.header_value"}


def test_bulk_documents(good: Run) -> None:
    lines = good("dissect", DEMO, "-T", "ek", "-Y", "api == Metadata", "-c", "2").rows
    assert lines[0] == {"index": {"_index": "packets-2026-11-21", "_type": "doc"}}
    document = lines[1]
    assert document["timestamp"].isdecimal()
    assert len(document["timestamp"]) == 13
    assert document["layers"]["kafka"]["kafka_kafka_request_key"] == "3"
    assert document["layers"]["tcp"]["tcp_tcp_dstport"] in map(str, BROKERS)


def test_chosen_names_are_arrays(good: Run) -> None:
    chosen = ("-e", "kafka.api_key", "-e", "kafka.error", "-c", "1")
    (document,) = json.loads(good("dissect", DEMO, "-T", "json", *chosen).out)
    assert document["_source"]["layers"] == {"kafka.api_key": ["18"]}
    rows = good("dissect", DEMO, "-T", "ek", *chosen).rows
    assert rows[1]["layers"] == {"kafka_api_key": ["18"]}
    assert json.loads(good("dissect", DEMO, "-T", "json", "-Y", "api == 99").out) == []


def test_secrets_are_masked(good: Run) -> None:
    name = Path(CAPTURES / "kafka39-kafka-python-sasl.pcap")
    assert "***" in good("dissect", name, "-T", "json").out
