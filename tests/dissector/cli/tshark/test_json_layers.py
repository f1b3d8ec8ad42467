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
SHARED = {
    *("kafka.len", "kafka.correlation_id", "kafka.client_id", "kafka.topic_name"),
    *("kafka.api_key", "kafka.request_key", "kafka.response.version", "kafka.request_frame"),
    *("kafka.host", "kafka.port", "kafka.coordinator_key", "kafka.api_versions.max_version"),
    *("kafka.batch_crc", "kafka.batch_transactional", "kafka.message_magic", "kafka.header_key"),
}
"""Names whose values TShark 4.0 reads right in all versions of the capture."""


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


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_values_are_those_of_tshark(good: Run) -> None:
    ours = kafka_layers(good("dissect", DEMO, "-T", "json").out)
    words = [word for port in BROKERS for word in ("-d", f"tcp.port=={port},kafka")]
    command = ["tshark", "-r", str(DEMO), *words, "-Y", "kafka", "-T", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    compared = set()
    theirs = kafka_layers(done.stdout)
    for number, layers in theirs.items():
        if len(layers) != 1 or len(ours.get(number, ())) != 1:
            continue
        for name in SHARED:
            expected = values_of(layers, name)
            if expected:
                got = values_of(ours[number], name)
                assert {_number(each) for each in expected} == {_number(each) for each in got}, name
                compared.add(name)
    assert compared == SHARED


def _number(text: str) -> str:
    return str(int(text, 16)) if text.startswith("0x") else text


def test_documents_have_names_of_wireshark_only(good: Run) -> None:
    known = {
        *wireshark_names.COLUMNS,
        *wireshark_names.BODIES,
        *wireshark_names.RECORDS,
        *wireshark_names.BATCHES,
    }
    seen = set[str]()
    for name in ("demo.pcap", "kafka4-java-clients.pcap", "kafka39-kafka-python-as-0.9.pcap"):
        for layers in kafka_layers(good("dissect", CAPTURES / name, "-T", "json").out).values():
            seen.update(key for layer in layers for key in layer)
    assert seen <= known
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
